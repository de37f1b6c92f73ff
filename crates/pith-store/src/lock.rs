//! One writer per session file, held by a kernel lock on a file next to it.
//!
//! The lock goes away with the process that holds it, however that ends. The
//! content (pid and host) only serves the message shown to others.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files;
use crate::paths::side_file;

/// How long a lock may outlive its owner.
const LINGER: Duration = Duration::from_secs(1);

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
    /// Takes the lock of a session file, without waiting for an owner that lives.
    pub fn take(session: &Path) -> Result<Self, LockError> {
        let path = side_file(session, ".lock");
        let deadline = Instant::now() + LINGER;
        loop {
            let mut file = files::open_private(&path).map_err(|_| LockError::Unavailable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => match owner(&mut file) {
                    // A process that was killed while it started a command is survived for a
                    // moment by the copy it made of itself, which holds the lock until it
                    // becomes the command.
                    Some(pid) if is_gone(pid) && Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    pid => return Err(LockError::Taken(pid)),
                },
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

/// Whether a process of this machine has ended, where that can be seen.
fn is_gone(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
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
    fn a_lock_may_outlive_its_owner_for_a_moment() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let path = side_file(&session, ".lock");
        let mut left = files::open_private(&path).unwrap();
        left.try_lock().unwrap();
        // No process has this number: it is above the largest there can be.
        writeln!(left, "{} here", u32::MAX).unwrap();
        let taker = std::thread::spawn(move || Lock::take(&session).is_ok());
        drop(left);
        assert!(taker.join().unwrap());
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
