//! What a session has used, counted from the entries of its branch: a restart counts the same again, and a fork starts
//! with what its branch has used.

use std::time::Duration;

use pith_protocol::{AssistantMessage, Block, ErrorKind, Message, StopReason, Usage};
use pith_store::{EntryId, SessionStore, Spent, SpentSince};
use serde::{Deserialize, Serialize};

use super::disk::DiskRecord;

/// The `customType` of entries that keep what no other entry tells.
pub(super) const RECORD: &str = "pith.limits";

/// What was used on the branch and is measured, not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    pub wall_ms: u64,
    pub tool_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskRecord>,
}

impl Record {
    pub fn wall(self) -> Duration {
        Duration::from_millis(self.wall_ms)
    }

    pub fn tool(self) -> Duration {
        Duration::from_millis(self.tool_ms)
    }
}

/// What the branch has used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// The last entry that is counted.
    at: Option<EntryId>,
    pub turns: u64,
    pub tokens: u64,
    pub output_tokens: u64,
    pub cost: f64,
    pub record: Record,
    /// A model whose answers had tokens and no price.
    pub unpriced: Option<String>,
}

impl Counters {
    /// Counts what was appended since the last time; everything if the session is on another branch. `true` if anything
    /// may have changed.
    pub fn catch_up(&mut self, store: &SessionStore) -> bool {
        if self.at.as_deref() == store.leaf() {
            return false;
        }
        let spent = match store.spent_since(self.at.as_deref(), RECORD) {
            SpentSince::Entry(spent) => spent,
            SpentSince::Root(spent) => {
                *self = Counters::default();
                spent
            }
        };
        spent.iter().for_each(|spent| self.note(spent));
        self.at = store.leaf_id();
        true
    }

    fn note(&mut self, spent: &Spent) {
        match spent {
            Spent::Message(message) => match &**message {
                Message::Assistant(answer) => self.note_answer(answer),
                Message::ToolResult(result) => result.usage.iter().for_each(|usage| self.add(usage)),
                _ => {}
            },
            Spent::Summary(usage) => self.add(usage),
            Spent::Record(record) => self.record = serde_json::from_value(record.clone()).unwrap_or(self.record),
        }
    }

    /// Counts an answer. Those that failed are not turns, so that retries do not use them up.
    fn note_answer(&mut self, answer: &AssistantMessage) {
        self.turns += u64::from(!answer.failed());
        self.add(&answer.usage);
        let unreported = output_tokens(answer) - answer.usage.output;
        self.output_tokens += unreported;
        self.tokens += unreported;
        if answer.usage.output > 0 && answer.usage.cost.total <= 0.0 {
            self.unpriced = Some(answer.model.clone());
        }
    }

    fn add(&mut self, usage: &Usage) {
        let Usage { input, output, cache_read, cache_write, .. } = usage;
        self.tokens += input + output + cache_read + cache_write;
        self.output_tokens += output;
        // Other programs have written answers down with prices below zero.
        self.cost += usage.cost.total.max(0.0);
    }
}

/// The tokens the model has written. Providers report them at the end, so those of an answer that was cut off are
/// estimated.
fn output_tokens(answer: &AssistantMessage) -> u64 {
    let is_limited = answer.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit);
    if !is_limited && answer.stop_reason != StopReason::Aborted {
        return answer.usage.output;
    }
    let size = |block: &Block| match block {
        Block::Text(text) => text.text.len(),
        Block::Thinking(thinking) => thinking.thinking.len(),
        Block::ToolCall(call) => serde_json::to_string(&call.arguments).map_or(0, |text| text.len()),
        _ => 0,
    };
    let bytes: usize = answer.content.iter().map(size).sum();
    answer.usage.output.max(tokens_of(bytes))
}

/// An estimate: four bytes a token.
pub(super) fn tokens_of(bytes: usize) -> u64 {
    bytes as u64 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_price_below_zero_gives_no_money_back() {
        let answer = |cost: f64| {
            let mut answer = AssistantMessage { model: "m".into(), ..AssistantMessage::default() };
            answer.usage = Usage { output: 1, ..Usage::default() };
            answer.usage.cost.total = cost;
            answer
        };
        let mut counters = Counters::default();
        counters.note_answer(&answer(2.0));
        assert_eq!((counters.cost, &counters.unpriced), (2.0, &None));
        counters.note_answer(&answer(-1_000_000.0));
        assert_eq!((counters.cost, counters.unpriced.as_deref()), (2.0, Some("m")));
    }
}
