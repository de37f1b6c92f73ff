//! Signing in to servers at an address, and out again.

use crate::config::Transport;
use crate::http::{Target, TargetRequest, header};
use crate::oauth::{Challenge, Means};
use crate::servers::Servers;

/// A request that a server answers only to those who have signed in.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

impl Servers {
    /// Signs in to a server and keeps the sign-in.
    pub async fn login(&self, name: &str, means: Means<'_>) -> Result<(), String> {
        let target = self.remote(name).await?;
        let sign_in = target.sign_in().ok_or_else(|| {
            format!("{name} takes no sign-in: it has credentials of its own, or its address is plain http://")
        })?;
        let challenge = match &means {
            Means::Token(_) => Challenge::default(),
            Means::Browser { .. } | Means::ClientCredentials => challenge(&target).await?,
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
    Ok(header(&response, "www-authenticate").map(Challenge::read).unwrap_or_default())
}
