//! Models that extensions implement.

use std::future::Future;

use pith_agent::{ModelClient, now_ms};
use pith_protocol::{AssistantEvent, AssistantMessage, LlmCall, StopReason, ThinkingLevel, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::handle::{EngineWait, ExtensionHandle, read};
use crate::shared::{CallError, Progress};

/// How many events may wait for the agent loop before the extension's stream is held up.
const QUEUE: usize = 64;

/// Answers calls for models of providers that extensions registered with `streamSimple`.
#[derive(Clone)]
pub struct ExtensionModels {
    handle: ExtensionHandle,
}

/// Something that only the extension of a provider can do.
#[derive(Clone, Debug)]
pub enum ProviderAction {
    /// Logs in through dialogs; returns credentials.
    Login,
    RefreshToken {
        credentials: Value,
    },
    /// Returns the key as a string.
    ApiKey {
        credentials: Value,
    },
    /// Returns the models for these credentials.
    ModifyModels {
        models: Value,
        credentials: Value,
    },
    /// Returns a newer list of models.
    RefreshModels,
}

/// One event of a provider's stream, in the form the extension API defines.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum JsEvent {
    Start {
        message: Option<Box<AssistantMessage>>,
    },
    Meta {
        usage: Option<Usage>,
        response_id: Option<String>,
        response_model: Option<String>,
    },
    TextStart {
        content_index: usize,
    },
    TextDelta {
        content_index: usize,
        delta: String,
    },
    TextEnd {
        content_index: usize,
        content: String,
        signature: Option<String>,
    },
    ThinkingStart {
        content_index: usize,
    },
    ThinkingDelta {
        content_index: usize,
        delta: String,
    },
    ThinkingEnd {
        content_index: usize,
        content: String,
        signature: Option<String>,
    },
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        content_index: usize,
        #[serde(default)]
        id: String,
        #[serde(default)]
        tool_name: String,
    },
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        content_index: usize,
        delta: String,
    },
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        content_index: usize,
        tool_call: ToolCall,
    },
    #[serde(other)]
    Unknown,
}

impl JsEvent {
    fn into_event(self, blank: &AssistantMessage) -> Option<AssistantEvent> {
        Some(match self {
            JsEvent::Start { message } => {
                let message = message.map_or_else(|| blank.clone(), |message| *message);
                // Content that the message already has arrives again as blocks.
                AssistantEvent::Start(Box::new(AssistantMessage { content: Vec::new(), ..complete(message, blank) }))
            }
            JsEvent::Meta { usage, response_id, response_model } => {
                AssistantEvent::Meta { usage: usage.unwrap_or_default(), response_id, response_model }
            }
            JsEvent::TextStart { content_index: index } => AssistantEvent::TextStart { index },
            JsEvent::TextDelta { content_index: index, delta } => AssistantEvent::TextDelta { index, delta },
            JsEvent::TextEnd { content_index: index, content, signature } => {
                AssistantEvent::TextEnd { index, content, signature }
            }
            JsEvent::ThinkingStart { content_index: index } => AssistantEvent::ThinkingStart { index },
            JsEvent::ThinkingDelta { content_index: index, delta } => AssistantEvent::ThinkingDelta { index, delta },
            JsEvent::ThinkingEnd { content_index: index, content, signature } => {
                AssistantEvent::ThinkingEnd { index, content, signature, redacted: false }
            }
            JsEvent::ToolCallStart { content_index: index, id, tool_name: name } => {
                AssistantEvent::ToolCallStart { index, id, name }
            }
            JsEvent::ToolCallDelta { content_index: index, delta } => AssistantEvent::ToolCallDelta { index, delta },
            JsEvent::ToolCallEnd { content_index: index, tool_call: call } => {
                AssistantEvent::ToolCallEnd { index, call }
            }
            JsEvent::Unknown => return None,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsEnd {
    message: Option<Box<AssistantMessage>>,
    reason: Option<StopReason>,
    #[serde(default)]
    is_error: bool,
}

impl ExtensionModels {
    /// Creates a client for the extensions of the handle.
    pub fn new(handle: ExtensionHandle) -> Self {
        ExtensionModels { handle }
    }

    /// Answers a call with further options, such as `apiKey` and `headers`, once they are known.
    pub fn stream_with_options(
        &self,
        call: LlmCall,
        options: impl Future<Output = Result<Map<String, Value>, String>> + Send + 'static,
        cancel: CancellationToken,
    ) -> mpsc::Receiver<AssistantEvent> {
        let (events, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(answer(self.handle.clone(), call, options, cancel, events));
        receiver
    }
}

impl ModelClient for ExtensionModels {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        self.stream_with_options(call, std::future::ready(Ok(Map::new())), cancel)
    }
}

async fn answer(
    handle: ExtensionHandle,
    call: LlmCall,
    options: impl Future<Output = Result<Map<String, Value>, String>> + Send,
    cancel: CancellationToken,
    events: mpsc::Sender<AssistantEvent>,
) {
    let blank = AssistantMessage {
        api: call.model.api.to_string(),
        provider: call.model.provider.to_string(),
        model: call.model.id.to_string(),
        timestamp: now_ms(),
        ..AssistantMessage::default()
    };
    let options = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(String::new()),
        options = options => options,
    };
    let options = match options {
        Ok(options) => options,
        Err(why) => {
            let message = failed(&blank, &CallError::Failed(why), &cancel);
            let _ = events.send(AssistantEvent::End(Box::new(message))).await;
            return;
        }
    };
    let (progress, mut pieces) = mpsc::unbounded_channel();
    let outcome =
        handle.open("stream", &request(&call, options), Some(Progress::Pieces(progress))).finish_or_abort(&cancel);
    tokio::pin!(outcome);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(text) = pieces.recv() => {
                let event = read::<JsEvent>(&text).ok().and_then(|event| event.into_event(&blank));
                if let Some(event) = event && events.send(event).await.is_err() {
                    return;
                }
            }
            outcome = &mut outcome => break outcome,
        }
    };
    let message = match outcome.and_then(|text| read::<JsEnd>(&text)) {
        Ok(end) => finished(end, &blank),
        Err(error) => failed(&blank, &error, &cancel),
    };
    // Fails if the run was given up.
    let _ = events.send(AssistantEvent::End(Box::new(message))).await;
}

/// The call in both forms of the API: prompt and tools are in the context itself and in a leading system message.
fn request(call: &LlmCall, mut options: Map<String, Value>) -> Value {
    let tools: Vec<Value> = call
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters }))
        .collect();
    let mut messages = vec![json!({
        "role": "system",
        "content": [{ "type": "text", "text": call.system_prompt }],
        "tools": tools,
        "timestamp": 0,
    })];
    messages.extend(call.messages.iter().map(|message| json!(message)));
    if call.thinking != ThinkingLevel::Off {
        options.insert("reasoning".to_owned(), json!(call.thinking));
    }
    if let Some(limit) = call.max_tokens {
        options.insert("maxTokens".to_owned(), json!(limit));
    }
    if let Some(session) = &call.session_id {
        options.insert("sessionId".to_owned(), json!(session));
    }
    json!({
        "model": call.model,
        "context": { "systemPrompt": call.system_prompt, "tools": tools, "messages": messages },
        "options": options,
    })
}

/// Fills in what the extension left out.
fn complete(mut message: AssistantMessage, blank: &AssistantMessage) -> AssistantMessage {
    for (field, known) in
        [(&mut message.api, &blank.api), (&mut message.provider, &blank.provider), (&mut message.model, &blank.model)]
    {
        if field.is_empty() {
            field.clone_from(known);
        }
    }
    if message.timestamp == 0 {
        message.timestamp = blank.timestamp;
    }
    message
}

fn finished(end: JsEnd, blank: &AssistantMessage) -> AssistantMessage {
    let mut message = complete(end.message.map_or_else(|| blank.clone(), |message| *message), blank);
    if let Some(reason) = end.reason {
        message.stop_reason = reason;
    } else if end.is_error {
        message.stop_reason = StopReason::Error;
    }
    if message.stop_reason == StopReason::Error && message.error_message.is_none() {
        message.error_message = Some("The provider failed without saying why".to_owned());
    }
    message
}

fn failed(blank: &AssistantMessage, error: &CallError, cancel: &CancellationToken) -> AssistantMessage {
    let (stop_reason, text) = if cancel.is_cancelled() {
        (StopReason::Aborted, "Request was aborted.".to_owned())
    } else {
        (StopReason::Error, error.to_string())
    };
    AssistantMessage { stop_reason, error_message: Some(text), ..blank.clone() }
}

impl ExtensionHandle {
    /// Asks the extension of a provider to do something only it can do.
    pub async fn provider_action(&self, provider: &str, action: ProviderAction) -> Result<Value, String> {
        let (name, args) = match action {
            ProviderAction::Login => ("login", json!({})),
            ProviderAction::RefreshToken { credentials } => ("refreshToken", json!({ "credentials": credentials })),
            ProviderAction::ApiKey { credentials } => ("getApiKey", json!({ "credentials": credentials })),
            ProviderAction::ModifyModels { models, credentials } => {
                ("modifyModels", json!({ "models": models, "credentials": credentials }))
            }
            ProviderAction::RefreshModels => ("refreshModels", json!({})),
        };
        let args = json!({ "name": provider, "action": name, "args": args });
        self.call("provider", &args, EngineWait::Alive).await.map_err(|error| error.to_string())
    }
}
