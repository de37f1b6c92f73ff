//! Requests of a server to the session's model (`sampling/createMessage`). Only entries that allow it have them.

use std::sync::{Arc, Mutex, PoisonError};

use pith_agent::{BoxFuture, now_ms};
use pith_protocol::{AssistantMessage, Block, ImageBlock, Message, StopReason, Usage, UserMessage};
use serde_json::{Value, json};

use crate::config::{SamplingConsent, ServerConfig};
use crate::launch::Launch;
use crate::questions::Questions;

/// No answer is longer, whatever a server asks for.
const MAX_TOKENS: u64 = 4096;
/// How much of a request the user is shown.
const MAX_SHOWN: usize = 4000;
/// The code for requests that the user does not want, from the examples of the protocol.
const REJECTED: i32 = -1;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID: i32 = -32602;
const INTERNAL: i32 = -32603;

/// What a server wants the model to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    pub system_prompt: String,
    pub messages: Vec<Arc<Message>>,
    pub max_tokens: u64,
}

/// Asks the session's model; `Err` says why it cannot be asked. A future that is dropped ends the request.
pub type Sample = Arc<dyn Fn(SampleRequest) -> BoxFuture<'static, Result<AssistantMessage, String>> + Send + Sync>;

/// The requests of one server to the model of a session.
pub struct Sampling {
    server: String,
    consent: Consent,
    sample: Sample,
    /// What they have cost since somebody asked.
    usage: Mutex<Usage>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Consent {
    Asked,
    Given,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Denial {
    pub code: i32,
    pub why: String,
}

impl Denial {
    /// The answer to a server whose entry does not allow its requests.
    pub fn not_offered() -> Self {
        Denial::new(METHOD_NOT_FOUND, "sampling is not offered")
    }

    fn new(code: i32, why: impl Into<String>) -> Self {
        Denial { code, why: why.into() }
    }
}

impl Sampling {
    /// Returns what answers a server; `None` if its entry does not allow that, or nobody can be asked who has to be.
    pub fn of(config: &ServerConfig, launch: &Launch) -> Option<Self> {
        let consent = match config.sampling {
            SamplingConsent::Never => return None,
            SamplingConsent::Ask if launch.user.is_none() => return None,
            SamplingConsent::Ask => Consent::Asked,
            SamplingConsent::Always => Consent::Given,
        };
        let sample = launch.sample.clone()?;
        Some(Sampling { server: config.name.clone(), consent, sample, usage: Mutex::default() })
    }

    /// Answers a request of the server.
    pub async fn create(&self, params: &Value, questions: &Questions) -> Result<Value, Denial> {
        let request = read(params).map_err(|why| Denial::new(INVALID, why))?;
        let _open = questions.open();
        if self.consent == Consent::Asked {
            let title = format!("{} asks the model, for at most {} tokens", self.server, request.max_tokens);
            if !questions.confirm(title, shown(&request)).await {
                return Err(Denial::new(REJECTED, "the user does not want this request"));
            }
        }
        let answer = (self.sample)(request).await.map_err(|why| Denial::new(INTERNAL, why))?;
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).add(&answer.usage);
        result(&answer)
    }

    /// Returns what the requests since the last call of this have cost.
    pub fn take_usage(&self) -> Option<Usage> {
        let usage = std::mem::take(&mut *self.usage.lock().unwrap_or_else(PoisonError::into_inner));
        (usage != Usage::default()).then_some(usage)
    }
}

/// Reads the parameters of a request; what a model without tools cannot be asked is refused.
fn read(params: &Value) -> Result<SampleRequest, String> {
    if params.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
        return Err("tools: the model is asked without tools".to_owned());
    }
    let Some(given) = params.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty()) else {
        return Err("messages: expected a list with at least one message".to_owned());
    };
    let message = |(at, message): (usize, &Value)| {
        read_message(message).map(Arc::new).map_err(|why| format!("messages[{at}]: {why}"))
    };
    let wanted = params.get("maxTokens").and_then(Value::as_u64).unwrap_or(MAX_TOKENS);
    Ok(SampleRequest {
        system_prompt: params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default().to_owned(),
        messages: given.iter().enumerate().map(message).collect::<Result<_, _>>()?,
        max_tokens: wanted.clamp(1, MAX_TOKENS),
    })
}

fn read_message(message: &Value) -> Result<Message, String> {
    let blocks = match message.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().map(read_block).collect::<Result<Vec<_>, _>>()?,
        Some(block) => vec![read_block(block)?],
        None => return Err("content: it is missing".to_owned()),
    };
    match message.get("role").and_then(Value::as_str) {
        Some("user") => {
            let text: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
            let text = text.join("\n");
            let image = |block: Block| if let Block::Image(image) = block { Some(image) } else { None };
            let images = blocks.into_iter().filter_map(image).collect();
            Ok(Message::User(UserMessage::new(text, images, now_ms())))
        }
        Some("assistant") => {
            let stop_reason = StopReason::Stop;
            let (content, timestamp) = (blocks, now_ms());
            Ok(Message::Assistant(AssistantMessage { content, stop_reason, timestamp, ..AssistantMessage::default() }))
        }
        _ => Err("role: expected one of \"user\", \"assistant\"".to_owned()),
    }
}

fn read_block(block: &Value) -> Result<Block, String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match (text("type"), text("text"), text("data"), text("mimeType")) {
        (Some("text"), Some(text), ..) => Ok(Block::text(text)),
        (Some("image"), _, Some(data), Some(kind)) => {
            Ok(Block::Image(ImageBlock { data: data.to_owned(), mime_type: kind.to_owned() }))
        }
        (kind, ..) => Err(format!("content: pith passes on texts and images, not {}", kind.unwrap_or("this"))),
    }
}

/// The request as the user reads it.
fn shown(request: &SampleRequest) -> String {
    let mut lines = Vec::new();
    if !request.system_prompt.is_empty() {
        lines.push(format!("system: {}", request.system_prompt));
    }
    for message in &request.messages {
        match &**message {
            Message::Assistant(answer) => {
                let texts: Vec<&str> = answer.content.iter().filter_map(Block::as_text).collect();
                lines.push(format!("assistant: {}", texts.join("\n")));
            }
            Message::User(user) => lines.push(format!("user: {}", user.content.text())),
            _ => {}
        }
    }
    let text = lines.join("\n\n");
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}… ({} characters in all)", &text[..at], text.chars().count()),
        None => text,
    }
}

/// The answer of the model as the server gets it.
fn result(answer: &AssistantMessage) -> Result<Value, Denial> {
    let stop_reason = match answer.stop_reason {
        StopReason::Length => "maxTokens",
        StopReason::Error | StopReason::Aborted => {
            let why = answer.error_message.clone().unwrap_or_else(|| "the model gave no answer".to_owned());
            return Err(Denial::new(INTERNAL, why));
        }
        _ => "endTurn",
    };
    let text: String = answer.content.iter().filter_map(Block::as_text).collect();
    Ok(json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": answer.model,
        "stopReason": stop_reason}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(messages: Value) -> Result<SampleRequest, String> {
        read(&json!({"messages": messages, "maxTokens": 100_000, "systemPrompt": "Be brief."}))
    }

    #[test]
    fn requests_are_read_and_bounded() {
        let request = asked(json!([
            {"role": "user", "content": {"type": "text", "text": "Hello"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "user", "content": [{"type": "text", "text": "What is it?"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        ]));
        let request = request.expect("usable");
        assert_eq!((request.max_tokens, request.messages.len()), (MAX_TOKENS, 3));
        assert_eq!(shown(&request), "system: Be brief.\n\nuser: Hello\n\nassistant: Hi\n\nuser: What is it?");
        let long = asked(json!([{"role": "user", "content": {"type": "text", "text": "é".repeat(9000)}}]));
        assert!(shown(&long.expect("usable")).ends_with("é… (9025 characters in all)"));
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        let check = |messages: Value, why: &str| assert_eq!(asked(messages).expect_err("refused"), why);
        check(json!([]), "messages: expected a list with at least one message");
        check(json!([{"role": "user"}]), "messages[0]: content: it is missing");
        let text = json!({"type": "text", "text": "x"});
        check(json!([{"role": "tool", "content": text}]), "messages[0]: role: expected one of \"user\", \"assistant\"");
        let audio = json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"});
        let why = "messages[0]: content: pith passes on texts and images, not audio";
        check(json!([{"role": "user", "content": audio}]), why);
        let tools = json!({"messages": [{"role": "user", "content": text}], "tools": [{}]});
        assert_eq!(read(&tools), Err("tools: the model is asked without tools".to_owned()));
    }

    #[test]
    fn failed_answers_are_errors() {
        let answer = |stop_reason| AssistantMessage {
            content: vec![Block::text("4")],
            model: "m".into(),
            stop_reason,
            ..AssistantMessage::default()
        };
        let expected = json!({"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "m",
            "stopReason": "maxTokens"});
        assert_eq!(result(&answer(StopReason::Length)), Ok(expected));
        let failed = result(&answer(StopReason::Error)).expect_err("failed");
        assert_eq!(failed, Denial::new(INTERNAL, "the model gave no answer"));
    }
}
