//! The `data` of responses.

mod checkpoints;
mod hello;
mod mcp;
mod project;
mod sandbox;
mod tree;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::{Answer, InterruptMode, QueueMode};
use crate::todos::TodoPhase;
use crate::{LimitUse, Message, Model, ThinkingLevel, Usage};

pub use checkpoints::{
    CheckpointCoverage, CheckpointFile, Checkpoints, FileChange, ListedCheckpoint, Restored, SkippedFile,
};
pub use hello::{Accept, Capabilities, Client, Greeting, Limits, PROTOCOL_VERSION, Server, Wire};
pub use mcp::{McpServer, McpServerInfo, McpServerState, McpServerStates, McpServers, McpSignIn, McpTool};
pub use project::{
    Collision, Commands, Connection, ConnectionState, Diagnostic, DiagnosticKind, Diagnostics, Integrations,
    OfferedCommand, Reloaded, ResourceChange, Service, ServiceState, Source,
};
pub use sandbox::SandboxState;
pub use tree::{Entries, FlatNode, ForkMessage, ForkMessages, ListedSession, Navigated, Sessions, Tree, TreeNode};

/// What became of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// A run started.
    Started,
    /// It waits in a queue.
    Queued,
    /// An extension took it.
    Handled,
}

/// Answer of `prompt`, `steer`, `follow_up`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptDisposition {
    pub disposition: Disposition,
}

/// Texts of the two queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    pub steering: Vec<String>,
    pub follow_up: Vec<String>,
}

/// Answer of session-replacing commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    pub cancelled: bool,
}

/// Answer of `fork` and `branch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// The prompt that was taken back, for editing; absent when cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub cancelled: bool,
    /// The files that went back, if the host asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Vec<String>>,
    /// Those that stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<SkippedFile>>,
}

/// Answer of `get_state`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub model: Option<Arc<Model>>,
    pub thinking_level: ThinkingLevel,
    pub is_streaming: bool,
    pub is_compacting: bool,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub interrupt_mode: InterruptMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    pub auto_compaction_enabled: bool,
    pub message_count: usize,
    pub pending_message_count: usize,
    pub queued_message_count: usize,
    pub todo_phases: Vec<TodoPhase>,
    /// Set after a failed write; the session goes on in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_write_error: Option<String>,
    /// The MCP servers, once they are known and if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServerState>,
    /// What holds tools back, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxState>,
    /// The limits and what was used of them, if any is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// Present only while the session is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// Whether a tool call waits for an answer of the user; absent if none does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_waiting_for_permission: bool,
    /// Large; only hosts that ask for it by their dialect get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Arc<str>>,
    /// As above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dump_tools: Option<Vec<DumpedTool>>,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DumpedTool {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub parameters: Value,
}

/// Answer of `get_messages`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    pub messages: Vec<Arc<Message>>,
}

/// Answer of `get_last_assistant_text`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastText {
    pub text: Option<String>,
}

/// Answer of `get_session_stats`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    pub session_id: String,
    pub user_messages: u64,
    pub assistant_messages: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
    pub total_messages: u64,
    pub tokens: TokenTotals,
    pub cost: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub premium_requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Sums over a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenTotals {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub total: u64,
}

/// How full the model's window is; unknown right after a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    pub tokens: Option<u64>,
    pub context_window: u64,
    pub percent: Option<f64>,
}

/// Answer of `cycle_model`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    pub model: Arc<Model>,
    pub thinking_level: ThinkingLevel,
    pub is_scoped: bool,
}

/// Answer of `get_available_models`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    pub models: Vec<Arc<Model>>,
}

/// Answer of `cycle_thinking_level`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    pub level: ThinkingLevel,
}

/// Answer of `get_available_thinking_levels`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Levels {
    pub levels: Vec<ThinkingLevel>,
}

/// Answer of `bash`: the union of what pi and xcsh hosts read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    pub total_lines: u64,
    pub total_bytes: u64,
    pub output_lines: u64,
    pub output_bytes: u64,
}

/// Answer of `compact`, and the `result` of the event that ends a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    pub summary: String,
    /// The oldest entry that the model still sees as it is.
    pub first_kept_entry_id: String,
    pub tokens_before: u64,
    pub estimated_tokens_after: u64,
    /// What the summary has cost; absent when an extension wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// `readFiles` and `modifiedFiles`, or whatever the extension that wrote the summary says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Answer of `export_html`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// Absolute.
    pub path: String,
}

/// Answer of `set_todos`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TodoPhases {
    pub todo_phases: Vec<TodoPhase>,
}

/// Answer of `set_host_tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolNames {
    pub tool_names: Vec<String>,
}

impl Answer for () {
    const HAS_DATA: bool = false;
}

macro_rules! answers {
    ($($name:ty),* $(,)?) => { $(impl Answer for $name {})* };
}

answers!(
    PromptDisposition,
    Queues,
    Cancelled,
    State,
    Messages,
    LastText,
    SessionStats,
    Option<CycledModel>,
    Models,
    Model,
    Option<Level>,
    Levels,
    BashResult,
    Forked,
    CompactionResult,
    Exported,
    TodoPhases,
    HostToolNames,
    Commands,
    Diagnostics,
    Reloaded,
    Integrations,
    ForkMessages,
    Entries,
    Tree,
    Navigated,
    Sessions,
    Checkpoints,
    Restored,
    Greeting,
);
