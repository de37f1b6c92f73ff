//! `openai-completions`.

use serde_json::{Value, json};

use super::{Event, pieces};
use crate::server::script::{ResolvedBlock, Turn};

pub(super) fn events(turn: &Turn) -> Vec<Event> {
    let chunk = |members: Value| {
        let mut data = json!({"id": format!("chatcmpl-{}", turn.label), "object": "chat.completion.chunk",
            "created": 1, "model": "mock", "choices": []});
        for (name, value) in members.as_object().expect("members are an object") {
            data[name] = value.clone();
        }
        Event::plain(&data)
    };
    let says = |delta: Value| chunk(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
    let mut events = vec![says(json!({"role": "assistant", "content": ""}))];
    let mut n_calls = 0;
    for block in turn.content() {
        match block {
            ResolvedBlock::Text(text) => {
                events
                    .extend(pieces(&text, turn.chunk).into_iter().map(|piece| says(json!({"content": piece})).delta()));
            }
            ResolvedBlock::Thinking(text) => events.extend(
                pieces(&text, turn.chunk).into_iter().map(|piece| says(json!({"reasoning_content": piece})).delta()),
            ),
            ResolvedBlock::Call { id, name, json: arguments, .. } => {
                let function = json!({"name": name, "arguments": ""});
                events.push(says(json!({"tool_calls": [
                    {"index": n_calls, "id": format!("call_{id}"), "type": "function", "function": function}]})));
                for piece in pieces(&arguments, turn.chunk) {
                    let call = json!({"index": n_calls, "function": {"arguments": piece}});
                    events.push(says(json!({"tool_calls": [call]})).delta());
                }
                n_calls += 1;
            }
        }
    }
    let reason = match turn.stop_reason() {
        "toolUse" => "tool_calls",
        other => other,
    };
    events.push(chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})));
    let usage = &turn.usage;
    let prompt = usage.input + usage.cache_read;
    events.push(chunk(json!({"usage": {"prompt_tokens": prompt, "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output, "prompt_tokens_details": {"cached_tokens": usage.cache_read}}})));
    events.push(Event { bytes: b"data: [DONE]\n\n".to_vec(), is_delta: false });
    events
}
