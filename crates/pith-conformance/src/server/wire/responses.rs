//! `openai-responses`.

use serde_json::{Value, json};

use super::{Event, pieces};
use crate::server::script::{ResolvedBlock, Turn};

pub(super) fn events(turn: &Turn) -> Vec<Event> {
    let mut writer = Writer { events: Vec::new(), chunk: turn.chunk };
    let response = json!({"id": format!("resp_{}", turn.label), "object": "response", "created_at": 1,
        "model": "mock", "status": "in_progress", "output": []});
    writer.push("response.created", json!({"response": response}));
    let mut output = Vec::new();
    for (index, block) in turn.content().iter().enumerate() {
        let id = format!("{}b{index}", turn.label);
        output.push(match block {
            ResolvedBlock::Text(text) => writer.message(index, &format!("msg_{id}"), text),
            ResolvedBlock::Thinking(text) => writer.reasoning(index, &id, text),
            ResolvedBlock::Call { id, name, json, .. } => writer.call(index, id, name, json),
        });
    }
    let usage = &turn.usage;
    let input = usage.input + usage.cache_read;
    let is_cut = turn.stop_reason() == "length";
    let mut done = response;
    done["status"] = json!(if is_cut { "incomplete" } else { "completed" });
    done["output"] = json!(output);
    done["incomplete_details"] = if is_cut { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    done["usage"] = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output});
    writer.push(if is_cut { "response.incomplete" } else { "response.completed" }, json!({"response": done}));
    writer.events
}

struct Writer {
    events: Vec<Event>,
    chunk: usize,
}

impl Writer {
    fn push(&mut self, kind: &str, members: Value) -> &mut Event {
        let mut data = json!({"type": kind, "sequence_number": self.events.len()});
        for (name, value) in members.as_object().expect("members are an object") {
            data[name] = value.clone();
        }
        self.events.push(Event::named(kind, &data));
        self.events.last_mut().expect("just pushed")
    }

    fn deltas(&mut self, kind: &str, place: &Value, text: &str) {
        for piece in pieces(text, self.chunk) {
            self.push(kind, with(place, json!({"delta": piece}))).is_delta = true;
        }
    }

    /// Opens an item, lets `body` fill it, closes it and returns it complete.
    fn item(&mut self, index: usize, opened: Value, closed: Value, body: impl FnOnce(&mut Self)) -> Value {
        self.push("response.output_item.added", json!({"output_index": index, "item": opened}));
        body(self);
        self.push("response.output_item.done", json!({"output_index": index, "item": closed}));
        closed
    }

    fn message(&mut self, index: usize, id: &str, text: &str) -> Value {
        let part = json!({"type": "output_text", "text": "", "annotations": []});
        let full = with(&part, json!({"text": text}));
        let opened = json!({"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []});
        let closed = with(&opened, json!({"status": "completed", "content": [full]}));
        let place = json!({"output_index": index, "item_id": id, "content_index": 0});
        self.item(index, opened, closed, |writer| {
            writer.push("response.content_part.added", with(&place, json!({"part": part})));
            writer.deltas("response.output_text.delta", &place, text);
            writer.push("response.output_text.done", with(&place, json!({"text": text})));
            writer.push("response.content_part.done", with(&place, json!({"part": full})));
        })
    }

    fn reasoning(&mut self, index: usize, label: &str, text: &str) -> Value {
        let id = format!("rs_{label}");
        let part = json!({"type": "summary_text", "text": ""});
        let full = with(&part, json!({"text": text}));
        let opened = json!({"id": id, "type": "reasoning", "summary": []});
        let closed = with(&opened, json!({"summary": [full], "encrypted_content": format!("enc{label}")}));
        let place = json!({"output_index": index, "item_id": id, "summary_index": 0});
        self.item(index, opened, closed, |writer| {
            writer.push("response.reasoning_summary_part.added", with(&place, json!({"part": part})));
            writer.deltas("response.reasoning_summary_text.delta", &place, text);
            writer.push("response.reasoning_summary_text.done", with(&place, json!({"text": text})));
            writer.push("response.reasoning_summary_part.done", with(&place, json!({"part": full})));
        })
    }

    fn call(&mut self, index: usize, id: &str, name: &str, arguments: &str) -> Value {
        let item_id = format!("fc_{id}");
        let opened = json!({"id": item_id, "type": "function_call", "status": "in_progress",
            "call_id": format!("call_{id}"), "name": name, "arguments": ""});
        let closed = with(&opened, json!({"status": "completed", "arguments": arguments}));
        let place = json!({"output_index": index, "item_id": item_id});
        self.item(index, opened, closed, |writer| {
            writer.deltas("response.function_call_arguments.delta", &place, arguments);
            writer.push("response.function_call_arguments.done", with(&place, json!({"arguments": arguments})));
        })
    }
}

/// `base` with members added or replaced.
fn with(base: &Value, members: Value) -> Value {
    let mut value = base.clone();
    for (name, member) in members.as_object().expect("members are an object") {
        value[name] = member.clone();
    }
    value
}
