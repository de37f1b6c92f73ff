//! Requests that are answered piece by piece: model streams, HTTP bodies, tools.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pith_agent::ToolOutput;
use pith_protocol::{AssistantEvent, AssistantMessage, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::engine::inbox::{Inbox, Payload, ToEngine};

/// Sends the pieces of an answer.
#[derive(Debug)]
struct Pieces {
    /// The operation that the extension waits for.
    op: u64,
    /// `None` once finished.
    inbox: Option<Inbox>,
    /// Fires when the extension has aborted the request.
    cancel: CancellationToken,
}

impl Pieces {
    fn push(&self, payload: Payload) {
        if let Some(inbox) = &self.inbox {
            let _ = inbox.send(ToEngine::Push { op: self.op, payload });
        }
    }

    fn finish(&mut self, outcome: Result<Payload, String>) {
        if let Some(inbox) = self.inbox.take() {
            let _ = inbox.send(ToEngine::Settle { op: self.op, outcome });
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.finish(Err("The session did not answer".to_owned()));
    }
}

/// An HTTP request of `fetch`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FetchRequest {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    /// `follow`, `manual` or `error`.
    pub redirect: String,
    #[serde(default, deserialize_with = "from_base64")]
    pub body: Option<Vec<u8>>,
}

/// Status and headers of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FetchHead {
    pub status: u16,
    pub status_text: String,
    pub headers: Vec<(String, String)>,
    /// After redirects.
    pub url: String,
}

/// Receives the response to a [`FetchRequest`]: one head, then the body.
#[derive(Debug)]
#[must_use = "extension code waits for the response"]
pub struct FetchReply(Pieces);

impl FetchReply {
    pub(crate) fn new(op: u64, inbox: Inbox, cancel: CancellationToken) -> Self {
        FetchReply(Pieces { op, inbox: Some(inbox), cancel })
    }

    /// Fires when the extension has aborted the request.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Sends status and headers; must come before any part of the body.
    pub fn head(&self, head: &FetchHead) {
        self.0.push(Payload::json(head));
    }

    /// Sends the next part of the body.
    pub fn chunk(&self, bytes: Vec<u8>) {
        self.0.push(Payload::Bytes(bytes));
    }

    /// Ends the response: the body is complete, or the transfer failed.
    pub fn finish(mut self, outcome: Result<(), String>) {
        self.0.finish(outcome.map(|()| Payload::Nothing));
    }
}

/// A request to a model of the agent, in the form the extension API defines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelRequest {
    pub model: Value,
    /// `systemPrompt`, `messages` and `tools`; system messages may be among the messages instead.
    pub context: Value,
    /// `apiKey`, `headers`, `reasoning`, `maxTokens`, `temperature`, …
    pub options: Map<String, Value>,
    /// Whether only the agent's own clients may answer, even if an extension implements the provider.
    #[serde(default)]
    pub native: bool,
}

/// Receives the model's answer.
#[derive(Debug)]
#[must_use = "extension code waits for the stream"]
pub struct ModelReply(Pieces);

impl ModelReply {
    pub(crate) fn new(op: u64, inbox: Inbox, cancel: CancellationToken) -> Self {
        ModelReply(Pieces { op, inbox: Some(inbox), cancel })
    }

    /// Fires when the extension has aborted the request.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Sends one event of the stream; `End` completes it.
    pub fn event(&mut self, event: &AssistantEvent) {
        if let AssistantEvent::End(message) = event {
            self.0.push(Payload::json(&ended(message)));
            self.0.finish(Ok(Payload::Nothing));
        } else {
            self.0.push(Payload::json(&shown(event)));
        }
    }

    /// Fails the request before it was sent.
    pub fn fail(mut self, why: impl Into<String>) {
        self.0.finish(Err(why.into()));
    }
}

/// The last event of a stream as extensions see it.
fn ended(message: &AssistantMessage) -> Value {
    match message.stop_reason {
        StopReason::Error => json!({ "type": "error", "reason": "error", "error": message }),
        StopReason::Aborted => json!({ "type": "error", "reason": "aborted", "error": message }),
        reason => json!({ "type": "done", "reason": reason, "message": message }),
    }
}

/// Any other event as extensions see it.
fn shown(event: &AssistantEvent) -> Value {
    match event {
        AssistantEvent::Start(message) | AssistantEvent::End(message) => json!({ "type": "start", "message": message }),
        AssistantEvent::Meta { usage, response_id, response_model } => json!({
            "type": "meta",
            "fields": { "usage": usage, "responseId": response_id, "responseModel": response_model },
        }),
        AssistantEvent::TextStart { index } => json!({ "type": "text_start", "contentIndex": index }),
        AssistantEvent::TextDelta { index, delta } => {
            json!({ "type": "text_delta", "contentIndex": index, "delta": delta })
        }
        AssistantEvent::TextEnd { index, content, signature } => {
            json!({ "type": "text_end", "contentIndex": index, "content": content, "textSignature": signature })
        }
        AssistantEvent::ThinkingStart { index } => json!({ "type": "thinking_start", "contentIndex": index }),
        AssistantEvent::ThinkingDelta { index, delta } => {
            json!({ "type": "thinking_delta", "contentIndex": index, "delta": delta })
        }
        AssistantEvent::ThinkingEnd { index, content, signature, .. } => {
            json!({ "type": "thinking_end", "contentIndex": index, "content": content, "thinkingSignature": signature })
        }
        AssistantEvent::ToolCallStart { index, id, name } => {
            json!({ "type": "toolcall_start", "contentIndex": index, "id": id, "toolName": name })
        }
        AssistantEvent::ToolCallDelta { index, delta } => {
            json!({ "type": "toolcall_delta", "contentIndex": index, "delta": delta })
        }
        AssistantEvent::ToolCallEnd { index, call } => {
            json!({ "type": "toolcall_end", "contentIndex": index, "toolCall": call })
        }
    }
}

/// A call of a built-in tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    pub name: String,
    pub call_id: Arc<str>,
    pub arguments: Map<String, Value>,
    /// The directory the tool was made for.
    pub cwd: String,
    /// `env`, `commandPrefix`, `shellPath` of a shell tool.
    pub options: Map<String, Value>,
}

/// Receives the tool's result.
#[derive(Debug)]
#[must_use = "extension code waits for the result"]
pub struct ToolReply(Pieces);

impl ToolReply {
    pub(crate) fn new(op: u64, inbox: Inbox, cancel: CancellationToken) -> Self {
        ToolReply(Pieces { op, inbox: Some(inbox), cancel })
    }

    /// Fires when the call is aborted.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Sends the result so far.
    pub fn update(&self, output: &ToolOutput) {
        self.0.push(Payload::json(&result(output)));
    }

    /// Sends the result. An error makes the wrapping `execute` throw.
    pub fn finish(mut self, output: &ToolOutput) {
        self.0.finish(Ok(Payload::json(&result(output))));
    }
}

fn result(output: &ToolOutput) -> Value {
    json!({
        "content": output.content,
        "details": output.details,
        "isError": output.is_error,
        "terminate": output.terminate,
        "usage": output.usage,
    })
}

/// The engine sends bytes as base64.
fn from_base64<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(deserializer)?;
    text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom)).transpose()
}
