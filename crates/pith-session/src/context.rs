//! How full the model's window is.

use std::sync::Arc;

use pith_protocol::answers::ContextUsage;
use pith_protocol::{Block, Content, Message, ToolSpec, json};

/// What an image counts for.
const IMAGE_CHARS: usize = 4800;

/// The estimate hosts see, or nothing without a window.
pub(crate) fn usage(messages: &[Arc<Message>], window: u64, prompt: &str, tools: &[ToolSpec]) -> Option<ContextUsage> {
    if window == 0 {
        return None;
    }
    let tokens = size(messages, prompt, tools);
    Some(ContextUsage { tokens: Some(tokens), context_window: window, percent: Some(100.0 * tokens as f64 / window as f64) })
}

/// Tokens of the last usable answer plus estimates of what follows it; estimates of everything without one.
fn size(messages: &[Arc<Message>], prompt: &str, tools: &[ToolSpec]) -> u64 {
    let measured = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let answer = message.as_assistant().filter(|answer| !answer.failed())?;
        let tokens = answer.usage.context_tokens();
        (tokens > 0).then_some((at, tokens))
    });
    let estimates = |messages: &[Arc<Message>]| messages.iter().map(|message| estimate(message)).sum::<u64>();
    match measured {
        Some((at, tokens)) => tokens + estimates(&messages[at + 1..]),
        None if messages.is_empty() => 0,
        None => {
            let schemas: usize = tools.iter().map(|tool| tool.name.len() + tool.description.len() + json::to_string(&*tool.parameters).len()).sum();
            tokens(utf16(prompt) + schemas) + estimates(messages)
        }
    }
}

/// A quarter of the characters, counted as JavaScript does so that other agents agree.
pub(crate) fn estimate(message: &Message) -> u64 {
    tokens(match message {
        Message::User(user) => content_chars(&user.content),
        Message::Custom(custom) => content_chars(&custom.content),
        Message::ToolResult(result) => result.content.iter().map(block_chars).sum(),
        Message::Assistant(answer) => answer.content.iter().map(block_chars).sum(),
        Message::BashExecution(bash) => utf16(&bash.command) + utf16(&bash.output),
        Message::CompactionSummary(summary) => utf16(&summary.summary),
        Message::BranchSummary(summary) => utf16(&summary.summary),
        Message::Other(_) => 0,
    })
}

fn content_chars(content: &Content) -> usize {
    match content {
        Content::Text(text) => utf16(text),
        Content::Blocks(blocks) => blocks.iter().map(block_chars).sum(),
    }
}

fn block_chars(block: &Block) -> usize {
    match block {
        Block::Text(text) => utf16(&text.text),
        Block::Thinking(thinking) => utf16(&thinking.thinking),
        Block::Image(_) => IMAGE_CHARS,
        Block::ToolCall(call) => utf16(&call.name) + utf16(&json::to_string(&call.arguments)),
        Block::Other(_) => 0,
    }
}

fn utf16(text: &str) -> usize {
    text.encode_utf16().count()
}

fn tokens(chars: usize) -> u64 {
    chars.div_ceil(4) as u64
}
