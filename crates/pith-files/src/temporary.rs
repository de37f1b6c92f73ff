//! Files being written that are not under their name yet, and what killed processes left of them.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file is locked right after it was created; younger ones may be about to be.
const YOUNG: Duration = Duration::from_secs(60);
/// Where locks do not exist, only time tells. Nothing is written for that long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// Hex digits that make a name unique.
const N_DIGITS: usize = 32;

/// A private file that goes away unless it is put in place. Locked for as long as this process writes it, so that
/// others can tell it from one that a killed process left behind.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    /// `None` once it is in place.
    path: Option<PathBuf>,
}

impl Temporary {
    /// Creates the file, for reading and appending. Its name is the marker, which says whose it is, and 32 hex digits.
    pub fn create(directory: &Path, marker: &str, digits: u128) -> io::Result<Self> {
        let path = directory.join(format!("{marker}{digits:032x}"));
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        // Without a lock, it is only known by its age to be in use.
        let _ = file.try_lock();
        Ok(Temporary { file, path: Some(path) })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name, in the same directory, replacing what has it.
    pub fn put_in_place(&mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
            self.path = None;
            let _ = self.file.unlock();
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes temporary files of these markers that killed processes left in a directory.
pub fn remove_stale_in(directory: &Path, markers: &[&str]) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.for_each(|entry| remove_if_stale(&entry.path(), markers));
}

/// Removes a file if it is a temporary file of one of these markers, with whatever in front of it, and no process can
/// be writing it any more.
pub fn remove_if_stale(path: &Path, markers: &[&str]) {
    if !path.file_name().and_then(OsStr::to_str).is_some_and(|name| is_temporary(name, markers)) {
        return;
    }
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let age = metadata.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    let Some(age) = age.filter(|age| metadata.is_file() && *age > YOUNG) else { return };
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

fn is_temporary(name: &str, markers: &[&str]) -> bool {
    let digits = name.len().checked_sub(N_DIGITS).and_then(|at| name.split_at_checked(at));
    digits.is_some_and(|(before, digits)| {
        markers.iter().any(|marker| before.ends_with(marker))
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
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
        let mut in_use = Temporary::create(directory, MARKER, 1).expect("create");
        let mut left = Temporary::create(directory, MARKER, 2).expect("create");
        let paths = [in_use.path.clone().expect("a path"), left.path.take().expect("a path")];
        // As when its process is killed: nobody has it open, and it is still there.
        drop(left);
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory).len(), 2, "both are young");
        paths.iter().for_each(|path| age(path, 3600));
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), [format!("{MARKER}{:032x}", 1)]);
        in_use.put_in_place(&directory.join("done")).expect("rename");
        remove_stale_in(directory, &[MARKER]);
        assert_eq!(names(directory), ["done"]);
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
}
