//! `checkpoints`: which files can go back, and how much of them is kept.

use serde::Deserialize;

/// What files were before tool calls, and how much of that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Checkpoints {
    pub mode: CheckpointMode,
    pub max_files: u64,
    pub max_file_mb: u64,
    pub max_total_mb: u64,
    pub max_age_days: u64,
}

impl Default for Checkpoints {
    fn default() -> Self {
        let mode = CheckpointMode::default();
        Checkpoints { mode, max_files: 50_000, max_file_mb: 4, max_total_mb: 512, max_age_days: 14 }
    }
}

/// Which calls checkpoints cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointMode {
    Off,
    /// `write` and `edit`.
    #[default]
    Files,
    /// Also commands and other tools.
    Workspace,
}

impl CheckpointMode {
    /// The words a settings file may use.
    pub const WORDS: &'static [&'static str] = &["off", "files", "workspace"];
}
