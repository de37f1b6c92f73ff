//! Signing in to servers at an address, and out again.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use pith_agent::BoxFuture;
use tokio::sync::oneshot;

use crate::config::Transport;
use crate::http::{self, Target, TargetRequest};
use crate::oauth::{Challenge, Means};
use crate::server::Server;
use crate::servers::Servers;

/// A request that a server answers only to those who have signed in.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// A sign-in whose page waits for the user.
pub struct PendingSignIn {
    /// The page to open.
    pub url: String,
    /// Waits for the user, and starts the server again. What comes of it is the server's state.
    pub done: BoxFuture<'static, ()>,
}

impl Servers {
    /// Begins a sign-in with a browser that somebody else opens. A newer one to the same server takes its place.
    pub async fn begin_login(&self, server: Arc<Server>) -> Result<PendingSignIn, String> {
        let replaced = server.begin_sign_in();
        let (shown, page) = oneshot::channel();
        let (servers, name) = (self.clone(), server.config.name.clone());
        let mut login = Box::pin(async move {
            let mut shown = Some(shown);
            let mut show = |page: &str| {
                if let Some(shown) = shown.take() {
                    // Nobody wants to know the page of a sign-in that was replaced.
                    let _ = shown.send(page.to_owned());
                }
            };
            let mut never = pin!(pending());
            servers.login(&name, Means::Browser { show: &mut show, pasted: &mut never }).await
        });
        let url = tokio::select! {
            biased;
            () = replaced.cancelled() => return Err("another sign-in has begun".to_owned()),
            Ok(url) = page => url,
            ended = &mut login => return Err(ended.err().unwrap_or_else(|| "it needed no page".to_owned())),
        };
        let done = Box::pin(async move {
            tokio::select! {
                biased;
                () = replaced.cancelled() => {}
                ended = login => server.end_sign_in(ended).await,
            }
        });
        Ok(PendingSignIn { url, done })
    }

    /// Signs in to a server and keeps the sign-in.
    pub async fn login(&self, name: &str, means: Means<'_>) -> Result<(), String> {
        let target = self.remote(name).await?;
        let sign_in = target.sign_in().ok_or_else(|| {
            format!("{name} takes no sign-in: it has credentials of its own, or its address is plain http://")
        })?;
        let challenge = match &means {
            Means::Token(_) => Challenge::default(),
            Means::Browser { .. } | Means::Device { .. } | Means::ClientCredentials => challenge(&target).await?,
        };
        sign_in.begin(challenge, means).await
    }

    /// Forgets the sign-in to a server; `false` if there was none.
    pub async fn logout(&self, name: &str) -> Result<bool, String> {
        let target = self.remote(name).await?;
        target.sign_in().map_or(Ok(false), |sign_in| sign_in.end())
    }

    async fn remote(&self, name: &str) -> Result<Target, String> {
        let server = self.find(name).ok_or_else(|| format!("there is no MCP server \"{name}\" (pith mcp list)"))?;
        match &server.config.transport {
            Transport::Stdio(_) => Err(format!("{name} is a program; only servers with a url take a sign-in")),
            Transport::Remote(remote) => {
                Target::resolve(&server.config, remote, &server.launch).await.map_err(|failure| failure.why)
            }
        }
    }
}

/// Asks a server, without a token, where to sign in.
async fn challenge(target: &Target) -> Result<Challenge, String> {
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let request = TargetRequest { method: "POST", url: &target.url, headers, body: Some(PROBE.into()) };
    let response = target.send_plain(&request).await.map_err(|fault| fault.to_string())?;
    Ok(http::challenge(&response))
}
