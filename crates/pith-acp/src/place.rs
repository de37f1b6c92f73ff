//! Where a session works, as its tools see it.

use std::path::{Path, PathBuf};

/// What is at a path before a tool writes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    Text(String),
    /// There is no file.
    Absent,
    /// It cannot be shown, or must not be read.
    Unknown,
}

/// The directory of a session and the files that its tools reach.
pub trait Place: Send + Sync {
    /// The directory.
    fn cwd(&self) -> &Path;
    /// Returns the file that tools take `path` for.
    fn resolve(&self, path: &str) -> PathBuf;
    /// Returns what is in a file that a tool may change.
    fn current(&self, path: &Path) -> Current;
}

/// A directory of whose files nothing is known.
pub(crate) struct Directory(pub PathBuf);

impl Place for Directory {
    fn cwd(&self) -> &Path {
        &self.0
    }

    fn resolve(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn current(&self, _path: &Path) -> Current {
        Current::Unknown
    }
}
