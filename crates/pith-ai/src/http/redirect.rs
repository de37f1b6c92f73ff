//! Requests whose server has moved.
//!
//! A model call is a `POST`, and only 307 and 308 promise that it stays one.
//! The others would turn it into a `GET` without a conversation, so they are
//! refused with the address they name: usually a login page, or the address
//! that belongs in the configuration.

use pith_protocol::ErrorKind;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};

use crate::failure::Fault;
use crate::network;
use pith_secrets::is_secret_name;

/// How many redirects one request follows.
const MAX_REDIRECTS: usize = 5;

/// Where a request goes and what it carries there.
pub(super) struct Target<'a> {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    /// Values that no other server may see, under whatever name they are sent.
    secrets: &'a [String],
    n_redirects: usize,
    has_lost_credentials: bool,
}

impl<'a> Target<'a> {
    /// Makes the first target of a request.
    pub fn new(method: Method, url: Url, headers: HeaderMap, secrets: &'a [String]) -> Self {
        Target { method, url, headers, secrets, n_redirects: 0, has_lost_credentials: false }
    }

    /// Turns to the address a redirect names and returns true; false when the answer is no redirect.
    pub fn follow(&mut self, status: StatusCode, answer: &HeaderMap) -> Result<bool, Fault> {
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = answer.get("location").filter(|_| is_redirect).and_then(|location| location.to_str().ok());
        let Some(location) = location else { return Ok(false) };
        let refuse = |reason: String| {
            let mut fault = Fault::new(ErrorKind::InvalidRequest, format!("{}: {reason}", status.as_u16()));
            fault.failure.status = Some(status.as_u16());
            Err(fault)
        };
        if self.method != Method::GET && !matches!(status.as_u16(), 307 | 308) {
            return refuse(format!(
                "the server redirects to {location}, and such a redirect drops the request's body. \
                 If that is where the API is, set \"baseUrl\" to it"
            ));
        }
        if self.n_redirects == MAX_REDIRECTS {
            return refuse(format!("redirected more than {MAX_REDIRECTS} times, last to {location}"));
        }
        let mut next = match self.url.join(location) {
            Ok(next) => next,
            Err(error) => return refuse(format!("Invalid redirect to {location}: {error}")),
        };
        match (self.url.scheme(), next.scheme()) {
            (_, "https") | ("http", "http") => {}
            ("https", "http") => {
                return refuse(format!("the server redirects from https to {location}, which anyone could read"));
            }
            (_, other) => return refuse(format!("the server redirects to {location}; the scheme {other} is unknown")),
        }
        if next.origin() == self.url.origin() {
            keep_credentials(&self.url, &mut next);
        } else {
            self.drop_credentials();
        }
        self.url = next;
        self.n_redirects += 1;
        Ok(true)
    }

    /// Adds the redirects on the way to a refusal of the last server.
    pub fn explain(&self, fault: &mut Fault) {
        if self.has_lost_credentials && fault.failure.kind == ErrorKind::Auth {
            let place = network::without_credentials(self.url.as_str());
            fault.text += &format!(
                " (redirected to {place}, where the credentials were not sent because it is another origin; \
                 set \"baseUrl\" to it if it may have them)"
            );
        }
    }

    fn drop_credentials(&mut self) {
        let names: Vec<_> = self.headers.keys().cloned().collect();
        for name in names {
            let value = self.headers.get(&name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let is_secret = is_secret_name(name.as_str()) || self.secrets.iter().any(|secret| value.contains(secret));
            if is_secret {
                self.headers.remove(&name);
                self.has_lost_credentials = true;
            }
        }
    }
}

/// Hands user name and password of an address on to another one of the same origin.
fn keep_credentials(from: &Url, to: &mut Url) {
    if to.username().is_empty() && to.password().is_none() {
        // Fails only for addresses without a host, which have no origin to share.
        let _ = to.set_username(from.username()).and_then(|()| to.set_password(from.password()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: Method, url: &str) -> Target<'static> {
        Target::new(method, Url::parse(url).expect("an address"), HeaderMap::new(), &[])
    }

    fn follow(target: &mut Target<'_>, status: u16, location: &str) -> Result<bool, String> {
        let answer = HeaderMap::from_iter([(reqwest::header::LOCATION, location.parse().expect("a value"))]);
        target.follow(StatusCode::from_u16(status).expect("a status"), &answer).map_err(|fault| fault.text)
    }

    #[test]
    fn nothing_goes_from_https_to_plain_http() {
        let mut target = target(Method::POST, "https://api.test/v1");
        let refused = follow(&mut target, 307, "http://api.test/v1").expect_err("refused");
        assert_eq!(refused, "307: the server redirects from https to http://api.test/v1, which anyone could read");
        assert_eq!(follow(&mut target, 307, "//other.test/v1"), Ok(true));
        assert_eq!(target.url.as_str(), "https://other.test/v1");
    }

    #[test]
    fn a_question_without_a_body_follows_every_redirect() {
        let mut target = target(Method::GET, "http://api.test/models");
        assert_eq!(follow(&mut target, 302, "/v1/models"), Ok(true));
        assert_eq!(follow(&mut target, 200, "/elsewhere"), Ok(false));
        assert_eq!(target.url.as_str(), "http://api.test/v1/models");
    }
}
