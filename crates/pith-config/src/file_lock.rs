//! The lock that agents agree on for files they share.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::atomic_file::resolved;

/// A lock this old belongs to a process that died.
const STALE: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Holds `<file>.lock`, a directory, until dropped. pi uses the same directory. That of a symbolic link is beside the
/// file it leads to, which others may reach by another way.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
}

impl FileLock {
    /// Waits up to 200 ms for the lock. A dead owner's lock is taken over.
    pub fn acquire(file: &Path) -> io::Result<FileLock> {
        for _ in 0..ATTEMPTS {
            match FileLock::try_acquire(file, STALE) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
                decided => return decided,
            }
        }
        FileLock::try_acquire(file, STALE)
    }

    /// Takes the lock if it is free, without waiting. One that its owner has not refreshed for `stale` is taken over.
    pub fn try_acquire(file: &Path, stale: Duration) -> io::Result<FileLock> {
        let mut name = resolved(file).into_os_string();
        name.push(".lock");
        let directory = PathBuf::from(name);
        let created = match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_older(&directory, stale) => {
                let _ = fs::remove_dir(&directory);
                fs::create_dir(&directory)
            }
            created => created,
        };
        match created {
            Ok(()) => Ok(FileLock { directory }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(io::Error::new(io::ErrorKind::WouldBlock, "locked by another process"))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells others that the owner is still alive. Needed by work that takes seconds.
    pub fn refresh(&self) -> io::Result<()> {
        File::open(&self.directory)?.set_modified(SystemTime::now())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

fn is_older(directory: &Path, limit: Duration) -> bool {
    let modified = fs::metadata(directory).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > limit))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_respected_and_a_stale_one_taken_over() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("auth.json");
        let held = FileLock::acquire(&file).expect("first");
        let refused = FileLock::acquire(&file).expect_err("second");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let old = SystemTime::now() - Duration::from_secs(11);
        File::open(directory.path().join("auth.json.lock")).expect("open").set_modified(old).expect("age");
        let patient = FileLock::try_acquire(&file, Duration::from_secs(20)).expect_err("not that old");
        assert_eq!(patient.kind(), io::ErrorKind::WouldBlock);
        let taken = FileLock::acquire(&file).expect("stale");
        File::open(directory.path().join("auth.json.lock")).expect("open").set_modified(old).expect("age");
        taken.refresh().expect("refresh");
        assert!(FileLock::acquire(&file).is_err(), "a refreshed lock is alive");
        drop(taken);
        drop(held);
        FileLock::acquire(&file).expect("free again");
    }

    #[test]
    fn the_lock_of_a_link_is_that_of_its_file() {
        let directory = tempfile::tempdir().expect("temp dir");
        fs::create_dir(directory.path().join("real")).expect("directory");
        let (file, link) = (directory.path().join("real/auth.json"), directory.path().join("auth.json"));
        fs::write(&file, "{}").expect("write");
        std::os::unix::fs::symlink("real/auth.json", &link).expect("symlink");
        std::os::unix::fs::symlink("auth.json", directory.path().join("again.json")).expect("symlink");
        let held = FileLock::acquire(&directory.path().join("again.json")).expect("free");
        assert!(file.with_extension("json.lock").is_dir());
        for other in [&file, &link] {
            let refused = FileLock::try_acquire(other, STALE).expect_err("held");
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        }
        drop(held);
        FileLock::acquire(&link).expect("free again");
    }
}
