//! Answers about the entries of a session and about other sessions.

use serde::{Deserialize, Deserializer, Serialize};

use super::checkpoints::SkippedFile;
use crate::Entry;

/// Answer of `get_fork_messages` and `get_branch_messages`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkMessages {
    pub messages: Vec<ForkMessage>,
}

/// A prompt that can be forked from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    pub entry_id: String,
    pub text: String,
}

/// Answer of `get_entries`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// In file order, every branch.
    pub entries: Vec<Entry>,
    /// Where the next entry will be attached; `null` before the first.
    pub leaf_id: Option<String>,
}

/// Answer of `get_tree`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Tree {
    /// With `flat`.
    Flat {
        /// In file order, every branch.
        nodes: Vec<FlatNode>,
        leaf_id: Option<String>,
    },
    Nested {
        /// Roots first.
        tree: Vec<TreeNode>,
        leaf_id: Option<String>,
    },
}

/// An entry and what follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    pub entry: Entry,
    pub children: Vec<TreeNode>,
    /// Its bookmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the bookmark was put there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

/// An entry in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlatNode {
    pub id: String,
    pub parent_id: Option<String>,
    pub entry: Entry,
    /// Its bookmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the bookmark was put there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

/// Answer of `navigate_tree`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    pub cancelled: bool,
    /// The new position, `null` for the one before all entries; absent when cancelled.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<Option<String>>,
    /// The prompt that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The summary of the branch that was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<Entry>,
    /// The files that went back, if the host asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Vec<String>>,
    /// Those that stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<SkippedFile>>,
}

impl Navigated {
    /// Nothing has moved.
    pub fn cancelled() -> Self {
        Navigated { cancelled: true, leaf_id: None, text: None, summary_entry: None, restored: None, skipped: None }
    }
}

/// Answer of `list_sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// Newest first.
    pub sessions: Vec<ListedSession>,
}

/// A session file without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    pub path: String,
    pub id: String,
    /// Empty if the file does not say.
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// Unix milliseconds.
    pub created: i64,
    /// Unix milliseconds of the latest prompt or answer.
    pub modified: i64,
    pub message_count: u64,
    /// `(no messages)` if there is none.
    pub first_message: String,
}

/// Tells `null` from an absent key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
