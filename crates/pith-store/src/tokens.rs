//! How large a message is for a model, roughly.

use pith_protocol::{Block, Content, Message, json};

/// A picture counts as much as this many characters.
const IMAGE: usize = 4800;

/// An estimate: a quarter of the characters, counted as UTF-16 units like other agents do.
pub fn estimate_tokens(message: &Message) -> u64 {
    let n_units = match message {
        Message::User(message) => content(&message.content),
        Message::Custom(message) => content(&message.content),
        Message::ToolResult(message) => blocks(&message.content),
        Message::Assistant(message) => blocks(&message.content),
        Message::BashExecution(message) => units(&message.command) + units(&message.output),
        Message::CompactionSummary(message) => units(&message.summary),
        Message::BranchSummary(message) => units(&message.summary),
        Message::Other(_) => 0,
    };
    n_units.div_ceil(4) as u64
}

fn content(content: &Content) -> usize {
    match content {
        Content::Text(text) => units(text),
        Content::Blocks(list) => blocks(list),
    }
}

fn blocks(blocks: &[Block]) -> usize {
    blocks.iter().map(block).sum()
}

fn block(block: &Block) -> usize {
    match block {
        Block::Text(block) => units(&block.text),
        Block::Thinking(block) => units(&block.thinking),
        Block::Image(_) => IMAGE,
        Block::ToolCall(call) => units(&call.name) + units(&json::to_string(&call.arguments)),
        Block::Other(_) => 0,
    }
}

/// UTF-16 code units: one per character, two for those outside the basic plane.
fn units(text: &str) -> usize {
    // Counting bytes instead of decoding: every byte but a continuation starts a character,
    // and characters of four bytes are the ones that take two units.
    text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn estimates_agree_with_other_agents() {
        let check = |message: serde_json::Value, tokens: u64| {
            let message: Message = serde_json::from_value(message).unwrap();
            assert_eq!(estimate_tokens(&message), tokens, "{message:?}");
        };
        check(json!({"role":"user","content":""}), 0);
        check(json!({"role":"user","content":"abcde"}), 2);
        check(json!({"role":"user","content":"é😀😀"}), 2);
        check(
            json!({"role":"user","content":[{"type":"text","text":"abcd"},{"type":"image","data":"","mimeType":""}]}),
            1201,
        );
        check(
            json!({"role":"assistant","content":[{"type":"thinking","thinking":"abcd"},
            {"type":"toolCall","id":"x","name":"ls","arguments":{"a":1}}]}),
            4,
        );
        check(json!({"role":"bashExecution","command":"ls","output":"a\n"}), 1);
        check(json!({"role":"compactionSummary","summary":"abcdefgh"}), 2);
        check(json!({"role":"fileMention","files":["abcdefgh"]}), 0);
    }

    #[test]
    fn units_are_those_of_utf_16() {
        for text in ["", "plain", "é", "\u{ffff}", "😀x\u{10ffff}"] {
            assert_eq!(units(text), text.encode_utf16().count());
        }
    }
}
