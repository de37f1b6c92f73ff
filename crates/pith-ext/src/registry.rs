//! What the loaded extensions have registered, as the session sees it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

/// Everything registered at one moment. Replaced as a whole when something changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Registry {
    /// Events that at least one extension listens for.
    pub listening: Vec<String>,
    pub tools: Vec<Arc<ToolInfo>>,
    pub commands: Vec<CommandInfo>,
    pub flags: Vec<FlagInfo>,
    pub shortcuts: Vec<ShortcutInfo>,
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<McpServerInfo>,
}

/// A tool of an extension.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub label: String,
    pub description: String,
    /// JSON Schema object.
    pub parameters: Arc<Value>,
    /// One line for the system prompt's tool list.
    pub prompt_snippet: Option<String>,
    /// Rules for the system prompt, used while the tool is active.
    #[serde(default)]
    pub prompt_guidelines: Vec<String>,
    pub execution_mode: ExecutionMode,
    /// Whether the tool corrects its arguments before they are checked.
    pub prepares: bool,
    /// Whether the tool wants strict sampling where the model supports it.
    pub strict: bool,
    pub extension_path: String,
    pub source_info: SourceInfo,
}

/// Whether calls of a batch may run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    Sequential,
    Parallel,
}

/// A slash command, by the name that calls it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    pub name: String,
    pub description: Option<String>,
    pub source_info: SourceInfo,
    pub extension_path: String,
    /// Whether the command can complete its arguments.
    pub completes: bool,
}

/// A command-line flag.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagInfo {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: FlagKind,
    pub description: Option<String>,
    pub default: Option<Value>,
    pub extension_path: String,
}

/// The kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    Boolean,
    String,
}

/// A key binding; recorded, but never called without a terminal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortcutInfo {
    pub key: String,
    pub description: Option<String>,
    pub extension_path: String,
}

/// An MCP server that the agent is to use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    pub name: String,
    /// An entry as in `mcp.json`.
    pub config: Value,
    pub extension_path: String,
}

/// Where a resource came from, as extensions and hosts see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceInfo {
    pub path: String,
    /// `cli`, `local`, `auto`, or the package it is from.
    pub source: String,
    /// `user`, `project` or `temporary`.
    pub scope: String,
    /// `package` or `top-level`.
    pub origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

impl Registry {
    /// Returns a tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolInfo>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns a command by the name that calls it.
    pub fn command(&self, name: &str) -> Option<&CommandInfo> {
        self.commands.iter().find(|command| command.name == name)
    }
}
