//! Why a request got no answer: the errors of the libraries below, told apart by
//! what a person can do about them.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// What went wrong with a connection.
#[derive(Debug, PartialEq)]
pub(super) enum ConnectionError {
    /// The server's certificate cannot be accepted.
    Certificate(CertificateError),
    /// The server answers in something else than TLS.
    NotTls,
    /// The two sides have no way of speaking TLS in common, or the server wants to know who is calling.
    Handshake(String),
    /// The proxy wants a password, or another one.
    ProxyPassword,
    /// The proxy does not let the connection through.
    ProxyRefusal,
    /// The proxy was reached and does not answer as a SOCKS proxy does.
    NoSocksProxy,
    /// The proxy was reached and says why it cannot reach the server.
    UnreachableFromProxy(String),
    /// The name of the server is not known, whatever leads to it.
    UnknownHost,
    /// The server could not be reached, or the proxy that is to lead to it.
    Unreachable,
    /// The server was reached and said nothing.
    NoAnswer,
}

impl ConnectionError {
    /// Classifies the error of a request.
    pub fn of(error: &reqwest::Error) -> Self {
        if let Some(found) = causes(error).find_map(|cause| tls(cause).or_else(|| proxy(cause))) {
            return found;
        }
        if error.is_connect() || error.is_timeout() { ConnectionError::Unreachable } else { ConnectionError::NoAnswer }
    }

    /// Whether another try would fail in the same way.
    pub fn is_lasting(&self) -> bool {
        match self {
            ConnectionError::Certificate(_)
            | ConnectionError::NotTls
            | ConnectionError::Handshake(_)
            | ConnectionError::ProxyPassword => true,
            ConnectionError::ProxyRefusal
            | ConnectionError::NoSocksProxy
            | ConnectionError::UnreachableFromProxy(_)
            | ConnectionError::UnknownHost
            | ConnectionError::Unreachable
            | ConnectionError::NoAnswer => false,
        }
    }
}

/// Returns an error and its causes. `source` leaves out what an `io::Error` carries, so it is asked for that as well.
/// into.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        let inner = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    }
    std::iter::successors(Some(error), |error| cause(*error))
}

fn tls(cause: &(dyn Error + 'static)) -> Option<ConnectionError> {
    use rustls::Error as Tls;
    Some(match cause.downcast_ref::<Tls>()? {
        Tls::InvalidCertificate(error) => ConnectionError::Certificate(error.clone()),
        Tls::InvalidMessage(InvalidMessage::InvalidContentType) => ConnectionError::NotTls,
        Tls::AlertReceived(alert) if is_passing(*alert) => return None,
        error @ (Tls::AlertReceived(_)
        | Tls::PeerIncompatible(_)
        | Tls::PeerMisbehaved(_)
        | Tls::InvalidMessage(_)
        | Tls::NoCertificatesPresented
        | Tls::NoApplicationProtocol) => ConnectionError::Handshake(error.to_string()),
        _ => return None,
    })
}

fn is_passing(alert: AlertDescription) -> bool {
    matches!(alert, AlertDescription::CloseNotify | AlertDescription::InternalError | AlertDescription::UserCanceled)
}

/// Classifies the error of a proxy by its text: errors of tunnels have no public type.
fn proxy(cause: &(dyn Error + 'static)) -> Option<ConnectionError> {
    let text = cause.to_string();
    match (text.as_str(), text.strip_prefix("SOCKS error: ")) {
        ("tunnel error: proxy authorization required", _) => Some(ConnectionError::ProxyPassword),
        ("tunnel error: unsuccessful", _) => Some(ConnectionError::ProxyRefusal),
        ("error resolving for socks proxy", _) => Some(ConnectionError::UnknownHost),
        (_, Some(problem)) => socks(problem),
        (_, None) => None,
    }
}

fn socks(problem: &str) -> Option<ConnectionError> {
    match problem {
        "credentials not accepted" | "server does not support user/pass authentication" => {
            Some(ConnectionError::ProxyPassword)
        }
        "connection not allowed" => Some(ConnectionError::ProxyRefusal),
        "failed parsing server response"
        | "io error during SOCKS handshake"
        | "server implements authentication incorrectly" => Some(ConnectionError::NoSocksProxy),
        // What the proxy itself reports, of SOCKS 5 and 4.
        "general server failure"
        | "network unreachable"
        | "host unreachable"
        | "connection refused"
        | "ttl expired"
        | "command not supported"
        | "address type not supported"
        | "server failed to execute command"
        | "server ident service failed"
        | "server ident service did not recognise client identifier" => {
            Some(ConnectionError::UnreachableFromProxy(problem.to_owned()))
        }
        _ => None,
    }
}
