//! Which era of the protocol is tried first, and what follows a refusal.

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use tokio::net::unix::pipe;

use crate::config::Protocol;
use crate::handler::Handler;
use crate::stdio::Pipes;

pub type Service = RunningService<RoleClient, Handler>;

/// Shakes hands over pipes: `initialize` first, because every server that exists answers it and none can hang on it.
/// A server that knows only the newer era refuses, and is asked to introduce itself instead; next time, that comes first.
pub async fn over_pipes(
    protocol: Protocol,
    last: Option<Era>,
    pipes: &Pipes<pipe::Receiver, pipe::Sender>,
    handler: impl Fn() -> Handler,
) -> Result<Service, Refusal> {
    let serve = |mode| serve_client_with_lifecycle(handler(), pipes.clone(), mode);
    let served = match protocol {
        Protocol::Legacy => serve(ClientLifecycleMode::Initialize).await,
        Protocol::Modern => serve(modern_era()).await,
        Protocol::Auto => {
            let (first, second) = match last {
                Some(Era::Newer) => (modern_era(), ClientLifecycleMode::Initialize),
                Some(Era::Older | Era::Sse) | None => (ClientLifecycleMode::Initialize, modern_era()),
            };
            match serve(first).await {
                Err(refusal @ ClientInitializeError::JsonRpcError(_)) => match serve(second).await {
                    Err(error) if says_less(&error, &refusal) => Err(refusal),
                    served => served,
                },
                served => served,
            }
        }
    };
    known_version(served.map_err(|error| Refusal::of(&error))?)
}

/// Whether the refusal of the other era explains less than that of the first: it is not known there, or asking for it
/// was too much for the server.
fn says_less(error: &ClientInitializeError, first: &ClientInitializeError) -> bool {
    is_unknown_method(error) || (is_lost(error) && !is_unknown_method(first))
}

/// Whether a server only says that it does not know a handshake.
pub fn is_unknown_method(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::JsonRpcError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
}

/// Which of the protocols a server spoke when it was last connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// With a handshake, over the transport of 2024-11-05.
    Sse,
    /// With a handshake.
    Older,
    Newer,
}

impl Era {
    /// The era of a version, over a transport of today.
    pub fn of(version: &str) -> Self {
        if version == ProtocolVersion::LATEST.as_str() { Era::Newer } else { Era::Older }
    }
}

/// The way to open a connection of the newer era.
pub fn modern_era() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
}

/// Why there is no connection.
pub enum Refusal {
    /// The server has said so, or what it said cannot be used.
    Said(String),
    /// The connection was lost; what became of the program says more.
    Lost(String),
}

impl Refusal {
    fn of(error: &ClientInitializeError) -> Self {
        if is_lost(error) { Refusal::Lost(said(error)) } else { Refusal::Said(said(error)) }
    }
}

/// Whether a handshake has failed without an answer.
fn is_lost(error: &ClientInitializeError) -> bool {
    !matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
            | ClientInitializeError::ExpectedInitResponse(Some(_))
            | ClientInitializeError::ExpectedInitResult(Some(_))
    )
}

/// Refuses a server that speaks a version nobody here knows.
pub fn known_version(service: Service) -> Result<Service, Refusal> {
    let spoken = service.peer().peer_info().map(|info| info.protocol_version.clone());
    match spoken {
        Some(version) if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) => {
            let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            Err(Refusal::Said(format!("speaks {version}, pith knows {}", known.join(", "))))
        }
        _ => Ok(service),
    }
}

/// What went wrong, without the frames that rmcp quotes.
pub fn said(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            format!("refused the handshake: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::ConnectionClosed(_) => "closed the connection during the handshake".to_owned(),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let spoken: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            format!("speaks {}, pith knows {}", spoken.join(", "), known.join(", "))
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "did not answer the handshake as MCP servers do".to_owned()
        }
        other => format!("the handshake failed: {other}"),
    }
}
