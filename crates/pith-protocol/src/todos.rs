//! The todo list that hosts, models and session files share.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A named group of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhase {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub tasks: Vec<TodoTask>,
    /// Whatever else the host said.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoTask {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Abandoned,
}

impl TodoStatus {
    /// Wire words and their meaning.
    pub const WORDS: &[(&str, TodoStatus)] = &[
        ("pending", TodoStatus::Pending),
        ("in_progress", TodoStatus::InProgress),
        ("completed", TodoStatus::Completed),
        ("abandoned", TodoStatus::Abandoned),
    ];

    /// The state of a wire word.
    pub fn parse(word: &str) -> Option<TodoStatus> {
        TodoStatus::WORDS.iter().find(|(name, _)| *name == word).map(|(_, status)| *status)
    }

    /// Whether there is something left to do.
    pub fn is_open(self) -> bool {
        matches!(self, TodoStatus::Pending | TodoStatus::InProgress)
    }
}
