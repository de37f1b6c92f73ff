//! What a load records: diagnostics, and the state of every path its result
//! depends on.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pith_config::Diagnostic;

use crate::followed::Followed;

/// Diagnostics and stamps of one load.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub diagnostics: Vec<Diagnostic>,
    /// Which files may be read.
    pub followed: Followed,
    // A path may occur twice; a list is still cheaper than a map that is hardly ever asked.
    stamps: Vec<(PathBuf, Stamp)>,
}

/// How a path was when it was looked at; two equal stamps mean the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<State>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    len: u64,
    modified: Option<SystemTime>,
    // An edit within the granularity of the clock, or one that restores the time, still moves these.
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

impl Notes {
    /// For a load that reads what these links lead to.
    pub fn following(followed: Followed) -> Notes {
        Notes { followed, ..Notes::default() }
    }

    /// Returns the metadata behind links, and remembers it for [`Resources::changes_since`].
    pub fn look(&mut self, path: &Path) -> io::Result<Metadata> {
        let metadata = fs::metadata(path);
        self.stamps.push((path.to_path_buf(), Stamp::of(metadata.as_ref().ok())));
        metadata
    }

    /// Remembers the state of a file that is open already.
    pub fn saw(&mut self, path: &Path, metadata: &Metadata) {
        self.stamps.push((path.to_path_buf(), Stamp::of(Some(metadata))));
    }

    /// Returns the state in which a path was seen.
    pub fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.stamps.iter().find(|(seen, _)| seen == path).map(|(_, stamp)| *stamp)
    }

    /// Whether anything the load looked at has changed.
    pub fn is_stale(&self) -> bool {
        self.stamps.iter().any(|(path, stamp)| Stamp::of(fs::metadata(path).as_ref().ok()) != *stamp)
    }
}

impl Stamp {
    fn of(metadata: Option<&Metadata>) -> Stamp {
        Stamp(metadata.map(|metadata| State {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
        }))
    }
}
