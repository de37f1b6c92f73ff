//! `mcp`: how sessions use MCP servers. The servers themselves have files of their own.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// How sessions use MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mcp {
    /// How long the first request waits for servers whose tools are not known. Seconds in the file.
    #[serde(deserialize_with = "seconds")]
    pub startup_wait: Duration,
    /// Whether sessions of one process use the same program of a server.
    pub share: bool,
}

impl Default for Mcp {
    fn default() -> Self {
        Mcp { startup_wait: Duration::from_secs(10), share: false }
    }
}

/// A negative number is none.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
