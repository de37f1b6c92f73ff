//! How much fits: token estimates, the output limit of a request and thinking
//! budgets.

mod refused;

use pith_protocol::{AssistantMessage, Block, Content, LlmCall, Message, Model};

pub use refused::{LearnedLimits, asked_for, with_exact_limit};

/// What a picture counts, in characters.
const IMAGE_CHARS: usize = 4800;

/// Room kept between the estimate and the end of the context window.
const SAFETY_TOKENS: u64 = 4096;

/// By how much a server may count more than is estimated, in percent. OpenRouter has a tokenizer of its own and refuses
/// a request whose input and output it takes to be longer than the window.
const MISCOUNT_PERCENT: u64 = 15;

/// The largest output limit for which less room is kept than that. It is still enough for most answers.
const TIGHT_OUTPUT: u64 = 32_768;

/// Tokens that are always left for the answer itself.
pub const ANSWER_TOKENS: u64 = 1024;

/// The limit of a model whose description has none.
const DEFAULT_MAX_TOKENS: u64 = 16384;

/// Returns the output limit of a request whose input is about `input` tokens.
pub fn output_limit(call: &LlmCall, input: u64) -> u64 {
    fit(call.max_tokens.unwrap_or_else(|| max_tokens(&call.model)), &call.model, input)
}

/// Returns the output limit when a thinking budget comes on top of it, and the budget that then fits.
pub fn limit_with_budget(call: &LlmCall, input: u64, budget: u64) -> (u64, u64) {
    let wanted = output_limit(call, input).saturating_add(budget).min(max_tokens(&call.model));
    let limit = fit(wanted, &call.model, input);
    (limit, budget.min(limit.saturating_sub(ANSWER_TOKENS)))
}

fn max_tokens(model: &Model) -> u64 {
    if model.max_tokens == 0 { DEFAULT_MAX_TOKENS } else { model.max_tokens }
}

fn fit(wanted: u64, model: &Model, input: u64) -> u64 {
    if model.context_window == 0 {
        return wanted;
    }
    let free = model.context_window.saturating_sub(input);
    // In a small window the fixed amount would leave nothing to answer with.
    let least = free.saturating_sub(safety_tokens(model.context_window)).min(ANSWER_TOKENS);
    let miscount = input.saturating_mul(MISCOUNT_PERCENT).div_ceil(100);
    let ample = free.saturating_sub(miscount.max(SAFETY_TOKENS));
    let room = if ample < TIGHT_OUTPUT { free.saturating_sub(SAFETY_TOKENS).min(TIGHT_OUTPUT) } else { ample };
    wanted.min(room.max(least).max(1))
}

/// Returns how many tokens are kept free between an estimate and the end of a window; less in a small window.
pub fn safety_tokens(window: u64) -> u64 {
    SAFETY_TOKENS.min(window / 8)
}

/// Estimates the tokens of a request: the last count a provider gave plus what came later. Estimates rather more than
/// [`message_tokens`], as the answer has to fit behind it.
pub fn request_tokens(call: &LlmCall) -> u64 {
    let (mut counted, mut newest) = (None, i64::MIN);
    for (at, message) in call.messages.iter().enumerate() {
        let timestamp = timestamp(message);
        // A message older than one before it was moved here by a compaction; its count is of another context.
        if let Some(answer) = message.as_assistant().filter(|answer| !answer.failed() && timestamp >= newest) {
            let tokens = answer.usage.context_tokens();
            counted = (tokens > 0).then_some((at, tokens)).or(counted);
        }
        newest = newest.max(timestamp);
    }
    match counted {
        Some((at, tokens)) => {
            tokens + call.messages[at + 1..].iter().map(|message| sent_tokens(message_chars(message))).sum::<u64>()
        }
        None => {
            let tools: usize = call
                .tools
                .iter()
                .map(|tool| chars(&tool.name) + chars(&tool.description) + chars(&tool.parameters.to_string()))
                .sum();
            let fixed = chars(&call.system_prompt) + tools;
            sent_tokens(fixed) + call.messages.iter().map(|message| sent_tokens(message_chars(message))).sum::<u64>()
        }
    }
}

/// Estimates the tokens of a message.
pub fn message_tokens(message: &Message) -> u64 {
    quarter(message_chars(message))
}

fn message_chars(message: &Message) -> usize {
    match message {
        Message::User(message) => content_chars(&message.content),
        Message::Custom(message) => content_chars(&message.content),
        Message::ToolResult(message) => blocks_chars(&message.content),
        Message::Assistant(message) => blocks_chars(&message.content),
        Message::BashExecution(message) => chars(&message.command) + chars(&message.output),
        Message::CompactionSummary(message) => chars(&message.summary),
        Message::BranchSummary(message) => chars(&message.summary),
        Message::Other(_) => 0,
    }
}

/// Estimates the tokens of an answer.
pub fn assistant_tokens(message: &AssistantMessage) -> u64 {
    quarter(blocks_chars(&message.content))
}

fn content_chars(content: &Content) -> usize {
    match content {
        Content::Text(text) => chars(text),
        Content::Blocks(blocks) => blocks_chars(blocks),
    }
}

fn blocks_chars(blocks: &[Block]) -> usize {
    let size = |block: &Block| match block {
        Block::Text(block) => chars(&block.text),
        Block::Thinking(block) => chars(&block.thinking),
        Block::Image(_) => IMAGE_CHARS,
        Block::ToolCall(call) => chars(&call.name) + chars(&pith_protocol::json::to_string(&call.arguments)),
        Block::Other(_) => 0,
    };
    blocks.iter().map(size).sum()
}

/// Counts UTF-16 code units, so that estimates agree with those of pi.
fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

fn quarter(chars: usize) -> u64 {
    chars.div_ceil(4) as u64
}

/// Takes a token to be three and a half characters.
fn sent_tokens(chars: usize) -> u64 {
    (chars * 2).div_ceil(7) as u64
}

fn timestamp(message: &Message) -> i64 {
    match message {
        Message::User(message) => message.timestamp,
        Message::Assistant(message) => message.timestamp,
        Message::ToolResult(message) => message.timestamp,
        Message::BashExecution(message) => message.timestamp,
        Message::Custom(message) => message.timestamp,
        Message::CompactionSummary(message) => message.timestamp,
        Message::BranchSummary(message) => message.timestamp,
        Message::Other(_) => i64::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assistant, call, user};
    use pith_protocol::{Model, Usage};
    use serde_json::json;
    use std::sync::Arc;

    fn model(context_window: u64, max_tokens: u64) -> Model {
        Model { context_window, max_tokens, ..Model::default() }
    }

    #[test]
    fn estimates_start_at_the_last_count() {
        let mut answer = assistant(json!([{"type":"text","text":"x"}]));
        answer.timestamp = 5;
        answer.usage = Usage { input: 100, output: 20, total_tokens: 120, ..Usage::default() };
        let messages = vec![user("long long question"), Message::Assistant(answer.clone()), user("12345")];
        assert_eq!(request_tokens(&call(model(0, 0), messages)), 122);

        // The same count is of no use when an earlier message is younger.
        let Message::User(mut later) = user("12345678") else { unreachable!() };
        later.timestamp = 9;
        let messages = vec![Message::User(later), Message::Assistant(answer)];
        assert_eq!(request_tokens(&call(model(0, 0), messages)), 3 + 1);
    }

    #[test]
    fn everything_counts_without_a_count() {
        let mut call = call(model(0, 0), vec![user("äöü€😀"), user("1")]);
        assert_eq!(request_tokens(&call), 2 + 1);
        call.system_prompt = Arc::from("12345678");
        assert_eq!(request_tokens(&call), 6);
    }

    #[test]
    fn the_limit_leaves_room_for_the_input() {
        let limit = |window, max, wanted, input| {
            let mut call = call(model(window, max), vec![]);
            call.max_tokens = wanted;
            output_limit(&call, input)
        };
        assert_eq!(limit(200_000, 32_000, None, 1000), 32_000);
        assert_eq!(limit(200_000, 32_000, Some(500), 1000), 500);
        assert_eq!(limit(40_000, 99_000, None, 1000), 34_904);
        // A server may count fifteen percent more than is estimated here.
        assert_eq!(limit(200_000, 128_000, None, 10_000), 128_000);
        assert_eq!(limit(200_000, 128_000, None, 100_000), 85_000);
        assert_eq!(limit(200_000, 128_000, None, 145_421), 32_768);
        // Near the end of the window only so much is asked for that such a request still fits for a while.
        assert_eq!(limit(200_000, 128_000, None, 145_440), 32_768);
        assert_eq!(limit(200_000, 128_000, None, 163_136), 32_768);
        assert_eq!(limit(200_000, 128_000, None, 163_137), 32_767);
        assert_eq!(limit(100_000, 128_000, None, 80_000), 15_904);
        assert_eq!(limit(10_000, 32_000, None, 1000), 4904);
        assert_eq!(limit(40_000, 99_000, None, 36_500), 1);
        assert_eq!(limit(8_000, 32_000, None, 2500), 1404);
        assert_eq!(limit(8_000, 32_000, None, 5000), 1024);
        assert_eq!(limit(8_000, 32_000, None, 6500), 500);
        assert_eq!(limit(8_000, 32_000, None, 9000), 1);
        assert_eq!(limit(0, 32_000, None, 9000), 32_000);
        assert_eq!(limit(0, 0, None, 9000), 16_384);
    }

    #[test]
    fn budgets_leave_room_for_the_answer() {
        let budget = |max, wanted, budget| {
            let mut call = call(model(200_000, max), vec![]);
            call.max_tokens = wanted;
            limit_with_budget(&call, 0, budget)
        };
        assert_eq!(budget(32_000, None, 8192), (32_000, 8192));
        assert_eq!(budget(16_384, None, 16_384), (16_384, 15_360));
        assert_eq!(budget(32_000, Some(4000), 8192), (12_192, 8192));
        assert_eq!(budget(500, None, 8192), (500, 0));
    }
}
