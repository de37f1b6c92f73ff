//! Files that appear under their name only when they are complete, and the removal of what killed processes left.
//!
//! The file tools replace files in their own way (`pith-tools/src/replace.rs`): they must stay below a directory
//! that is already open, and keep owners.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

/// A file is locked right after it was created; younger ones of a living process may be about to be.
const YOUNG: Duration = Duration::from_secs(60);
/// Where locks do not exist, only time tells. Nothing is written for that long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// Hex digits that make a name unique. The first eight are the process.
const N_DIGITS: usize = 32;
const N_PROCESS_DIGITS: usize = 8;
/// Looking at more than that would be felt.
const MAX_ENTRIES: usize = 20_000;
/// The name of a file that [`replace`] is writing, without its digits.
const REPLACING: &str = ".pith-config-";

/// Replaces a file in one step: readers see the old or the new text, never a part. Mode and symbolic
/// links stay; a new file is private.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = resolved(file);
    let directory = directory_of(&file);
    remove_stale_in(directory, &[REPLACING]);
    let mut temporary = TemporaryFile::create(directory, REPLACING)?;
    temporary.file().write_all(text)?;
    if let Ok(metadata) = fs::metadata(&file) {
        temporary.file().set_permissions(metadata.permissions())?;
    }
    temporary.persist_durably(&file)
}

/// Returns the file that a symbolic link leads to; of any other file, and of a link that leads nowhere, its own path.
pub(crate) fn resolved(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf())
}

/// Creates a directory and its parents, readable only by their owner.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Takes a file from everybody but its owner, where files have modes. One that is not there stays so.
pub fn make_private(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Makes names created in a directory survive a power loss, where directories can be synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A private file that is removed unless it is persisted. Locked for as long as this process writes it, so that
/// others can tell it from one that a killed process left behind.
#[derive(Debug)]
pub struct TemporaryFile {
    file: File,
    /// `None` once it has its final name.
    path: Option<PathBuf>,
}

impl TemporaryFile {
    /// Creates the file, for reading and appending. Its name is the marker, which says whose it is, and 32 hex digits.
    pub fn create(directory: &Path, marker: &str) -> io::Result<Self> {
        let random = Uuid::new_v4().simple().to_string();
        let path = directory.join(format!("{marker}{:08x}{}", std::process::id(), &random[N_PROCESS_DIGITS..]));
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        // Without a lock, it is only known by its age to be in use.
        let _ = file.try_lock();
        Ok(TemporaryFile { file, path: Some(path) })
    }

    /// Returns the file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name, in the same directory, replacing what has it.
    pub fn persist(&mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
            self.path = None;
            let _ = self.file.unlock();
        }
        Ok(())
    }

    /// Does the same and waits until both the content and the name are on the disk.
    pub fn persist_durably(&mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        self.persist(target)?;
        sync_directory(directory_of(target))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes temporary files of these markers that killed processes left in a directory, unless it is huge.
pub fn remove_stale_in(directory: &Path, markers: &[&str]) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(MAX_ENTRIES).for_each(|entry| remove_if_stale(&entry.path(), markers));
}

/// Removes a file if it is a temporary file of one of these markers, with whatever in front of it, and no process can
/// be writing it any more.
pub fn remove_if_stale(path: &Path, markers: &[&str]) {
    let name = path.file_name().and_then(OsStr::to_str);
    let Some(owner) = name.and_then(|name| owner_of(name, markers)) else { return };
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let age = metadata.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    let age = age.unwrap_or_default();
    if !metadata.is_file() || (age <= YOUNG && !is_gone(owner)) {
        return;
    }
    let Ok(file) = File::open(path) else { return };
    let is_stale = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => age > ABANDONED,
    };
    if is_stale {
        let _ = fs::remove_file(path);
    }
}

/// Whether a process of this machine has ended, where that can be seen.
pub fn is_gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

/// Returns the process that has made a temporary file; `None` if it is none of these markers.
fn owner_of(name: &str, markers: &[&str]) -> Option<u32> {
    let (before, digits) = name.split_at_checked(name.len().checked_sub(N_DIGITS)?)?;
    let is_temporary = markers.iter().any(|marker| before.ends_with(marker))
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let process = u32::from_str_radix(digits.get(..N_PROCESS_DIGITS)?, 16).ok()?;
    is_temporary.then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = ".t-";

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("directory").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn age(path: &Path, seconds: u64) {
        let file = File::options().write(true).open(path).expect("open");
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("age");
    }

    #[test]
    fn a_file_in_use_stays_and_one_left_behind_goes() {
        let directory = tempfile::tempdir().expect("temp dir");
        let directory = directory.path();
        let mut in_use = TemporaryFile::create(directory, MARKER).expect("create");
        let mut left = TemporaryFile::create(directory, MARKER).expect("create");
        let paths = [in_use.path.clone().expect("a path"), left.path.take().expect("a path")];
        // As when its process is killed: nobody has it open, and it is still there.
        drop(left);
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory).len(), 2, "both are young");
        paths.iter().for_each(|path| age(path, 3600));
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), [paths[0].file_name().expect("a name").to_string_lossy()]);
        in_use.persist(&directory.join("done")).expect("rename");
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), ["done"]);
        // No process has this number: it is above the largest there can be.
        fs::write(directory.join(format!("{MARKER}{:08x}{:024x}", u32::MAX, 1)), "").expect("write");
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), ["done"], "its process is gone, so its age does not matter");
    }

    #[test]
    fn nothing_else_is_touched() {
        let directory = tempfile::tempdir().expect("temp dir");
        let directory = directory.path();
        let digits = "0123456789abcdef".repeat(2);
        let others = [
            format!("s{MARKER}{}", &digits[1..]),
            format!("{MARKER}{}g", &digits[1..]),
            format!("{MARKER}{}", digits.to_uppercase()),
            format!("{digits}.jsonl"),
            format!("x{digits}"),
            "session.jsonl".to_owned(),
            "é".repeat(20),
        ];
        for name in &others {
            fs::write(directory.join(name), "").expect("write");
            age(&directory.join(name), 3600);
        }
        fs::create_dir(directory.join(format!("d{MARKER}{digits}"))).expect("directory");
        #[cfg(unix)]
        std::os::unix::fs::symlink("session.jsonl", directory.join(format!("l{MARKER}{digits}"))).expect("link");
        let before = names(directory);
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), before);
        fs::write(directory.join(format!("s{MARKER}{digits}")), "").expect("write");
        age(&directory.join(format!("s{MARKER}{digits}")), 3600);
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), before);
    }

    /// Runs in a process of its own for the next test; alone it has nothing to do.
    #[cfg(unix)]
    #[test]
    fn endless_writer() {
        let Ok(file) = std::env::var("PITH_TEST_ENDLESS_WRITER") else { return };
        let long = "x".repeat(200_000);
        for n in 0u64.. {
            replace(Path::new(&file), format!("{{{n}{long}}}").as_bytes()).expect("replace");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_killed_writer_leaves_a_whole_file() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        let program = std::env::current_exe().expect("test program");
        for _ in 0..5 {
            let mut writer = std::process::Command::new(&program)
                .args(["--exact", "atomic_file::tests::endless_writer", "--nocapture"])
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
                std::thread::yield_now();
            }
            writer.kill().expect("kill");
            writer.wait().expect("wait");
            let text = fs::read_to_string(&file).expect("read");
            assert!(text.starts_with('{') && text.ends_with("x}"), "a part of {} bytes", text.len());
        }
    }
}
