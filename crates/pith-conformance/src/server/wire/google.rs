//! `google-generative-ai`. Calls are sent whole; there are no argument deltas.

use serde_json::{Value, json};

use super::{Event, pieces};
use crate::server::script::{ResolvedBlock, Turn};

pub(super) fn events(turn: &Turn) -> Vec<Event> {
    let says = |part: Value| body(turn, json!({"content": {"role": "model", "parts": [part]}, "index": 0}), None);
    let mut events = Vec::new();
    for block in turn.content() {
        match block {
            ResolvedBlock::Text(text) => {
                events.extend(pieces(&text, turn.chunk).into_iter().map(|piece| says(json!({"text": piece})).delta()));
            }
            ResolvedBlock::Thinking(text) => events.extend(
                pieces(&text, turn.chunk)
                    .into_iter()
                    .map(|piece| says(json!({"text": piece, "thought": true})).delta()),
            ),
            ResolvedBlock::Call { name, args, .. } => {
                events.push(says(json!({"functionCall": {"name": name, "args": args}})).delta());
            }
        }
    }
    let reason = if turn.stop_reason() == "length" { "MAX_TOKENS" } else { "STOP" };
    let usage = &turn.usage;
    let prompt = usage.input + usage.cache_read;
    let candidate = json!({"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0, "finishReason": reason});
    let usage = json!({"promptTokenCount": prompt, "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output, "totalTokenCount": prompt + usage.output});
    events.push(body(turn, candidate, Some(usage)));
    events
}

fn body(turn: &Turn, candidate: Value, usage: Option<Value>) -> Event {
    let mut data =
        json!({"candidates": [candidate], "modelVersion": "mock", "responseId": format!("g_{}", turn.label)});
    if let Some(usage) = usage {
        data["usageMetadata"] = usage;
    }
    // This vendor ends its lines with CR LF.
    Event { bytes: format!("data: {data}\r\n\r\n").into_bytes(), is_delta: false }
}
