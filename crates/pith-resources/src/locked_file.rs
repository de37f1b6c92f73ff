//! A file shared with other agents: the lock they agree on, and writes that are
//! either whole or did not happen.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A lock this old belongs to a process that died.
const STALE: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Holds `<file>.lock`, a directory, until dropped. pi uses the same one.
#[derive(Debug)]
pub(crate) struct FileLock {
    directory: PathBuf,
}

impl FileLock {
    /// Waits up to 200 ms for the lock. A dead owner's lock is taken over.
    pub fn take(file: &Path) -> io::Result<FileLock> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let directory = PathBuf::from(name);
        for attempt in 0..=ATTEMPTS {
            match fs::create_dir(&directory) {
                Ok(()) => return Ok(FileLock { directory }),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_stale(&directory) => drop(fs::remove_dir(&directory)),
                Err(_) if attempt < ATTEMPTS => thread::sleep(PAUSE),
                Err(_) => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "locked by another process"))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Left behind, it would be taken over once it is old.
        _ = fs::remove_dir(&self.directory);
    }
}

fn is_stale(directory: &Path) -> bool {
    let modified = fs::metadata(directory).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE))
}

/// Replaces a file in one step: readers see the old or the new text, never a part of it. Mode and symbolic
/// links stay; a new file is private.
pub(crate) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".pith-").suffix(".tmp").tempfile_in(directory)?;
    temporary.write_all(text)?;
    if let Ok(metadata) = fs::metadata(&file) {
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&file)?;
    // The rename itself has to reach the disk too, where directories can be synced.
    #[cfg(unix)]
    fs::File::open(directory)?.sync_all()?;
    Ok(())
}

/// Makes the directory of a file, readable only by its owner.
pub(crate) fn create_private_parent(file: &Path) -> io::Result<()> {
    let Some(parent) = file.parent() else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn a_held_lock_is_respected_and_a_stale_one_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trust.json");
        let held = FileLock::take(&file).unwrap();
        assert_eq!(FileLock::take(&file).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        let dead = directory.path().join("trust.json.lock");
        fs::create_dir(&dead).unwrap();
        fs::File::open(&dead).unwrap().set_modified(SystemTime::now() - Duration::from_secs(11)).unwrap();
        drop(FileLock::take(&file).unwrap());
        assert!(!dead.exists());
    }
}
