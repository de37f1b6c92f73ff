//! One writer per session file, held by a kernel lock on a file next to it.
//!
//! The lock goes away with the process that holds it, however that ends. The
//! content (pid and host) only serves the message shown to others.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::files;
use crate::paths::side_file;

/// Holds a session file for this process until dropped.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// Why a lock was not obtained.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Someone else has it; the pid, if it could be read.
    Taken(Option<u32>),
    /// The file system cannot lock, or the lock file cannot be made.
    Unavailable,
}

impl Lock {
    /// Takes the lock of a session file, without waiting.
    pub fn take(session: &Path) -> Result<Self, LockError> {
        let path = side_file(session, ".lock");
        loop {
            let mut file = files::open_private(&path).map_err(|_| LockError::Unavailable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Taken(owner(&mut file))),
                Err(TryLockError::Error(_)) => return Err(LockError::Unavailable),
            }
            // The owner before us may have removed the file after we opened it; then the
            // lock we got belongs to a name that is gone, and the next process would get another.
            if files::is_at(&file, &path) {
                _ = file.set_len(0).and_then(|()| writeln!(file, "{} {}", std::process::id(), host()));
                return Ok(Lock { file, path });
            }
        }
    }
}

impl Lock {
    /// Whether others would still meet this lock.
    pub fn is_in_place(&self) -> bool {
        files::is_at(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still held, so that nobody can be holding the name we remove.
        if self.is_in_place() {
            _ = fs::remove_file(&self.path);
        }
        _ = self.file.unlock();
    }
}

fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_learns_who_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let lock = Lock::take(&session).unwrap();
        assert!(matches!(Lock::take(&session), Err(LockError::Taken(Some(pid))) if pid == std::process::id()));
        drop(lock);
        assert!(!side_file(&session, ".lock").exists());
        Lock::take(&session).unwrap();
    }

    #[test]
    fn a_left_over_file_is_harmless() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        fs::write(side_file(&session, ".lock"), "99999 elsewhere, and more than we would write\n").unwrap();
        let lock = Lock::take(&session).unwrap();
        let text = fs::read_to_string(&lock.path).unwrap();
        assert!(text.starts_with(&format!("{} ", std::process::id())) && !text.contains("elsewhere"), "{text}");
    }
}
