//! Files shared with other agents: the lock they agree on, and writes that are
//! either whole or did not happen. What stands in them is somebody else's business.

mod temporary;

pub use temporary::{Temporary, remove_if_stale, remove_stale_in};

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

/// A lock this old belongs to a process that died.
const STALE: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Holds `<file>.lock`, a directory, until dropped. pi uses the same directory.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
}

impl FileLock {
    /// Waits up to 200 ms for the lock. A dead owner's lock is taken over.
    pub fn acquire(file: &Path) -> io::Result<FileLock> {
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

fn is_stale(directory: &Path) -> bool {
    let modified = fs::metadata(directory).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE))
}

/// Replaces a file in one step: readers see the old or the new text, never a part. Mode and symbolic
/// links stay; a new file is private.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".pith-").suffix(".tmp").tempfile_in(directory)?;
    temporary.write_all(text)?;
    if let Ok(metadata) = fs::metadata(&file) {
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&file)?;
    // The rename itself has to reach the disk too, where directories can be synced.
    #[cfg(unix)]
    File::open(directory)?.sync_all()?;
    Ok(())
}

/// Makes the directory of a file, readable only by its owner.
pub fn create_private_parent(file: &Path) -> io::Result<()> {
    let Some(parent) = file.parent() else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(parent)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_held_lock_is_respected_and_a_stale_one_taken_over() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("auth.json");
        let held = FileLock::acquire(&file).expect("first");
        let refused = FileLock::acquire(&file).expect_err("second");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let old = SystemTime::now() - Duration::from_secs(11);
        File::open(directory.path().join("auth.json.lock")).expect("open").set_modified(old).expect("age");
        let taken = FileLock::acquire(&file).expect("stale");
        File::open(directory.path().join("auth.json.lock")).expect("open").set_modified(old).expect("age");
        taken.refresh().expect("refresh");
        assert!(FileLock::acquire(&file).is_err(), "a refreshed lock is alive");
        drop(taken);
        drop(held);
        FileLock::acquire(&file).expect("free again");
    }

    /// Runs in a process of its own for the next test; alone it has nothing to do.
    #[test]
    fn endless_writer() {
        let Ok(file) = std::env::var("PITH_TEST_ENDLESS_WRITER") else { return };
        let long = "x".repeat(200_000);
        for n in 0u64.. {
            replace(Path::new(&file), format!("{{{n}{long}}}").as_bytes()).expect("replace");
        }
    }

    #[test]
    fn a_killed_writer_leaves_a_whole_file() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        let program = std::env::current_exe().expect("test program");
        for _ in 0..5 {
            let mut writer = Command::new(&program)
                .args(["--exact", "tests::endless_writer", "--nocapture"])
                .env("PITH_TEST_ENDLESS_WRITER", &file)
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("spawn");
            let before = fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
            // Wait until this writer has replaced the file a few times, then kill it wherever it is.
            let mut seen = 0;
            let mut last = before;
            while seen < 3 {
                let now = fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
                seen += u32::from(now != last);
                last = now;
                thread::yield_now();
            }
            writer.kill().expect("kill");
            writer.wait().expect("wait");
            let text = fs::read_to_string(&file).expect("read");
            assert!(text.starts_with('{') && text.ends_with("x}"), "a part of {} bytes", text.len());
        }
    }
}
