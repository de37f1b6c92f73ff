//! Texts of transport faults. Hosts and the retry lists look for their first words.

use std::error::Error;
use std::io;
use std::time::Duration;

use pith_config::Environment;
use pith_protocol::ErrorKind;
use reqwest::Url;
use rustls::CertificateError;

use super::connection_error::ConnectionError;
use crate::credentials::Credentials;
use crate::failure::Fault;
use crate::network::{self, Proxy};
use pith_secrets::is_secret_name;

/// Makes the fault of a request that got no answer; `proxy` is the one it went through.
pub(super) fn unreachable(url: &Url, error: &reqwest::Error, proxy: Option<&Proxy>) -> Fault {
    let what = ConnectionError::of(error);
    let kind = match &what {
        ConnectionError::ProxyPassword => ErrorKind::Auth,
        _ if error.is_timeout() => ErrorKind::Timeout,
        _ => ErrorKind::Network,
    };
    let place = place(url);
    let reason = match (&what, proxy) {
        (ConnectionError::Certificate(error), _) => format!("could not reach {place}: {}", certificate(error, url)),
        (ConnectionError::NotTls, _) => {
            format!("could not reach {place}: it does not speak TLS. An address of plain HTTP begins with http://")
        }
        (ConnectionError::Handshake(reason), _) => format!("could not reach {place}: no TLS connection: {reason}"),
        (ConnectionError::ProxyPassword, Some(proxy)) => format!("could not reach {place}: {}", proxy_password(proxy)),
        (ConnectionError::ProxyRefusal, Some(proxy)) => {
            format!("could not reach {place}: {} refused to connect to it", shown(proxy))
        }
        (ConnectionError::NoSocksProxy, Some(proxy)) => {
            format!("could not reach {place}: {} does not answer as a SOCKS proxy does", shown(proxy))
        }
        (ConnectionError::UnreachableFromProxy(why), Some(proxy)) => {
            format!("could not reach {place}: {} says: {why}", shown(proxy))
        }
        (ConnectionError::Unreachable, Some(proxy)) => {
            format!("could not reach {}, which is to lead to {place}: {}", shown(proxy), cause(error))
        }
        (ConnectionError::NoAnswer, _) => {
            format!("reached {place}, but the connection closed before the answer: {}", cause(error))
        }
        (
            ConnectionError::Unreachable
            | ConnectionError::UnknownHost
            | ConnectionError::ProxyPassword
            | ConnectionError::ProxyRefusal
            | ConnectionError::NoSocksProxy
            | ConnectionError::UnreachableFromProxy(_),
            _,
        ) => format!("could not reach {place}: {}", cause(error)),
    };
    let mut fault = Fault::new(kind, format!("Connection error: {reason}"));
    fault.failure.should_retry = what.is_lasting().then_some(false);
    fault
}

/// Returns the text for a proxy that refuses plain HTTP without a password, or with a wrong one.
pub(super) fn proxy_password(proxy: &Proxy) -> String {
    format!(
        "{} refused its user name and password, or got none. They are written http://user:password@host:port",
        shown(proxy)
    )
}

fn shown(proxy: &Proxy) -> String {
    format!("the proxy {} ({})", proxy.value, proxy.place)
}

/// Returns the host of an address, with its port unless it is the usual one.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Says what is wrong with a certificate, and what helps.
fn certificate(error: &CertificateError, url: &Url) -> String {
    match error {
        CertificateError::UnknownIssuer => format!(
            "invalid certificate: it is signed by an authority that is not known here (UnknownIssuer). {}",
            authority_hint()
        ),
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            let host = url.host_str().unwrap_or_default();
            format!("invalid certificate: it is for {}, not for {host}", names.join(", "))
        }
        other => format!("invalid certificate: {}", rustls::Error::InvalidCertificate(other.clone())),
    }
}

/// Returns `a.test` for `DnsName("a.test")`.
fn plain_name(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

/// Says how to make an authority known.
fn authority_hint() -> String {
    let environment = Environment::of_process();
    let missing = network::unreadable_certificates(&environment);
    if let Some((name, path, reason)) = missing.first() {
        return format!("{name} names {}, which cannot be read: {reason}", path.display());
    }
    "The authority of a company is made known by NODE_EXTRA_CA_CERTS or SSL_CERT_FILE, which name a file with its \
     certificate"
        .to_owned()
}

/// Makes the fault of an address that is not valid.
pub(super) fn bad_url(url: &str, reason: &str) -> Fault {
    Fault::new(ErrorKind::InvalidRequest, format!("Invalid URL {}: {reason}", network::without_credentials(url)))
}

/// Makes the fault of a connection that broke during a response, or of a response that is not HTTP.
pub(super) fn lost(error: &reqwest::Error) -> Fault {
    // Errors of the connection are wrapped once more; this one is the decompressor's own.
    let decompressor = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if decompressor.is_some_and(|error| error.kind() != io::ErrorKind::UnexpectedEof) {
        let text = format!("The server's answer cannot be decompressed: {}", cause(error));
        return Fault::new(ErrorKind::Protocol, text);
    }
    Fault::new(ErrorKind::Network, format!("Connection lost: {}", cause(error)))
}

/// Makes the fault of a body in an unknown compression.
pub(super) fn unreadable(encoding: &str) -> Fault {
    let text = format!("The server compressed its answer with \"{encoding}\", which pith cannot read");
    Fault::new(ErrorKind::Protocol, text)
}

/// Makes the fault of a response that is larger than any answer.
pub(super) fn too_long(max: u64) -> Fault {
    Fault::new(ErrorKind::Protocol, format!("The answer is longer than {} MiB", max >> 20))
}

/// Makes the fault of a server that was silent for too long.
pub(super) fn silent(limit: Duration) -> Fault {
    Fault::new(ErrorKind::Timeout, format!("Request timed out: no data for {} s", limit.as_secs_f64()))
}

/// Makes the fault of a request that took too long as a whole.
pub(crate) fn timed_out(limit: Duration) -> Fault {
    Fault::new(ErrorKind::Timeout, format!("Request timed out after {} s", limit.as_secs_f64()))
}

/// Returns the innermost reason; the layers above it only say that something failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Returns the secrets of a call to an address that an error text may echo.
pub fn secrets(credentials: &Credentials, address: &str) -> Vec<String> {
    let configured = credentials.headers.iter().filter(|(name, _)| is_secret_name(name));
    let values = configured.filter_map(|(_, value)| value.as_deref()).chain(credentials.api_key.as_deref());
    let bare = values.map(|value| without_scheme(value).to_owned());
    // Shorter ones are placeholders such as "none" that any text may contain.
    bare.chain(network::address_secrets(address)).filter(|value| value.len() >= 6).collect()
}

/// Returns the credential of a header's value.
pub fn without_scheme(value: &str) -> &str {
    ["Bearer ", "Basic "].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_names_are_secrets() {
        let credentials = Credentials {
            api_key: Some("sk-live-1234".into()),
            headers: vec![
                ("X-Auth-Token".into(), Some("Bearer tok-5678".into())),
                ("x-team".into(), Some("platform".into())),
                ("x-key".into(), None),
            ],
            ..Credentials::default()
        };
        assert_eq!(secrets(&credentials, "http://h"), ["tok-5678", "sk-live-1234"]);
        let shown = format!("{credentials:?}");
        assert!(shown.contains("X-Auth-Token") && !shown.contains("5678") && !shown.contains("1234"), "{shown}");
    }
}
