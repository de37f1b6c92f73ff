//! The address of a server with everything a request to it carries, and why a request got no usable response.

use std::sync::Arc;

use bytes::Bytes;
use pith_ai::{Redirect, Web, WebRequest, WebResponse};
use pith_secrets::is_secret_name;
use tracing::debug;
use url::Url;

use crate::config::{Remote, ServerConfig};
use crate::launch::{Launch, Values};
use crate::oauth::{Challenge, SignIn, Store, is_loopback};
use crate::remarks::{Remarks, cut};
use crate::state::Failure;

/// Hops a request may be sent on, to the same origin.
const MAX_REDIRECTS: usize = 3;
/// How much of a body that is no answer is shown.
const SHOWN_BODY: usize = 200;
/// How much of it is read.
const MAX_REFUSAL: usize = 64 * 1024;

/// An address, the headers of the entry, and the way there.
pub struct Target {
    web: Web,
    pub url: Url,
    headers: Vec<(String, String)>,
    /// Gives requests a token, if the entry has none and somebody has signed in.
    sign_in: Option<Arc<SignIn>>,
    /// Hides what was resolved.
    pub remarks: Remarks,
}

/// A request to a server, without what its entry and its sign-in add.
pub struct TargetRequest<'a> {
    pub method: &'a str,
    pub url: &'a Url,
    pub headers: Vec<(String, String)>,
    pub body: Option<Bytes>,
}

/// Why a request got no usable response.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    #[error("wants a sign-in ({0})")]
    NeedsAuth(u16),
    #[error("answered {status}{said}")]
    Status { status: u16, said: String },
    /// A success that is no answer.
    #[error("{0}")]
    Unusable(String),
    #[error("session expired")]
    SessionExpired,
    #[error("{0}")]
    Unreachable(String),
}

impl Fault {
    /// Whether the same request may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            Fault::Unreachable(_) | Fault::SessionExpired => true,
            Fault::NeedsAuth(_) | Fault::Unusable(_) => false,
        }
    }
}

impl Target {
    /// Resolves the values of an entry. Nothing is sent with an empty secret, or with one that everybody can read.
    pub async fn resolve(config: &ServerConfig, remote: &Remote, launch: &Launch) -> Result<Target, Failure> {
        let values = Values { launch, config };
        let address = values.resolve(&remote.url).await?;
        let url = Url::parse(&address).map_err(|error| Failure::failed(format!("url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::failed("url: it must begin with http:// or https://"));
        }
        let mut headers = Vec::new();
        for (name, value) in &remote.headers {
            headers.push((name.clone(), values.resolve(value).await?));
        }
        let is_authorization = |name: &str| name.eq_ignore_ascii_case("authorization");
        let has_own = headers.iter().any(|(name, _)| is_authorization(name));
        if let Some(token) = remote.bearer.as_ref().filter(|_| !has_own) {
            headers.push(("Authorization".to_owned(), format!("Bearer {}", values.resolve(token).await?)));
        }
        let has_secret = user_info(&url).next().is_some() || headers.iter().any(|(name, _)| is_authorization(name));
        if url.scheme() == "http" && has_secret && !is_loopback(&url) {
            return Err(Failure::failed(
                "url: http:// would show the credentials to everybody on the way; use https://",
            ));
        }
        let remarks = Remarks::hiding(&secrets(&url, &headers), &launch.secrets);
        let secret_headers = headers.iter().filter(|(name, _)| is_secret_name(name));
        let tokens = secret_headers.map(|(_, value)| value.split_once(' ').map_or(&**value, |(_, token)| token));
        tokens.chain(user_info(&url)).for_each(|secret| launch.secrets.remember(secret));
        let asked = url.query_pairs().filter(|(name, _)| is_secret_name(name));
        asked.for_each(|(_, value)| launch.secrets.remember(&value));
        let is_signed = headers.iter().any(|(name, _)| is_authorization(name));
        let is_safe = url.scheme() == "https" || is_loopback(&url);
        let sign_in = match &remote.oauth {
            Some(oauth) if is_safe && !is_signed => {
                let store = Store::of(&launch.sign_ins, &config.name, &url);
                let oauth = values.resolve_oauth(oauth).await?;
                let (web, secrets, renewals) = (launch.web.clone(), launch.secrets.clone(), launch.renewals.clone());
                Some(Arc::new(SignIn { web, url: url.clone(), oauth, store, secrets, renewals }))
            }
            _ => None,
        };
        Ok(Target { web: launch.web.clone(), url, headers, sign_in, remarks })
    }

    /// How users sign in, unless the entry has credentials of its own.
    pub fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_deref()
    }

    /// Quotes the beginning of a body. It is masked as a whole, because a part of a secret is not recognized as one.
    pub fn quoted(&self, body: &[u8]) -> String {
        let text = self.remarks.masked(&String::from_utf8_lossy(body));
        let text = cut(&text, SHOWN_BODY).split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { String::new() } else { format!(": {text}") }
    }

    /// Sends a request without the token of a sign-in.
    pub async fn send_plain(&self, request: &TargetRequest<'_>) -> Result<WebResponse, Fault> {
        self.send_with(None, request).await
    }

    /// Sends a request with the token of a sign-in, if there is one. What the token may not do is noted.
    pub async fn send(&self, request: &TargetRequest<'_>) -> Result<WebResponse, Fault> {
        let Some(sign_in) = &self.sign_in else { return self.send_plain(request).await };
        let response = self.send_signed(sign_in, request).await?;
        if response.status == 403
            && let Some(scope) = challenge(&response).missing_scope()
        {
            sign_in.note_missing(scope).await;
        }
        Ok(response)
    }

    /// Sends a request with the token of a sign-in. A refused token is renewed once.
    async fn send_signed(&self, sign_in: &Arc<SignIn>, request: &TargetRequest<'_>) -> Result<WebResponse, Fault> {
        let token = sign_in.token().await;
        let response = self.send_with(token.as_deref(), request).await?;
        let (401, Some(stale)) = (response.status, token) else { return Ok(response) };
        match sign_in.renew(&stale, &challenge(&response)).await {
            Ok(token) => self.send_with(Some(&token), request).await,
            Err(why) => {
                debug!(target: "pith::mcp", why, "the sign-in was not renewed");
                Ok(response)
            }
        }
    }

    /// Sends a request, and again where the same origin sends it on.
    async fn send_with(&self, token: Option<&str>, request: &TargetRequest<'_>) -> Result<WebResponse, Fault> {
        let mut headers: Vec<(String, String)> = self.headers.iter().chain(&request.headers).cloned().collect();
        if let Some(token) = token {
            self.remarks.hide(token);
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let request = WebRequest {
                method: request.method.to_owned(),
                url: url.to_string(),
                headers: headers.clone(),
                body: request.body.clone(),
                redirect: Redirect::Manual,
            };
            let response = self.web.send(request).await.map_err(Fault::Unreachable)?;
            // All of them keep the method: a message that has become a GET says nothing.
            let is_sent_on = matches!(response.status, 301 | 302 | 307 | 308);
            let location = header(&response, "location").filter(|_| is_sent_on);
            let Some(location) = location else { return Ok(response) };
            let target = url.join(location).map_err(|error| Fault::Unusable(format!("sends requests on: {error}")))?;
            if target.origin() != url.origin() {
                let place = target.origin().ascii_serialization();
                return Err(Fault::Unusable(format!("sends requests on to {place}, which pith does not follow")));
            }
            url = target;
        }
        Err(Fault::Unusable(format!("sent the request on more than {MAX_REDIRECTS} times")))
    }
}

/// The credentials in an address: a password, or a name alone, which is how tokens are written there.
fn user_info(url: &Url) -> impl Iterator<Item = &str> {
    let token = Some(url.username()).filter(|name| !name.is_empty());
    url.password().or(token).into_iter()
}

/// Everything in a request that nobody may read.
fn secrets(url: &Url, headers: &[(String, String)]) -> Vec<String> {
    let mut secrets: Vec<String> = url.query().map(str::to_owned).into_iter().collect();
    secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    secrets.extend(user_info(url).map(str::to_owned));
    for (_, value) in headers {
        secrets.push(value.clone());
        secrets.extend(value.split_once(' ').map(|(_, token)| token.trim().to_owned()));
    }
    secrets
}

/// Returns a header of a response.
pub fn header<'a>(response: &'a WebResponse, name: &str) -> Option<&'a str> {
    response.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// Returns what a response says about signing in.
pub fn challenge(response: &WebResponse) -> Challenge {
    header(response, "www-authenticate").map(Challenge::read).unwrap_or_default()
}

/// Reads a body of at most `limit` bytes.
pub async fn read_body(response: &mut WebResponse, limit: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Fault::Unreachable)? {
        if body.len() + chunk.len() > limit {
            return Err(Fault::Unusable(format!("sent an answer longer than {} MiB", limit >> 20)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Reads the beginning of a body that says why there is no answer.
pub async fn read_refusal(response: &mut WebResponse) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REFUSAL {
            break;
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_secret_shows_where_a_body_is_cut() {
        let remarks = Remarks::hiding(&["sk-12345678".to_owned()], &Arc::default());
        let url = Url::parse("https://example.com").expect("an address");
        let target = Target { web: Web::default(), url, headers: Vec::new(), sign_in: None, remarks };
        let (before, after) = ("x".repeat(SHOWN_BODY - 5), "y".repeat(1000));
        assert_eq!(target.quoted(format!("{before}sk-12345678{after}").as_bytes()), format!(": {before}[reda"));
        assert_eq!(target.quoted(b" \n"), "");
    }
}
