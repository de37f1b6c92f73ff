//! The vocabulary between the agent loop and whatever answers as a model.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{AssistantMessage, Message, Model, ThinkingLevel, ToolCall, Usage};

/// One request to a model.
#[derive(Clone, Debug)]
pub struct LlmCall {
    pub model: Arc<Model>,
    pub system_prompt: Arc<str>,
    /// Projected history, oldest first. Roles a provider does not know are converted by it.
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    /// The tool that finds others, if there is one: `details.tools` of its results names tools that `tools` has from then
    /// on.
    pub search_tool: Option<Arc<str>>,
    /// Already clamped to the model.
    pub thinking: ThinkingLevel,
    /// Caller's wish; the model's own limit otherwise.
    pub max_tokens: Option<u64>,
    /// Routing and cache affinity; absent when nothing may be linked to the session.
    pub session_id: Option<Arc<str>>,
    pub cache: CacheRetention,
    /// The `images.blockImages` setting: no picture leaves the machine.
    pub block_images: bool,
    /// Whoever wants to see the request on its way; absent when nobody does.
    pub hooks: Option<Arc<dyn RequestHooks>>,
}

/// Someone who sees requests to models on their way, and may change them.
///
/// Asked in the order of the methods: headers and payload when they are complete,
/// the response when its head has arrived.
pub trait RequestHooks: Send + Sync {
    /// Whether a part is of interest. Ask before building it.
    fn sees(&self, part: RequestPart) -> bool;

    /// The headers to send; those without a value are left out.
    fn headers(&self, headers: Map<String, Value>) -> Hooked<'_, Map<String, Value>>;

    /// The payload to send.
    fn payload(&self, payload: Value) -> Hooked<'_, Value>;

    /// The server has answered; its body has not been read.
    fn response(&self, status: u16, headers: Map<String, Value>) -> Hooked<'_, ()>;
}

/// What became of a part of a request.
pub type Hooked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Parts of a request that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart {
    Headers,
    Payload,
    Response,
}

impl fmt::Debug for dyn RequestHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestHooks")
    }
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
