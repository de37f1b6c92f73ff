//! Looks at paths, and keeps what is there.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::objects::{Objects, digest_of};
use crate::state::{Digest, Name, State, Unkept};

/// Looks at paths without following a link at their end.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub objects: Objects,
    /// Larger files are not kept.
    pub max_file: u64,
}

impl Capture {
    /// Returns what is at a path, and keeps its content. Fails only if the content cannot be kept.
    pub fn keep(&self, path: &Path) -> io::Result<State> {
        self.look_with(path, |file| self.objects.keep(file).map(Some))
    }

    /// Returns what is at a path.
    pub fn look(&self, path: &Path) -> State {
        self.look_with(path, |file| Ok(digest_of(file).ok())).expect("looking fails nowhere else")
    }

    /// Looks at a path; of a file `digest` is taken, which is `None` if it cannot be read.
    fn look_with(
        &self,
        path: &Path,
        digest: impl FnOnce(&mut File) -> io::Result<Option<Digest>>,
    ) -> io::Result<State> {
        let Ok(metadata) = path.symlink_metadata() else { return Ok(State::Absent) };
        if metadata.is_symlink() {
            let target = path.read_link();
            return Ok(
                target.map_or(unkept(&metadata, Unkept::Unreadable), |target| State::Link { target: Name(target) })
            );
        }
        if metadata.is_dir() {
            return Ok(State::Directory { mode: metadata.mode() & 0o7777 });
        }
        if !metadata.is_file() {
            return Ok(unkept(&metadata, Unkept::NotRegular));
        }
        if metadata.len() > self.max_file {
            return Ok(unkept(&metadata, Unkept::TooLarge));
        }
        // What was put there meanwhile must neither lead elsewhere nor block.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let Ok(mut file) = opened else { return Ok(unkept(&metadata, Unkept::Unreadable)) };
        let Some(sha256) = digest(&mut file)? else { return Ok(unkept(&metadata, Unkept::Unreadable)) };
        // Of the open file: it may be another one than the one that was looked at.
        let metadata = file.metadata().unwrap_or(metadata);
        Ok(State::File { sha256, mode: metadata.mode() & 0o7777, bytes: metadata.len() })
    }
}

pub(crate) fn unkept(metadata: &Metadata, why: Unkept) -> State {
    State::Unkept { why, bytes: metadata.len(), modified: modified(metadata) }
}

/// The moment of the last change of the content, in nanoseconds.
pub(crate) fn modified(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}
