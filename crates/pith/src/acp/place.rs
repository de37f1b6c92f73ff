//! The files of a session, as its tools see them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_acp::place::{Current, Place};
use pith_tools::{Contents, Workbench};

/// The largest file that is read to show what becomes of it. Small, because the thread is that of all sessions.
const MAX_FILE: u64 = 1 << 20;

/// What the tools of a session work with.
pub struct ToolPlace(pub Arc<Workbench>);

impl Place for ToolPlace {
    fn cwd(&self) -> &Path {
        &self.0.base.cwd
    }

    fn resolve(&self, path: &str) -> PathBuf {
        self.0.base.resolve(path)
    }

    fn current(&self, path: &Path) -> Current {
        match Contents::of(path, MAX_FILE, &self.0) {
            Contents::Text(text) => Current::Text(text),
            Contents::Absent => Current::Absent,
            Contents::Unknown => Current::Unknown,
        }
    }
}
