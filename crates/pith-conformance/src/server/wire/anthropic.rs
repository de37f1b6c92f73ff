//! `anthropic-messages`.

use serde_json::{Value, json};

use super::{Event, pieces};
use crate::server::script::{ResolvedBlock, Turn};

pub(super) fn events(turn: &Turn) -> Vec<Event> {
    let usage = &turn.usage;
    let mut events = vec![event(json!({"type": "message_start", "message": {
        "id": format!("msg_{}", turn.label), "type": "message", "role": "assistant", "model": "mock", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": 1,
            "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write}}}))];
    for (index, block) in turn.content().iter().enumerate() {
        let (start, kind, field, text) = match block {
            ResolvedBlock::Text(text) => (json!({"type": "text", "text": ""}), "text_delta", "text", text),
            ResolvedBlock::Thinking(text) => {
                (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking", text)
            }
            ResolvedBlock::Call { id, name, json: arguments, .. } => {
                let start = json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {}});
                (start, "input_json_delta", "partial_json", arguments)
            }
        };
        events.push(event(json!({"type": "content_block_start", "index": index, "content_block": start})));
        for piece in pieces(text, turn.chunk) {
            events.push(delta(index, json!({"type": kind, field: piece})).delta());
        }
        if matches!(block, ResolvedBlock::Thinking(_)) {
            let signature = format!("sig{}b{index}", turn.label);
            events.push(delta(index, json!({"type": "signature_delta", "signature": signature})));
        }
        events.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    let reason = match turn.stop_reason() {
        "stop" => "end_turn",
        "toolUse" => "tool_use",
        "length" => "max_tokens",
        other => other,
    };
    events.push(event(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": usage.output}})));
    events.push(event(json!({"type": "message_stop"})));
    events
}

fn event(data: Value) -> Event {
    Event::named(data["type"].as_str().expect("every event has a type"), &data)
}

fn delta(index: usize, delta: Value) -> Event {
    event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}
