//! Everything pith tells the host without being asked. Frames that are sent borrow what they show; frames that are
//! read own it.

mod growth;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::answers::CompactionResult;
use crate::todos::TodoTask;
use crate::{Amount, Block, Entry, LimitName, LimitPhase, LimitUse, Message, ThinkingLevel, Usage};

pub use growth::{Growth, MessageUpdate, Step};

/// An event frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event<'a> {
    AgentStart,
    AgentEnd {
        messages: Cow<'a, [Arc<Message>]>,
        will_retry: bool,
    },
    AgentSettled {
        aborted: bool,
        /// The limit of the session that ended the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<LimitUse>,
    },
    TurnStart,
    TurnEnd {
        message: Cow<'a, Message>,
        tool_results: Cow<'a, [Arc<Message>]>,
    },
    MessageStart {
        message: Cow<'a, Message>,
    },
    MessageEnd {
        message: Cow<'a, Message>,
    },
    /// Sent by [`crate::live`], which copies encoded bytes; this is how it is read.
    MessageUpdate(Box<MessageUpdate>),
    ToolExecutionStart {
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        args: Cow<'a, Map<String, Value>>,
    },
    ToolExecutionUpdate {
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        args: Cow<'a, Map<String, Value>>,
        partial_result: ToolResult<'a>,
    },
    ToolExecutionEnd {
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        result: ToolResult<'a>,
        is_error: bool,
    },
    QueueUpdate {
        steering: Cow<'a, [Cow<'a, str>]>,
        follow_up: Cow<'a, [Cow<'a, str>]>,
    },
    CompactionStart {
        reason: CompactionReason,
    },
    CompactionEnd {
        reason: CompactionReason,
        result: Option<Cow<'a, CompactionResult>>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<Cow<'a, str>>,
    },
    /// `compaction_start` in the words of xcsh.
    AutoCompactionStart {
        reason: CompactionReason,
        /// Always `context-full`.
        action: Cow<'a, str>,
    },
    /// `compaction_end` in the words of xcsh.
    AutoCompactionEnd {
        /// Always `context-full`.
        action: Cow<'a, str>,
        result: Option<Cow<'a, CompactionResult>>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<Cow<'a, str>>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: Cow<'a, str>,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<Cow<'a, str>>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    SessionInfoChanged {
        /// Absent when the name was taken away.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<Cow<'a, str>>,
    },
    EntryAppended {
        entry: Cow<'a, Entry>,
    },
    BashExecutionUpdate {
        /// That of the `bash` command.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
        id: Option<Cow<'a, RawValue>>,
        delta: Cow<'a, str>,
    },
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: Cow<'a, str>,
    },
    SummarizationRetryAttemptStart {
        source: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    SummarizationRetryFinished,
    ExtensionError {
        extension_path: Cow<'a, str>,
        event: Cow<'a, str>,
        error: Cow<'a, str>,
    },
    TtsrTriggered {
        rules: Cow<'a, [TriggeredRule]>,
    },
    TodoReminder {
        todos: Cow<'a, [TodoTask]>,
        attempt: u32,
        max_attempts: u32,
    },
    TodoAutoClear,
    RetryFallbackApplied {
        from: Cow<'a, str>,
        to: Cow<'a, str>,
        role: Cow<'a, str>,
    },
    RetryFallbackSucceeded {
        model: Cow<'a, str>,
        role: Cow<'a, str>,
    },
    /// Sent only to hosts that have used a command about MCP servers.
    McpServerUpdate {
        name: Cow<'a, str>,
        state: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Cow<'a, str>>,
    },
    /// The sandbox has refused a tool call something. Sent before the end of the call.
    SandboxDenied {
        tool_call_id: Cow<'a, str>,
        kind: SandboxDenial,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Cow<'a, str>>,
        count: u32,
        /// What a host was refused by, as its command was told: `blocked-by-allowlist`, `-denylist`, `-address`, `-sni`.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Cow<'a, str>>,
    },
    /// Sent only by sessions that have limits.
    LimitReached {
        limit: LimitName,
        used: Amount,
        max: Amount,
        phase: LimitPhase,
    },
    /// The model makes the same call with the same result again and again. Sent only by sessions that have limits.
    LoopSuspected {
        tool_name: Cow<'a, str>,
        count: u32,
    },
    Paused {
        /// Whether running commands were stopped.
        frozen: bool,
    },
    Resumed,
}

/// What a sandbox refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SandboxDenial {
    /// A file or directory outside of what the policy allows.
    File,
    Network,
    /// A path that must not change though it lies in a writable directory.
    Protected,
    Syscall,
}

impl Event<'_> {
    /// The `type` of every event.
    pub const NAMES: &'static [&'static str] = &[
        "agent_start",
        "agent_end",
        "agent_settled",
        "turn_start",
        "turn_end",
        "message_start",
        "message_end",
        "message_update",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
        "queue_update",
        "compaction_start",
        "compaction_end",
        "auto_compaction_start",
        "auto_compaction_end",
        "auto_retry_start",
        "auto_retry_end",
        "thinking_level_changed",
        "session_info_changed",
        "entry_appended",
        "bash_execution_update",
        "summarization_retry_scheduled",
        "summarization_retry_attempt_start",
        "summarization_retry_finished",
        "extension_error",
        "ttsr_triggered",
        "todo_reminder",
        "todo_auto_clear",
        "retry_fallback_applied",
        "retry_fallback_succeeded",
        "mcp_server_update",
        "sandbox_denied",
        "limit_reached",
        "loop_suspected",
        "paused",
        "resumed",
    ];

    /// Returns the `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Event::AgentStart => "agent_start",
            Event::AgentEnd { .. } => "agent_end",
            Event::AgentSettled { .. } => "agent_settled",
            Event::TurnStart => "turn_start",
            Event::TurnEnd { .. } => "turn_end",
            Event::MessageStart { .. } => "message_start",
            Event::MessageEnd { .. } => "message_end",
            Event::MessageUpdate(_) => "message_update",
            Event::ToolExecutionStart { .. } => "tool_execution_start",
            Event::ToolExecutionUpdate { .. } => "tool_execution_update",
            Event::ToolExecutionEnd { .. } => "tool_execution_end",
            Event::QueueUpdate { .. } => "queue_update",
            Event::CompactionStart { .. } => "compaction_start",
            Event::CompactionEnd { .. } => "compaction_end",
            Event::AutoCompactionStart { .. } => "auto_compaction_start",
            Event::AutoCompactionEnd { .. } => "auto_compaction_end",
            Event::AutoRetryStart { .. } => "auto_retry_start",
            Event::AutoRetryEnd { .. } => "auto_retry_end",
            Event::ThinkingLevelChanged { .. } => "thinking_level_changed",
            Event::SessionInfoChanged { .. } => "session_info_changed",
            Event::EntryAppended { .. } => "entry_appended",
            Event::BashExecutionUpdate { .. } => "bash_execution_update",
            Event::SummarizationRetryScheduled { .. } => "summarization_retry_scheduled",
            Event::SummarizationRetryAttemptStart { .. } => "summarization_retry_attempt_start",
            Event::SummarizationRetryFinished => "summarization_retry_finished",
            Event::ExtensionError { .. } => "extension_error",
            Event::TtsrTriggered { .. } => "ttsr_triggered",
            Event::TodoReminder { .. } => "todo_reminder",
            Event::TodoAutoClear => "todo_auto_clear",
            Event::RetryFallbackApplied { .. } => "retry_fallback_applied",
            Event::RetryFallbackSucceeded { .. } => "retry_fallback_succeeded",
            Event::McpServerUpdate { .. } => "mcp_server_update",
            Event::SandboxDenied { .. } => "sandbox_denied",
            Event::LimitReached { .. } => "limit_reached",
            Event::LoopSuspected { .. } => "loop_suspected",
            Event::Paused { .. } => "paused",
            Event::Resumed => "resumed",
        }
    }

    /// Those that hosts of pi never see.
    pub const HIDDEN_FROM_PI: &'static [&'static str] =
        &["auto_compaction_start", "auto_compaction_end", "ttsr_triggered"];

    /// Those that hosts of xcsh never see.
    pub const HIDDEN_FROM_XCSH: &'static [&'static str] = &[
        "compaction_start",
        "compaction_end",
        "entry_appended",
        "bash_execution_update",
        "summarization_retry_scheduled",
        "summarization_retry_attempt_start",
        "summarization_retry_finished",
    ];
}

/// A stream rule that has stopped an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriggeredRule {
    pub name: String,
    pub path: String,
    /// What the model is told.
    pub content: String,
    /// Regular expressions; one match is enough.
    pub condition: Vec<String>,
    /// What is watched: `text`, `thinking`, `tool`, `tool:<name>`.
    pub scope: Vec<String>,
}

/// Result, or the part of it known so far, of a tool call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult<'a> {
    pub content: Cow<'a, [Block]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Cow<'a, Usage>>,
}

/// Why a conversation is being shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    Manual,
    Threshold,
    Overflow,
}

/// The greeting hosts of the xcsh dialect wait for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "ready")]
pub struct Ready<'a> {
    pub version: Cow<'a, str>,
    pub server: Cow<'a, str>,
}

/// Ids are any JSON; `null` is one, too.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'static, RawValue>>, D::Error> {
    // The tag was read first, so the rest comes from a buffer that has no raw text any more.
    let value = Value::deserialize(deserializer)?;
    to_raw_value(&value).map(|raw| Some(Cow::Owned(raw))).map_err(serde::de::Error::custom)
}
