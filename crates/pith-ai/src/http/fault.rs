//! Texts of transport faults. Hosts and the retry lists look for their first words.

use std::error::Error;
use std::io;
use std::time::Duration;

use pith_protocol::ErrorKind;
use reqwest::Url;

use super::{Credentials, is_secret_name};
use crate::failure::Fault;

/// No connection, or none that answered.
pub(super) fn unreachable(url: &str, error: &reqwest::Error) -> Fault {
    let place = url.split("://").nth(1).unwrap_or(url).split(['/', '?']).next().unwrap_or_default();
    let place = place.rsplit('@').next().unwrap_or_default();
    let cause = cause(error);
    let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Network };
    Fault::new(kind, format!("Connection error: could not reach {place}: {cause}"))
}

/// An address nothing can be sent to.
pub(super) fn bad_url(url: &str, reason: &str) -> Fault {
    Fault::new(ErrorKind::InvalidRequest, format!("Invalid URL {url}: {reason}"))
}

/// An address as it may be shown.
pub(super) fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for addresses that have no host, and those have no credentials either.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.to_string()
}

/// The connection broke while a response was coming, or the response is no response.
pub(super) fn lost(error: &reqwest::Error) -> Fault {
    // Errors of the connection are wrapped once more; this one is the decompressor's own.
    let decompressor = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if decompressor.is_some_and(|error| error.kind() != io::ErrorKind::UnexpectedEof) {
        let text = format!("The server's answer cannot be decompressed: {}", cause(error));
        return Fault::new(ErrorKind::Protocol, text);
    }
    Fault::new(ErrorKind::Network, format!("Connection lost: {}", cause(error)))
}

/// The body is compressed in a way nobody here knows.
pub(super) fn unreadable(encoding: &str) -> Fault {
    let text = format!("The server compressed its answer with \"{encoding}\", which pith cannot read");
    Fault::new(ErrorKind::Protocol, text)
}

/// More came than any model says.
pub(super) fn too_long(max: u64) -> Fault {
    Fault::new(ErrorKind::Protocol, format!("The answer is longer than {} MiB", max >> 20))
}

/// Nothing came for too long.
pub(super) fn silent(limit: Duration) -> Fault {
    Fault::new(ErrorKind::Timeout, format!("Request timed out: no data for {} s", limit.as_secs_f64()))
}

/// The whole request took too long.
pub(crate) fn timed_out(limit: Duration) -> Fault {
    Fault::new(ErrorKind::Timeout, format!("Request timed out after {} s", limit.as_secs_f64()))
}

/// The innermost reason; the layers above it only say that something failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The secrets of a call that an error text may echo.
pub fn secrets(credentials: &Credentials) -> Vec<String> {
    let configured = credentials.headers.iter().filter(|(name, _)| is_secret_name(name));
    let values = configured.filter_map(|(_, value)| value.as_deref()).chain(credentials.api_key.as_deref());
    let bare = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value).trim());
    // Shorter ones are placeholders such as "none" that any text may contain.
    bare.filter(|value| value.len() >= 6).map(str::to_owned).collect()
}

/// Takes secrets out of a text.
pub fn redact(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(
        text,
        |text, secret| {
            if text.contains(secret) { text.replace(secret, "[redacted]") } else { text }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out() {
        let credentials = Credentials {
            api_key: Some("sk-live-1234".into()),
            headers: vec![
                ("X-Auth-Token".into(), Some("Bearer tok-5678".into())),
                ("x-team".into(), Some("platform".into())),
                ("x-key".into(), None),
            ],
            ..Credentials::default()
        };
        let text = "bad key sk-live-1234 of team platform with tok-5678".to_owned();
        assert_eq!(redact(text, &secrets(&credentials)), "bad key [redacted] of team platform with [redacted]");
        let shown = format!("{credentials:?}");
        assert!(shown.contains("X-Auth-Token") && !shown.contains("5678") && !shown.contains("1234"), "{shown}");
    }
}
