//! Requests to an authorization server.

use std::time::Duration;

use bytes::Bytes;
use pith_ai::{Redirect, Web, WebRequest};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::form_urlencoded::Serializer;
use url::{Host, Url};

/// How long an authorization server may take to answer.
const LIMIT: Duration = Duration::from_secs(15);
const MAX_BODY: usize = 1 << 20;

/// What an authorization server answered.
pub struct Answer {
    pub status: u16,
    pub body: Option<Map<String, Value>>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body of a success, else what the server says is wrong.
    pub fn accepted(self, what: &str) -> Result<Map<String, Value>, String> {
        let is_success = self.is_success();
        match self.body {
            Some(body) if is_success => Ok(body),
            Some(body) => {
                let text = |key: &str| body.get(key).and_then(Value::as_str);
                let said = text("error_description").or(text("error")).unwrap_or("no reason given");
                Err(format!("{what}: {said} ({})", self.status))
            }
            None => Err(format!("{what}: answered {} without JSON", self.status)),
        }
    }
}

/// Asks for a JSON document.
pub async fn get(web: &Web, url: &Url) -> Result<Answer, String> {
    send(web, "GET", url, Vec::new(), None).await
}

/// Sends a JSON document.
pub async fn post_json(web: &Web, url: &Url, body: &Value) -> Result<Answer, String> {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    send(web, "POST", url, headers, Some(body.to_string().into())).await
}

/// Sends a form.
pub async fn post_form(
    web: &Web,
    url: &Url,
    fields: &[(&str, &str)],
    authorization: Option<String>,
) -> Result<Answer, String> {
    let body = Serializer::new(String::new()).extend_pairs(fields).finish();
    let mut headers = vec![("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
    headers.extend(authorization.map(|value| ("Authorization".to_owned(), value)));
    send(web, "POST", url, headers, Some(body.into())).await
}

async fn send(
    web: &Web,
    method: &str,
    url: &Url,
    mut headers: Vec<(String, String)>,
    body: Option<Bytes>,
) -> Result<Answer, String> {
    if url.scheme() != "https" && !is_loopback(url) {
        return Err(format!("{}: a sign-in needs https://", url.origin().ascii_serialization()));
    }
    headers.push(("Accept".to_owned(), "application/json".to_owned()));
    // Nothing of a sign-in is sent on to another place.
    let redirect = if method == "GET" { Redirect::Follow } else { Redirect::Refuse };
    let request = WebRequest { method: method.to_owned(), url: url.to_string(), headers, body, redirect };
    let exchange = async {
        let mut response = web.send(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                return Err(format!("{}: sent more than 1 MiB", url.origin().ascii_serialization()));
            }
        }
        Ok(Answer { status: response.status, body: serde_json::from_slice(&body).ok() })
    };
    let late = |_| Err(format!("{}: no answer within {} s", url.origin().ascii_serialization(), LIMIT.as_secs()));
    timeout(LIMIT, exchange).await.unwrap_or_else(late)
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
