//! One process at a time runs on a session file or writes to it, by a kernel lock on a file next to it.
//!
//! The lock goes away with the process that holds it, however that ends. The content
//! (pid, host, and whether it is held for a run) only serves those who meet it.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pith_config::is_gone;

use crate::files;
use crate::paths::side_file;

/// How long to wait for an owner that is about to be done: it writes a few lines or reads the file. A lock may also
/// outlive its owner, but not for that long.
const WAIT: Duration = Duration::from_secs(1);

/// Follows pid and host in the lock file of a run.
const RUNNING: &str = "running";

/// Holds a session file for this process until dropped.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// What a lock is held for, which is how others know whether to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A run, which may take hours.
    Run,
    /// Reading or writing, which is over in a moment.
    Access,
}

/// Why a lock was not obtained.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Someone else has it; the pid, if it could be read.
    Taken(Option<u32>),
    /// The file system cannot lock, or the lock file cannot be made.
    Unavailable,
}

/// What a lock file says about the owner of the lock.
struct Owner {
    pid: Option<u32>,
    purpose: Purpose,
}

impl Lock {
    /// Takes the lock of a session file. Waits a moment for those who only read or write, and never for a run.
    pub fn take(session: &Path, purpose: Purpose) -> Result<Self, LockError> {
        let path = side_file(session, ".lock");
        let deadline = Instant::now() + WAIT;
        loop {
            let mut file = files::open_private(&path).map_err(|_| LockError::Unavailable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let owner = Owner::read(&mut file);
                    if !owner.is_soon_done() || Instant::now() > deadline {
                        return Err(LockError::Taken(owner.pid));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::Error(_)) => return Err(LockError::Unavailable),
            }
            // The owner before us may have removed the file after we opened it; then the
            // lock we got belongs to a name that is gone, and the next process would get another.
            if files::is_at(&file, &path) {
                describe_owner(&mut file, purpose);
                return Ok(Lock { file, path });
            }
        }
    }

    /// Whether others who want that session file would meet this lock.
    pub fn is_for(&self, session: &Path) -> bool {
        self.path == side_file(session, ".lock") && self.is_in_place()
    }

    fn is_in_place(&self) -> bool {
        files::is_at(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still held, so no other process can hold the name that is removed.
        if self.is_in_place() {
            _ = fs::remove_file(&self.path);
        }
        // Not left to closing: a process being started may have a copy of the descriptor.
        _ = self.file.unlock();
    }
}

/// Says in the lock file who has the lock. Failing costs others only that knowledge.
fn describe_owner(file: &mut File, purpose: Purpose) {
    let pid = std::process::id();
    let text = match purpose {
        Purpose::Run => format!("{pid} {} {RUNNING}\n", host()),
        Purpose::Access => format!("{pid} {}\n", host()),
    };
    // A file that was ever cut to nothing is written to the disk when it is closed (ext4), which takes longer than
    // all the rest. Only the file of a process that died has something in it.
    if file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        _ = file.set_len(0);
    }
    _ = file.write_all(text.as_bytes());
}

impl Owner {
    /// Reads the owner from a lock file, which is empty for the moment between locking and describing.
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        _ = file.take(512).read_to_string(&mut text);
        let mut words = text.split_whitespace();
        let pid = words.next().and_then(|pid| pid.parse().ok());
        let purpose = if words.nth(1) == Some(RUNNING) { Purpose::Run } else { Purpose::Access };
        Owner { pid, purpose }
    }

    fn is_soon_done(&self) -> bool {
        match self.purpose {
            Purpose::Access => true,
            // A process that was killed while it started a command is survived for a moment by the copy it made of
            // itself, which holds the lock until it becomes the command. Or the lock has another owner meanwhile, which
            // has not described itself yet.
            Purpose::Run => self.pid.is_some_and(is_gone),
        }
    }
}

fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let name = name.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
        name.map_or_else(|| "unknown".to_owned(), |name| name.split_whitespace().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(session: &Path) -> Result<Lock, LockError> {
        Lock::take(session, Purpose::Access)
    }

    #[test]
    fn a_run_keeps_others_out_and_says_whose_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let lock = Lock::take(&session, Purpose::Run).unwrap();
        assert!(matches!(take(&session), Err(LockError::Taken(Some(pid))) if pid == std::process::id()));
        drop(lock);
        assert!(!side_file(&session, ".lock").exists());
        take(&session).unwrap();
    }

    #[test]
    fn an_access_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let lock = take(&session).unwrap();
        let taker = std::thread::spawn(move || Lock::take(&session, Purpose::Run).is_ok());
        drop(lock);
        assert!(taker.join().unwrap());
    }

    #[test]
    fn an_access_that_does_not_end_is_not_waited_for_any_longer() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let _lock = take(&session).unwrap();
        assert!(matches!(take(&session), Err(LockError::Taken(Some(pid))) if pid == std::process::id()));
    }

    #[test]
    fn a_lock_may_outlive_its_owner_for_a_moment() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let path = side_file(&session, ".lock");
        let mut left = files::open_private(&path).unwrap();
        left.try_lock().unwrap();
        // No process has this number: it is above the largest there can be.
        writeln!(left, "{} here running", u32::MAX).unwrap();
        let taker = std::thread::spawn(move || take(&session).is_ok());
        drop(left);
        assert!(taker.join().unwrap());
    }

    #[test]
    fn a_left_over_file_is_harmless() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        fs::write(side_file(&session, ".lock"), "99999 elsewhere running, and more than we would write\n").unwrap();
        let lock = take(&session).unwrap();
        let text = fs::read_to_string(&lock.path).unwrap();
        assert!(text.starts_with(&format!("{} ", std::process::id())) && !text.contains("elsewhere"), "{text}");
    }

    #[test]
    fn many_takers_never_hold_it_together() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("s.jsonl");
        let (n_inside, n_taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        // A thread that is unlucky for a whole second gets no lock, which is fine here.
                        let Ok(_lock) = take(&session) else { continue };
                        assert_eq!(n_inside.fetch_add(1, Ordering::SeqCst), 0);
                        n_taken.fetch_add(1, Ordering::SeqCst);
                        n_inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(n_taken.into_inner() > 200 && !side_file(&session, ".lock").exists());
    }
}
