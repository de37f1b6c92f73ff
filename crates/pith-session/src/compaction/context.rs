//! How full the model's window is.

use std::sync::Arc;

use pith_ai::message_tokens;
use pith_protocol::answers::ContextUsage;
use pith_protocol::{AssistantMessage, Message, ToolSpec, json};

/// What the model will see, for counting tokens.
pub(crate) struct Context<'a> {
    pub messages: &'a [Arc<Message>],
    /// Token counts of messages before this position were made in another context.
    pub rewritten_to: usize,
    pub prompt: &'a str,
    pub tools: &'a [ToolSpec],
}

impl Context<'_> {
    /// The usage hosts are told, or `None` without a known window. After a compaction the size is unknown until a model
    /// has counted it.
    pub fn usage(&self, window: u64) -> Option<ContextUsage> {
        if window == 0 {
            return None;
        }
        let answers = || self.messages.iter().rev().filter_map(|message| message.as_assistant());
        let is_known =
            self.compacted_at().is_none() || answers().any(|answer| has_count(answer) && self.is_newer(answer));
        let tokens = is_known.then(|| self.tokens());
        let percent = tokens.map(|tokens| 100.0 * tokens as f64 / window as f64);
        Some(ContextUsage { tokens, context_window: window, percent })
    }

    /// Tokens of the last valid count plus estimates of what follows it; estimates of everything if there is no count.
    pub fn tokens(&self) -> u64 {
        let fresh = self.messages.iter().enumerate().skip(self.rewritten_to).rev();
        let counted = fresh.into_iter().find_map(|(at, message)| {
            let answer = message.as_assistant().filter(|answer| !answer.failed())?;
            let tokens = answer.usage.context_tokens();
            (tokens > 0).then_some((at, tokens))
        });
        match counted {
            Some((at, tokens)) => tokens + estimate(&self.messages[at + 1..]),
            None => self.fixed_tokens() + estimate(self.messages),
        }
    }

    /// Tokens of what every request carries besides the messages.
    pub fn fixed_tokens(&self) -> u64 {
        let schema =
            |tool: &ToolSpec| tool.name.len() + tool.description.len() + json::to_string(&*tool.parameters).len();
        let schemas: usize = self.tools.iter().map(schema).sum();
        ((self.prompt.encode_utf16().count() + schemas) as u64).div_ceil(4)
    }

    /// Whether an answer was requested after the latest compaction.
    pub fn is_newer(&self, answer: &AssistantMessage) -> bool {
        self.compacted_at().is_none_or(|compacted| answer.timestamp >= compacted)
    }

    fn compacted_at(&self) -> Option<i64> {
        match self.messages.first().map(|message| &**message) {
            Some(Message::CompactionSummary(summary)) => Some(summary.timestamp),
            _ => None,
        }
    }
}

/// Whether an answer reports the size of the context.
pub(crate) fn has_count(answer: &AssistantMessage) -> bool {
    !answer.failed() && answer.usage.context_tokens() > 0
}

/// Estimates the tokens of the messages.
pub(crate) fn estimate(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(message)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{Block, CompactionSummary, Content, StopReason, Usage, UserMessage};

    fn user(n_tokens: usize) -> Arc<Message> {
        Arc::new(Message::User(UserMessage { content: Content::Text("x".repeat(4 * n_tokens)), ..Default::default() }))
    }

    fn answer(timestamp: i64, total_tokens: u64, stop_reason: StopReason) -> Arc<Message> {
        let usage = Usage { total_tokens, ..Default::default() };
        let content = vec![Block::text("four")];
        Arc::new(Message::Assistant(AssistantMessage { content, usage, timestamp, stop_reason, ..Default::default() }))
    }

    fn compacted(timestamp: i64) -> Arc<Message> {
        let summary = "x".repeat(40);
        Arc::new(Message::CompactionSummary(CompactionSummary { summary, tokens_before: 0, timestamp }))
    }

    fn context(messages: &[Arc<Message>], rewritten_to: usize) -> Context<'_> {
        Context { messages, rewritten_to, prompt: "12345678", tools: &[] }
    }

    #[test]
    fn the_last_count_that_holds_is_used() {
        use StopReason::{Error, Stop};
        let check = |messages: &[Arc<Message>], rewritten_to, tokens| {
            assert_eq!(context(messages, rewritten_to).tokens(), tokens);
        };
        check(&[], 0, 2);
        check(&[user(5)], 0, 7);
        check(&[user(5), answer(1, 100, Stop), user(3)], 0, 103);
        check(&[user(5), answer(1, 100, Stop), answer(2, 900, Error)], 0, 101);
        // Counted before an edit, so no longer valid.
        check(&[user(5), answer(1, 100, Stop), user(3)], 3, 2 + 5 + 1 + 3);
    }

    #[test]
    fn after_a_compaction_the_size_is_unknown_until_it_is_counted() {
        let tokens = |messages: &[Arc<Message>], to| context(messages, to).usage(1000).map(|usage| usage.tokens);
        let old = [compacted(10), user(1), answer(5, 100, StopReason::Stop)];
        assert_eq!(tokens(&old, 3), Some(None));
        let new = [compacted(10), user(1), answer(11, 100, StopReason::Stop)];
        assert_eq!(tokens(&new, 2), Some(Some(100)));
        assert_eq!(context(&new, 2).usage(0), None);
    }
}
