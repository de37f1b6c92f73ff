//! A position in the tree that no entry tells, kept in a file beside the session file.
//!
//! Sessions are continued at their last entry, and a move adds none. The note makes the
//! position survive a process that is killed, and goes away with the next append.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::Replacement;
use crate::paths::side_file;
use crate::tree::{EntryTree, NodeIndex};

/// Added to the name of the session file. Other programs ignore the file.
const SUFFIX: &str = ".leaf";

/// Where a session was moved to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Position {
    /// `None`: before all entries.
    leaf_id: Option<String>,
    /// The last entry of the file when the move was made. A file that has gone on since is continued at its end.
    last_id: Option<String>,
}

/// What was found beside a session file.
pub(crate) enum Noted {
    Nothing,
    /// A note that is damaged or out of date.
    Stale,
    At(Option<NodeIndex>),
}

impl Position {
    /// Notes that a session is continued at `leaf` for as long as its last entry stays the same.
    pub fn note(session: &Path, tree: &EntryTree, leaf: Option<NodeIndex>) -> io::Result<()> {
        let id = |index: Option<NodeIndex>| index.map(|index| tree.node(index).id.to_string());
        let position = Position { leaf_id: id(leaf), last_id: id(tree.end) };
        let mut replacement = Replacement::start(&side_file(session, SUFFIX))?;
        replacement.write_all(&serde_json::to_vec(&position)?)?;
        replacement.finish_soon()
    }

    /// Returns the position noted for a session file that was just read.
    pub fn find(session: &Path, tree: &EntryTree) -> Noted {
        let Ok(bytes) = fs::read(side_file(session, SUFFIX)) else { return Noted::Nothing };
        let Ok(Position { leaf_id, last_id: Some(last_id) }) = serde_json::from_slice(&bytes) else {
            return Noted::Stale;
        };
        let is_last = tree.end().is_some_and(|end| **end == *last_id);
        match leaf_id.map(|id| tree.find(&id)) {
            None if is_last => Noted::At(None),
            Some(Some(leaf)) if is_last => Noted::At(Some(leaf)),
            _ => Noted::Stale,
        }
    }

    /// Removes the note.
    pub fn forget(session: &Path) {
        // A note that stays is out of date with the next entry.
        _ = fs::remove_file(side_file(session, SUFFIX));
    }
}
