//! Texts of the conversation, in the shapes of the conventions. Only made if the user wants them to leave pith.

use std::sync::Arc;

use pith_agent::ToolOutput;
use pith_protocol::{AssistantMessage, Block, Message};
use serde::Serialize;
use serde_json::{Value, json};

use crate::chat::finish_reason;

/// The longest value of an attribute, in bytes.
pub(crate) const MAX_BYTES: usize = 8 << 10;

/// Shortens a text to what an attribute may hold.
pub(crate) fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_BYTES));
    text
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(crate) fn instructions(system_prompt: &str) -> String {
    json(&[text(system_prompt)])
}

/// Returns the newest messages that fit, the oldest first; at least one.
pub(crate) fn newest(messages: &[Arc<Message>]) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut n_bytes = 2;
    for message in messages.iter().rev() {
        let message = json(&input(message));
        n_bytes += message.len() + 1;
        if n_bytes > MAX_BYTES && !shown.is_empty() {
            break;
        }
        shown.push(message);
    }
    shown.reverse();
    format!("[{}]", shown.join(","))
}

pub(crate) fn answer(answer: &AssistantMessage) -> String {
    json(&[json!({
        "role": "assistant",
        "parts": parts(&answer.content),
        "finish_reason": finish_reason(answer.stop_reason).unwrap_or("error"),
    })])
}

pub(crate) fn result(output: &ToolOutput) -> String {
    let texts: Vec<&str> = output.content.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

fn input(message: &Message) -> Value {
    match message {
        Message::User(message) => json!({"role": "user", "parts": [text(&message.content.text())]}),
        Message::Assistant(message) => json!({"role": "assistant", "parts": parts(&message.content)}),
        Message::ToolResult(message) => {
            let texts: String = message.content.iter().filter_map(Block::as_text).collect();
            let part = json!({"type": "tool_call_response", "id": message.tool_call_id, "response": texts});
            json!({"role": "tool", "parts": [part]})
        }
        // What the model is told by others comes to it as the user's.
        other => json!({"role": "user", "parts": [text(&json(other))]}),
    }
}

fn parts(blocks: &[Block]) -> Vec<Value> {
    let part = |block: &Block| match block {
        Block::Text(block) => Some(text(&block.text)),
        Block::Thinking(block) => Some(json!({"type": "reasoning", "content": block.thinking})),
        Block::ToolCall(call) => {
            Some(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}))
        }
        // Pictures are too large, and others unknown.
        Block::Image(_) | Block::Other(_) => None,
    };
    blocks.iter().filter_map(part).collect()
}

fn text(content: &str) -> Value {
    json!({"type": "text", "content": content})
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::UserMessage;

    #[test]
    fn the_newest_messages_that_fit_are_shown() {
        let user = |text: &str| Arc::new(Message::User(UserMessage::new(text.to_owned(), Vec::new(), 0)));
        let shown = |messages: &[Arc<Message>]| -> Vec<String> {
            let list: Vec<Value> = serde_json::from_str(&newest(messages)).expect("JSON");
            list.iter().map(|message| message["parts"][0]["content"].as_str().expect("a text").to_owned()).collect()
        };
        assert_eq!(shown(&[user("a"), user("b")]), ["a", "b"]);
        assert_eq!(shown(&[user(&"x".repeat(MAX_BYTES)), user("b")]), ["b"]);
        assert_eq!(shown(&[user("a"), user(&"x".repeat(MAX_BYTES))])[0].len(), MAX_BYTES);
    }

    #[test]
    fn a_cut_is_between_two_characters() {
        let text = cut(format!("{}é", "x".repeat(MAX_BYTES - 1)));
        assert_eq!(text.len(), MAX_BYTES - 1);
        assert_eq!(cut("é".to_owned()), "é");
    }
}
