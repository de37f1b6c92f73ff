//! Files shared with other agents: the lock they agree on, and writes that are
//! either whole or did not happen.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::document;

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
        let message = format!("{} is locked by another process", file.display());
        Err(io::Error::new(io::ErrorKind::WouldBlock, message))
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

/// Reads a file others write in place. Half of a text never parses, so only a text that does not parse
/// has to be looked at again under the lock.
pub fn read(file: &Path) -> Result<Option<Value>, String> {
    document::read(file).or_else(|_| {
        // Without the lock (a read-only directory, a long holder) a second look is still worth having.
        let _lock = FileLock::acquire(file);
        document::read(file)
    })
}

/// Changes a JSON object on disk under its lock. What `edit` does not touch survives, and a file that
/// cannot be read is never overwritten.
pub fn update(file: &Path, edit: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    create_private_parent(file)?;
    let lock = FileLock::acquire(file)?;
    update_locked(&lock, file, edit)
}

/// The same for whoever has the lock already.
pub fn update_locked(_lock: &FileLock, file: &Path, edit: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    let mut object = match document::read(file) {
        Ok(None) => Map::new(),
        Ok(Some(Value::Object(object))) => object,
        Ok(Some(_)) => return Err(io::Error::other(format!("{}: expected an object", file.display()))),
        Err(reason) => return Err(io::Error::other(format!("{}: {reason}", file.display()))),
    };
    edit(&mut object);
    let text = serde_json::to_vec_pretty(&object).expect("a JSON tree always serializes");
    replace(file, &text)
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

fn create_private_parent(file: &Path) -> io::Result<()> {
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
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("metadata").permissions().mode() & 0o777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("read dir");
        entries.map(|entry| entry.expect("entry").file_name().into_string().expect("utf-8")).collect()
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("a/b/auth.json");
        update(&file, |object| drop(object.insert("x".into(), json!(1)))).expect("update");
        assert_eq!((mode(&file), mode(file.parent().expect("parent"))), (0o600, 0o700));
        assert_eq!(fs::read_to_string(&file).expect("read"), "{\n  \"x\": 1\n}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("chmod");
        update(&file, |object| drop(object.insert("y".into(), json!(2)))).expect("update");
        assert_eq!(mode(&file), 0o640);
        assert_eq!(document::read(&file), Ok(Some(json!({"x": 1, "y": 2}))));
        assert_eq!(names(file.parent().expect("parent")), ["auth.json"], "neither lock nor temporary file is left");
    }

    #[test]
    fn a_file_that_does_not_parse_is_never_overwritten() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        fs::write(&file, "{ precious").expect("write");
        assert!(update(&file, |object| drop(object.insert("x".into(), json!(1)))).is_err());
        assert_eq!(fs::read_to_string(&file).expect("read"), "{ precious");
    }

    #[test]
    fn a_reader_waits_for_a_writer_in_the_middle_of_a_text() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        fs::write(&file, "{\"half").expect("write");
        let lock = FileLock::acquire(&file).expect("lock");
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(read(&file)).expect("send"));
            fs::write(&file, "{\"half\": 1}").expect("write");
            drop(lock);
        });
        assert_eq!(receiver.recv().expect("answer"), Ok(Some(json!({"half": 1}))));
    }

    #[test]
    fn symbolic_links_stay_links() {
        let directory = tempfile::tempdir().expect("temp dir");
        let (target, link) = (directory.path().join("real.json"), directory.path().join("link.json"));
        fs::write(&target, "{}").expect("write");
        std::os::unix::fs::symlink(&target, &link).expect("symlink");
        update(&link, |object| drop(object.insert("x".into(), json!(1)))).expect("update");
        assert!(fs::symlink_metadata(&link).expect("metadata").is_symlink());
        assert_eq!(document::read(&target), Ok(Some(json!({"x": 1}))));
    }

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

    #[test]
    fn concurrent_updates_are_all_kept() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        thread::scope(|scope| {
            for n in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for m in 0..3 {
                        let name = format!("{n}-{m}");
                        while update(file, |object| drop(object.insert(name.clone(), json!(true)))).is_err() {}
                    }
                });
            }
        });
        let object = document::read(&file).expect("parse").expect("file");
        assert_eq!(object.as_object().expect("object").len(), 12);
    }

    /// Runs in a process of its own for the next test; alone it has nothing to do.
    #[test]
    fn endless_writer() {
        let Ok(file) = std::env::var("PITH_TEST_ENDLESS_WRITER") else { return };
        let long = "x".repeat(200_000);
        for n in 0u64.. {
            replace(Path::new(&file), json!({"n": n, "long": long}).to_string().as_bytes()).expect("replace");
        }
    }

    #[test]
    fn a_killed_writer_leaves_a_whole_file() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        let program = std::env::current_exe().expect("test program");
        for _ in 0..5 {
            let mut writer = Command::new(&program)
                .args(["--exact", "locked_file::tests::endless_writer", "--nocapture"])
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
            assert!(matches!(document::read(&file), Ok(Some(Value::Object(_)))));
        }
    }
}
