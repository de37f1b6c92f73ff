//! Remembers each file as the session last saw it, to notice changes by others.

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::confine::real_path;

/// Files up to this size are compared by content, larger ones by size and modification time.
pub(crate) const MAX_COMPARED: u64 = 8 << 20;

/// Files the session has read or written, as they were then.
pub(crate) struct SeenFiles {
    /// `None` if changes are not to be reported.
    files: Option<Mutex<HashMap<PathBuf, Seen>>>,
}

#[derive(Clone, Copy)]
struct Seen {
    size: u64,
    modified: Option<SystemTime>,
    contents: Option<u64>,
}

impl SeenFiles {
    pub fn new(enabled: bool) -> Self {
        SeenFiles { files: enabled.then(Mutex::default) }
    }

    /// Remembers a file as it is now. `contents` is the [`digest`] if it is known.
    pub fn remember(&self, path: &Path, metadata: &Metadata, contents: Option<u64>) {
        if let Some(files) = &self.files {
            let seen = Seen { size: metadata.len(), modified: metadata.modified().ok(), contents };
            files.lock().unwrap_or_else(PoisonError::into_inner).insert(real_path(path), seen);
        }
    }

    /// Returns whether the file differs from what was last seen. Unknown files count as unchanged.
    pub fn has_changed(&self, path: &Path, metadata: &Metadata, contents: impl FnOnce() -> Option<u64>) -> bool {
        let Some(files) = &self.files else { return false };
        let seen = files.lock().unwrap_or_else(PoisonError::into_inner).get(&real_path(path)).copied();
        let Some(seen) = seen else { return false };
        if seen.size != metadata.len() {
            return true;
        }
        // A new modification time may come from a `touch`; the contents decide if they are known.
        seen.modified != metadata.modified().ok() && (seen.contents.is_none() || seen.contents != contents())
    }
}

/// Hashes the contents of a file; `None` if it is too large to be compared.
pub(crate) fn digest(bytes: &[u8]) -> Option<u64> {
    if bytes.len() as u64 > MAX_COMPARED {
        return None;
    }
    let mut digest = Digest::default();
    digest.push(bytes);
    Some(digest.finish())
}

/// Computes a [`digest`] of contents that arrive in pieces.
#[derive(Default)]
pub(crate) struct Digest(DefaultHasher);

impl Digest {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The note about a file that was changed by others.
pub(crate) fn remark(path: &str) -> String {
    format!("\n\n[Note: {path} had changed on disk since it was last read or written in this session.]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_pieces_of_a_digest_do_not_matter() {
        let text = b"some contents of a file, longer than one block";
        for cut in 0..text.len() {
            let mut pieces = Digest::default();
            pieces.push(&text[..cut]);
            pieces.push(&text[cut..]);
            assert_eq!(Some(pieces.finish()), digest(text));
        }
    }

    #[test]
    fn only_a_different_content_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let seen = SeenFiles::new(true);
        let changed =
            |seen: &SeenFiles| seen.has_changed(&path, &path.metadata().unwrap(), || digest(&fs::read(&path).unwrap()));
        fs::write(&path, "one").unwrap();
        assert!(!changed(&seen), "never seen");
        seen.remember(&path, &path.metadata().unwrap(), digest(b"one"));
        assert!(!changed(&seen));
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(!changed(&seen), "touched");
        fs::write(&path, "two").unwrap();
        assert!(changed(&seen));
        fs::write(&path, "longer").unwrap();
        assert!(changed(&seen));
        assert!(!changed(&SeenFiles::new(false)));
    }
}
