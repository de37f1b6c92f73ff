//! Answers about checkpoints: what files were before tool calls.

use serde::{Deserialize, Serialize};

/// Answer of `list_checkpoints`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoints {
    /// Newest first.
    pub checkpoints: Vec<ListedCheckpoint>,
}

/// What a call has changed, and what can go back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedCheckpoint {
    pub id: String,
    /// The entry of the answer that the call is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool, or the command that put files back.
    pub tool: String,
    pub timestamp: String,
    pub coverage: CheckpointCoverage,
    /// Why not everything is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub files: Vec<CheckpointFile>,
}

/// Whether a checkpoint covers all that its call may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckpointCoverage {
    Full,
    Partial,
}

/// A file that a call has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointFile {
    /// Relative to the session's directory, absolute outside of it.
    pub path: String,
    pub change: FileChange,
    /// The size before the call; of a new file, after it.
    pub bytes: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    Created,
    Modified,
    Deleted,
}

/// Answer of `restore_checkpoint`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The files that went back, or would.
    pub restored: Vec<String>,
    pub skipped: Vec<SkippedFile>,
    /// The checkpoint that takes this back; absent if nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
}

/// A file that stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkippedFile {
    pub path: String,
    pub reason: String,
}
