//! The vocabulary between the agent loop and whatever answers as a model.

use std::sync::Arc;

use serde_json::Value;

use crate::{AssistantMessage, Message, Model, ThinkingLevel, ToolCall, Usage};

/// One request to a model.
#[derive(Clone, Debug)]
pub struct LlmCall {
    pub model: Arc<Model>,
    pub system_prompt: Arc<str>,
    /// Projected history, oldest first. Roles a provider does not know are converted by it.
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    /// Already clamped to the model.
    pub thinking: ThinkingLevel,
    /// Caller's wish; the model's own limit otherwise.
    pub max_tokens: Option<u64>,
    /// Routing and cache affinity; absent when nothing may be linked to the session.
    pub session_id: Option<Arc<str>>,
    pub cache: CacheRetention,
    /// The `images.blockImages` setting: no picture leaves the machine.
    pub block_images: bool,
}

/// How long a provider may keep a prompt prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheRetention {
    None,
    #[default]
    Short,
    Long,
}

/// A tool as the model sees it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// JSON Schema object.
    pub parameters: Arc<Value>,
    /// The tool would like strict sampling where the model has it.
    pub prefer_strict: bool,
}

/// What a model says, piece by piece.
///
/// Order: `Start`, per block a start, deltas and an end, then exactly one `End`.
/// A call that fails before the provider answered sends only `End`. The stream
/// itself never fails: a refused connection or a cancel arrives as `End` with
/// `stopReason` `error` or `aborted` and everything received so far.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantEvent {
    /// The provider has begun; the message has metadata and no content yet.
    Start(Box<AssistantMessage>),
    /// Usage or response metadata became known while streaming.
    Meta {
        usage: Usage,
        response_id: Option<String>,
        response_model: Option<String>,
    },
    TextStart {
        index: usize,
    },
    TextDelta {
        index: usize,
        delta: String,
    },
    TextEnd {
        index: usize,
        content: String,
        signature: Option<String>,
    },
    ThinkingStart {
        index: usize,
    },
    ThinkingDelta {
        index: usize,
        delta: String,
    },
    ThinkingEnd {
        index: usize,
        content: String,
        signature: Option<String>,
        redacted: bool,
    },
    ToolCallStart {
        index: usize,
        id: String,
        name: String,
    },
    ToolCallDelta {
        index: usize,
        delta: String,
    },
    ToolCallEnd {
        index: usize,
        call: ToolCall,
    },
    /// The complete message; nothing follows.
    End(Box<AssistantMessage>),
}
