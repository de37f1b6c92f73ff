//! `thinkingBudgets`: how much models think.

use pith_protocol::ThinkingLevel;
use serde::Deserialize;

/// Tokens a model may think, per level, for APIs that take a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ThinkingBudgets {
    pub minimal: u64,
    pub low: u64,
    pub medium: u64,
    pub high: u64,
}

impl Default for ThinkingBudgets {
    fn default() -> Self {
        ThinkingBudgets { minimal: 1024, low: 2048, medium: 8192, high: 16384 }
    }
}

impl ThinkingBudgets {
    /// Returns the budget of a level; `xhigh` and `max` count as `high`.
    pub fn of(&self, level: ThinkingLevel) -> u64 {
        match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => self.minimal,
            ThinkingLevel::Low => self.low,
            ThinkingLevel::Medium => self.medium,
            ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => self.high,
        }
    }
}
