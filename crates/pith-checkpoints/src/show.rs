//! Checkpoints as hosts see them.

use pith_protocol::answers::{CheckpointCoverage, CheckpointFile, FileChange, ListedCheckpoint};

use crate::log::{Checkpoint, Covered};
use crate::state::State;

impl Checkpoint {
    /// Returns what a host is told.
    pub fn shown(&self) -> ListedCheckpoint {
        let coverage = if self.partial.is_some() { CheckpointCoverage::Partial } else { CheckpointCoverage::Full };
        let moment = jiff::Timestamp::from_millisecond(i64::try_from(self.at).unwrap_or(i64::MAX));
        ListedCheckpoint {
            id: self.id.clone(),
            entry_id: self.entry_id.clone(),
            tool_call_id: self.tool_call_id.clone(),
            tool: self.tool.clone(),
            timestamp: moment.map(|moment| format!("{moment:.3}")).unwrap_or_default(),
            coverage,
            reason: self.partial.clone(),
            files: self.files.iter().filter_map(shown).collect(),
        }
    }
}

/// A file that has changed, or may have; directories are not told of.
fn shown(file: &Covered) -> Option<CheckpointFile> {
    let Covered { path, before, after } = file;
    let is_there = |state: &State| !matches!(state, State::Absent | State::Directory { .. });
    let is_after = after.as_ref().is_none_or(is_there);
    let change = match (is_there(before), is_after) {
        _ if after.as_ref() == Some(before) => return None,
        (false, false) => return None,
        (false, true) => FileChange::Created,
        (true, true) => FileChange::Modified,
        (true, false) => FileChange::Deleted,
    };
    let state = after.as_ref().filter(|_| change == FileChange::Created).unwrap_or(before);
    Some(CheckpointFile { path: path.shown(), change, bytes: state.bytes() })
}
