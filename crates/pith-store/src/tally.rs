//! Session stats: what all entries of a file add up to, whatever their branch.

use crate::sketch::{Sketch, UsageSketch};
use crate::tree::{Kind, Role};

/// Totals over every entry, kept up to date with each append.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub user_messages: u64,
    pub assistant_messages: u64,
    pub tool_results: u64,
    /// Tool-call blocks in assistant messages.
    pub tool_calls: u64,
    /// `message` entries of any role but `system`.
    pub total_messages: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// US dollars.
    pub cost: f64,
}

impl Tally {
    /// Returns all tokens together.
    pub fn total_tokens(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write].into_iter().fold(self.input, u64::saturating_add)
    }

    pub(crate) fn add(&mut self, kind: Kind, sketch: &Sketch<'_>) {
        self.change(kind, sketch, u64::saturating_add, 1.0);
    }

    /// Takes back an entry that a later one of the same id replaced.
    pub(crate) fn remove(&mut self, kind: Kind, sketch: &Sketch<'_>) {
        self.change(kind, sketch, u64::saturating_sub, -1.0);
    }

    fn change(&mut self, kind: Kind, sketch: &Sketch<'_>, step: fn(u64, u64) -> u64, sign: f64) {
        let usage = match kind {
            Kind::Message(role) => {
                let (count, n_calls) = match role {
                    Role::User => (Some(&mut self.user_messages), 0),
                    Role::Assistant => (Some(&mut self.assistant_messages), sketch.message.n_tool_calls),
                    Role::ToolResult => (Some(&mut self.tool_results), 0),
                    Role::BashExecution | Role::Custom | Role::System | Role::Other => (None, 0),
                };
                if let Some(count) = count {
                    *count = step(*count, 1);
                }
                self.tool_calls = step(self.tool_calls, n_calls);
                if role != Role::System {
                    self.total_messages = step(self.total_messages, 1);
                }
                match role {
                    Role::Assistant | Role::ToolResult => &sketch.message.usage,
                    Role::User | Role::BashExecution | Role::Custom | Role::System | Role::Other => return,
                }
            }
            Kind::Compaction | Kind::BranchSummary | Kind::Usage => &sketch.usage,
            _ => return,
        };
        let UsageSketch { input, output, cache_read, cache_write, cost } = usage;
        self.input = step(self.input, *input);
        self.output = step(self.output, *output);
        self.cache_read = step(self.cache_read, *cache_read);
        self.cache_write = step(self.cache_write, *cache_write);
        self.cost += sign * cost;
    }
}
