//! Answers about MCP servers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::Answer;

/// Answer of `set_mcp_servers`, `mcp_reconnect` and `set_mcp_enabled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerStates {
    pub servers: Vec<McpServerState>,
}

/// Where a server stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerState {
    pub name: String,
    /// `flag`, `host`, `project`, `user` or `extension`.
    pub source: String,
    /// `disabled`, `idle`, `starting`, `ready`, `needs_auth`, `needs_input` or `failed`.
    pub state: String,
    /// Why it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the user can run about it, if it is `needs_auth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Answer of `mcp_login`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpSignIn {
    /// The page on which the user signs in. It leads back to pith, on this machine, within five minutes.
    pub url: String,
}

/// Answer of `get_mcp_servers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServers {
    pub servers: Vec<McpServer>,
}

/// A server and what it offers, as far as that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    #[serde(flatten)]
    pub state: McpServerState,
    /// `stdio`, `http` or `sse`.
    pub transport: String,
    /// The file it is configured in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<McpServerInfo>,
    /// `direct`, `deferred` or `hidden`; `auto` while its tools are not known.
    pub exposure: String,
    pub tools: Vec<McpTool>,
    /// Slash commands that call its prompts, without the slash.
    #[serde(default)]
    pub prompts: Vec<String>,
    pub has_resources: bool,
    /// How many calls it has got in this session.
    pub calls: u64,
    /// How often it was started again in this session.
    pub restarts: u64,
}

/// Name and version of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerInfo {
    pub name: String,
    pub version: String,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpTool {
    /// As the model calls it.
    pub name: String,
    /// As the server calls it.
    pub tool: String,
    /// Hints of the server, not facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
}

impl Answer for McpServerStates {}
impl Answer for McpServers {}
impl Answer for McpSignIn {}
