//! Everything pith tells the host without being asked. Frames borrow what they show.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{Block, Message, ThinkingLevel, Usage};

/// An event frame, except `message_update`, which [`crate::live`] assembles.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event<'a> {
    AgentStart,
    AgentEnd {
        messages: &'a [Arc<Message>],
        will_retry: bool,
    },
    AgentSettled {
        aborted: bool,
    },
    TurnStart,
    TurnEnd {
        message: &'a Message,
        tool_results: &'a [Arc<Message>],
    },
    MessageStart {
        message: &'a Message,
    },
    MessageEnd {
        message: &'a Message,
    },
    ToolExecutionStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Map<String, Value>,
    },
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Map<String, Value>,
        partial_result: ToolResult<'a>,
    },
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: ToolResult<'a>,
        is_error: bool,
    },
    QueueUpdate {
        steering: &'a [&'a str],
        follow_up: &'a [&'a str],
    },
    CompactionStart {
        reason: CompactionReason,
    },
    CompactionEnd {
        reason: CompactionReason,
        result: Option<&'a Value>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<&'a str>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    SessionInfoChanged {
        /// Absent when the name was taken away.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    EntryAppended {
        entry: &'a Value,
    },
    BashExecutionUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RawValue>,
        delta: &'a str,
    },
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    SummarizationRetryAttemptStart {
        source: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    SummarizationRetryFinished,
    ExtensionError {
        extension_path: &'a str,
        event: &'a str,
        error: &'a str,
    },
    TtsrTriggered {
        rules: &'a Value,
    },
    TodoReminder {
        todos: &'a [Value],
        attempt: u32,
        max_attempts: u32,
    },
    TodoAutoClear,
    RetryFallbackApplied {
        from: &'a str,
        to: &'a str,
        role: &'a str,
    },
    RetryFallbackSucceeded {
        model: &'a str,
        role: &'a str,
    },
}

/// Result, or the part of it known so far, of a tool call.
#[derive(Clone, Debug, Serialize)]
pub struct ToolResult<'a> {
    pub content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<&'a Usage>,
}

/// Why a conversation is being shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    Manual,
    Threshold,
    Overflow,
}

/// The greeting hosts of the xcsh dialect wait for.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "ready")]
pub struct Ready<'a> {
    pub version: &'a str,
    pub server: &'a str,
}
