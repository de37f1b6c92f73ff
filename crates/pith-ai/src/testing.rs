//! Values the tests of this crate share.

use std::ops::ControlFlow;
use std::sync::Arc;

use pith_protocol::{
    AssistantEvent, AssistantMessage, CacheRetention, LlmCall, Message, Model, ThinkingLevel, ToolSpec,
};
use serde_json::{Value, json};

use crate::assemble::MessageBuilder;
use crate::credentials::Credentials;
use crate::sse::{SseDecoder, SseEvent};
use crate::wire::{Headers, Refused, RequestInput, RequestOptions, Wire};

/// A call without tools, prompt or thinking.
pub fn call(model: Model, messages: Vec<Message>) -> LlmCall {
    LlmCall {
        model: Arc::new(model),
        system_prompt: Arc::from(""),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        thinking: ThinkingLevel::Off,
        search_tool: None,
        max_tokens: None,
        session_id: None,
        cache: CacheRetention::Short,
        block_images: false,
        hooks: None,
    }
}

/// Any message from its JSON.
pub fn message(value: Value) -> Message {
    serde_json::from_value(value).expect("a message")
}

/// A user message of one text block.
pub fn user(text: &str) -> Message {
    message(json!({"role":"user","content":[{"type":"text","text":text}],"timestamp":1}))
}

/// An answer with this content from a model nobody asks for.
pub fn assistant(content: Value) -> AssistantMessage {
    let value = json!({"role":"assistant","content":content,"api":"other-api","provider":"other","model":"other-1",
        "stopReason":"stop","timestamp":2});
    match message(value) {
        Message::Assistant(message) => message,
        other => panic!("not an assistant message: {other:?}"),
    }
}

/// The same, as if `model` had said it.
pub fn own(model: &Model, content: Value) -> Message {
    Message::Assistant(AssistantMessage {
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        ..assistant(content)
    })
}

/// A tool result of one text block.
pub fn result(id: &str, text: &str) -> Message {
    message(json!({"role":"toolResult","toolCallId":id,"toolName":"read","content":[{"type":"text","text":text}],
        "isError":false,"timestamp":3}))
}

/// The `read` tool of the examples.
pub fn read_tool() -> ToolSpec {
    ToolSpec {
        name: "read".into(),
        description: "Read a file.".into(),
        parameters: Arc::new(json!({"type":"object","required":["path"],"properties":{
            "path":{"type":"string","description":"File path"},
            "offset":{"type":"number","description":"First line, 1-based"},
            "limit":{"type":"number","description":"Line count"}}})),
        prefer_strict: true,
    }
}

/// A file of `tests/fixtures`.
pub fn fixture(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The events of a stream that arrives in pieces of `size` bytes.
pub fn decode(wire: &dyn Wire, model: &Model, stream: &str, size: usize) -> Vec<AssistantEvent> {
    let mut message = MessageBuilder::new(Arc::new(model.clone()), 100);
    let mut decoder = wire.decoder();
    let mut sse = SseDecoder::default();
    let mut handle = |event: SseEvent<'_>| {
        decoder.event(event, &mut message);
        if message.is_finished() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    for piece in stream.as_bytes().chunks(size) {
        if sse.push(piece, &mut handle).expect("short events").is_break() {
            break;
        }
    }
    let _ = sse.finish(&mut handle);
    if !message.is_finished() {
        decoder.end(None, &mut message);
    }
    std::iter::from_fn(|| message.next_event()).collect()
}

/// Events as short lines, the same for any way of cutting the stream. Starts and metadata are left out.
pub fn show(wire: &dyn Wire, model: &Model, stream: &str) -> (Vec<String>, AssistantMessage) {
    let events = decode(wire, model, stream, usize::MAX);
    for size in [1, 7] {
        let other = decode(wire, model, stream, size);
        assert_eq!(lines(&other), lines(&events), "in pieces of {size}");
    }
    match events.last() {
        Some(AssistantEvent::End(message)) => (lines(&events), (**message).clone()),
        other => panic!("the stream ends with {other:?}"),
    }
}

fn lines(events: &[AssistantEvent]) -> Vec<String> {
    let line = |event: &AssistantEvent| {
        Some(match event {
            AssistantEvent::Start(_) | AssistantEvent::Meta { .. } => return None,
            AssistantEvent::TextStart { index } => format!("text_start {index}"),
            AssistantEvent::TextDelta { index, delta } => format!("text_delta {index} {delta}"),
            AssistantEvent::TextEnd { index, content, .. } => format!("text_end {index} {content}"),
            AssistantEvent::ThinkingStart { index } => format!("thinking_start {index}"),
            AssistantEvent::ThinkingDelta { index, delta } => format!("thinking_delta {index} {delta}"),
            AssistantEvent::ThinkingEnd { index, content, .. } => format!("thinking_end {index} {content}"),
            AssistantEvent::ToolCallStart { index, id, name } => format!("toolcall_start {index} {id} {name}"),
            AssistantEvent::ToolCallDelta { index, delta } => format!("toolcall_delta {index} {delta}"),
            AssistantEvent::ToolCallEnd { index, call } => {
                let mark = if call.arguments_truncated == Some(true) { " (truncated)" } else { "" };
                format!("toolcall_end {index} {}{mark}", serde_json::to_string(&call.arguments).expect("serializes"))
            }
            AssistantEvent::End(message) => match &message.error_message {
                Some(text) => format!("error {text}"),
                None => format!("done {:?}", message.stop_reason),
            },
        })
    };
    events.iter().filter_map(line).collect()
}

/// A stream cut at every byte, and garbled at every byte, still ends cleanly.
pub fn survive_every_cut(fuzz: fn(&[u8]), stream: &str) {
    let bytes = stream.as_bytes();
    for at in 0..bytes.len() {
        fuzz(&bytes[..at]);
        let mut garbled = bytes.to_vec();
        garbled[at] = b'}';
        fuzz(&garbled);
    }
}

/// The request of a call with a key and no special wishes: address, headers, body.
pub fn request(wire: &dyn Wire, call: &LlmCall) -> (String, Headers, Value) {
    request_without(wire, call, &Refused::default())
}

/// The same, to a server that has refused some fields.
pub fn request_without(wire: &dyn Wire, call: &LlmCall, refused: &Refused) -> (String, Headers, Value) {
    let credentials = Credentials { api_key: Some("k-test".into()), ..Credentials::default() };
    let options = RequestOptions::default();
    let input_tokens = crate::limits::request_tokens(call);
    let input = RequestInput { call, credentials: &credentials, options: &options, refused, input_tokens };
    let request = wire.request(&input).expect("a request");
    (request.url, request.headers, serde_json::from_slice(&request.body).expect("a JSON body"))
}

/// The second turn of the examples: a question with a picture, an answer of `model` with a call, its result.
pub fn second_turn(model: Model, answer: Value, call_id: &str) -> LlmCall {
    let question = message(json!({"role":"user","timestamp":1,"content":[
        {"type":"text","text":"What is in note.txt? Screenshot attached."},
        {"type":"image","data":"iVBORw0KGgo…","mimeType":"image/png"}]}));
    let answer = own(&model, answer);
    let mut call = call(model, vec![question, answer, result(call_id, "hello note\n")]);
    call.system_prompt = Arc::from("You are a coding agent.\n\n<cwd>\n/home/u/proj\n</cwd>");
    call.tools = Arc::from([read_tool()]);
    call.thinking = ThinkingLevel::Medium;
    call
}

/// What the example streams show that think, say something and call `read`.
pub fn example_stream(call_id: &str) -> Vec<String> {
    let start = format!("toolcall_start 2 {call_id} read");
    let lines = [
        "thinking_start 0",
        "thinking_delta 0 I should read ",
        "thinking_delta 0 the file.",
        "thinking_end 0 I should read the file.",
        "text_start 1",
        "text_delta 1 Let me look.",
        "text_end 1 Let me look.",
        &start,
        "toolcall_delta 2 ",
        "toolcall_delta 2 {\"path\": \"no",
        "toolcall_delta 2 te.txt\"}",
        "toolcall_end 2 {\"path\":\"note.txt\"}",
        "done ToolUse",
    ];
    lines.map(str::to_owned).to_vec()
}
