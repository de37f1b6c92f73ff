//! Thinking of earlier answers that servers refuse.
//!
//! Servers sign what a model has thought and check the signature when it comes
//! back. One that does not hold any more would end the session, as the
//! conversation is sent with every request. Once refused, what was thought so
//! far is left out; what the model thinks from then on is kept.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pith_protocol::{AssistantMessage, Block, LlmCall, Message, ThinkingBlock};

use crate::wire::is_about_thinking;

/// The thinking that one server has refused for one model, by its hash.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedThinking(HashSet<u64>);

impl RefusedThinking {
    /// Adds the thinking of a request if an error answer refuses it. Returns how many blocks are new; `None` if the
    /// error is about something else.
    pub fn learn(&mut self, call: &LlmCall, status: u16, body: &str) -> Option<usize> {
        if !is_about_thinking(status, body) {
            return None;
        }
        let model = &call.model;
        // The thinking of another model is sent as text.
        let is_own = |answer: &&AssistantMessage| answer.provider == model.provider && answer.model == model.id;
        let answers = call.messages.iter().filter_map(|message| message.as_assistant()).filter(is_own);
        let n_new = answers.flat_map(thoughts).filter(|thought| self.0.insert(hash(thought))).count();
        (n_new > 0).then_some(n_new)
    }

    /// Returns the messages without refused thinking; `None` if none has any.
    pub fn remove(&self, messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        let is_refused = |block: &Block| matches!(block, Block::Thinking(thought) if self.0.contains(&hash(thought)));
        let affected =
            |message: &Message| message.as_assistant().is_some_and(|answer| answer.content.iter().any(is_refused));
        if self.0.is_empty() || !messages.iter().any(|message| affected(message)) {
            return None;
        }
        let without = |message: &Arc<Message>| match &**message {
            Message::Assistant(answer) if affected(message) => {
                let mut answer = answer.clone();
                answer.content.retain(|block| !is_refused(block));
                // The ids and signatures beside it are bound to it, and those of other models are not sent.
                answer.model.clear();
                Arc::new(Message::Assistant(answer))
            }
            _ => message.clone(),
        };
        Some(messages.iter().map(without).collect())
    }
}

fn thoughts(answer: &AssistantMessage) -> impl Iterator<Item = &ThinkingBlock> {
    answer.content.iter().filter_map(|block| match block {
        Block::Thinking(thought) => Some(thought),
        _ => None,
    })
}

fn hash(thought: &ThinkingBlock) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&thought.thinking, &thought.thinking_signature).hash(&mut hasher);
    hasher.finish()
}
