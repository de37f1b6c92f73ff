//! Whole answers where a stream was asked for, as the events a stream of them
//! would have had. Some servers and many gateways cannot stream.

use serde_json::{Value, json};

/// The name and data of an event.
pub type Event = (&'static str, Value);

/// Returns the events of a chat completion: its message is one large delta.
pub(super) fn completions(document: Value) -> Option<Vec<Event>> {
    let choice = document["choices"].get(0)?;
    let mut delta = choice["message"].as_object()?.clone();
    for (index, call) in delta.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    let reason = choice["finish_reason"].as_str().unwrap_or("stop");
    let chunk = json!({"id": document["id"], "model": document["model"], "usage": document["usage"],
        "choices": [{"delta": delta, "finish_reason": reason}]});
    Some(vec![("", chunk)])
}

/// Returns the events of a message: its blocks start with all they have.
pub(super) fn anthropic(mut document: Value) -> Option<Vec<Event>> {
    let Value::Array(blocks) = document.get_mut("content")?.take() else { return None };
    let end = json!({"type": "message_delta", "usage": document["usage"],
        "delta": {"stop_reason": document["stop_reason"], "stop_details": document["stop_details"]}});
    let mut events = vec![("message_start", json!({"type": "message_start", "message": document}))];
    for (index, block) in blocks.into_iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        events.push(("content_block_start", start));
        events.push(("content_block_stop", json!({"type": "content_block_stop", "index": index})));
    }
    events.extend([("message_delta", end), ("message_stop", json!({"type": "message_stop"}))]);
    Some(events)
}

/// Returns the events of a response: its items are done.
pub(super) fn responses(document: Value) -> Option<Vec<Event>> {
    let items = document["output"].as_array()?.clone();
    let kind = match document["status"].as_str() {
        Some("failed" | "cancelled") => "response.failed",
        Some("incomplete") => "response.incomplete",
        Some(_) | None => "response.completed",
    };
    let mut events = vec![("", json!({"type": "response.created", "response": {"id": document["id"]}}))];
    for (index, item) in items.into_iter().enumerate() {
        events.push(("", json!({"type": "response.output_item.done", "output_index": index, "item": item})));
    }
    events.push(("", json!({"type": kind, "response": document})));
    Some(events)
}

/// Returns the events of a response, or of a list of partial ones, which is what the API sends without `alt=sse`.
pub(super) fn google(document: Value) -> Option<Vec<Event>> {
    let is_response = |part: &Value| part.get("candidates").is_some() || part.get("promptFeedback").is_some();
    match document {
        Value::Array(parts) if parts.iter().any(is_response) => {
            Some(parts.into_iter().map(|part| ("", part)).collect())
        }
        part if is_response(&part) => Some(vec![("", part)]),
        _ => None,
    }
}
