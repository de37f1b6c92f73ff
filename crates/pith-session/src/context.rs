//! How full the model's window is.

use std::sync::Arc;

use pith_ai::limits::message_tokens;
use pith_protocol::answers::ContextUsage;
use pith_protocol::{Message, ToolSpec, json};

/// The estimate hosts see, or nothing without a window.
pub(crate) fn usage(messages: &[Arc<Message>], window: u64, prompt: &str, tools: &[ToolSpec]) -> Option<ContextUsage> {
    if window == 0 {
        return None;
    }
    let tokens = size(messages, prompt, tools);
    Some(ContextUsage {
        tokens: Some(tokens),
        context_window: window,
        percent: Some(100.0 * tokens as f64 / window as f64),
    })
}

/// Tokens of the last usable answer plus estimates of what follows it; estimates of everything without one.
fn size(messages: &[Arc<Message>], prompt: &str, tools: &[ToolSpec]) -> u64 {
    let measured = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let answer = message.as_assistant().filter(|answer| !answer.failed())?;
        let tokens = answer.usage.context_tokens();
        (tokens > 0).then_some((at, tokens))
    });
    let estimates = |messages: &[Arc<Message>]| messages.iter().map(|message| message_tokens(message)).sum::<u64>();
    match measured {
        Some((at, tokens)) => tokens + estimates(&messages[at + 1..]),
        None if messages.is_empty() => 0,
        None => {
            let schemas: usize = tools
                .iter()
                .map(|tool| tool.name.len() + tool.description.len() + json::to_string(&*tool.parameters).len())
                .sum();
            ((prompt.encode_utf16().count() + schemas) as u64).div_ceil(4) + estimates(messages)
        }
    }
}
