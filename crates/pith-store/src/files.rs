//! Files and directories only their owner can read: sessions contain file
//! contents and command output. Modes of what already exists stay as they are.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pith_config::TemporaryFile;

/// Creates a file that must not exist, for reading and appending, mode 0600.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    private().read(true).append(true).create_new(true).open(path)
}

/// Opens a file for reading and writing, creating it with mode 0600.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    private().read(true).write(true).create(true).truncate(false).open(path)
}

/// Opens a file for reading and appending, creating it with mode 0600.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    private().read(true).append(true).create(true).open(path)
}

/// Opens an existing file for reading and appending.
pub(crate) fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).open(path)
}

/// Shortens a file.
pub(crate) fn cut(path: &Path, len: u64) -> io::Result<()> {
    // A descriptor for appending may not shorten its file everywhere.
    OpenOptions::new().write(true).open(path)?.set_len(len)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the identity of a file, whatever its name.
#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Returns the same for every file: its identity is not known here without unsafe calls.
#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Whether `path` still names the open file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => identity(&open) == identity(&named),
        _ => false,
    }
}

/// Follows the name of the target in the name of its temporary file; 32 hex digits follow it.
const TEMPORARY: &str = ".tmp-";

/// The same with the names of targets: other programs may have files of their own in the directory.
const OURS: [&str; 3] = [".jsonl.tmp-", ".jsonl.leaf.tmp-", ".pith-index.json.tmp-"];

/// A file that appears under its name only when it is complete.
pub(crate) struct Replacement {
    temporary: TemporaryFile,
    target: PathBuf,
}

impl Replacement {
    /// Starts a new content for `target`, in the same directory.
    pub fn start(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let directory = target.parent().unwrap_or(Path::new(""));
        let temporary = TemporaryFile::create(directory, &format!("{name}{TEMPORARY}"))?;
        Ok(Replacement { temporary, target: target.to_owned() })
    }

    /// Returns the file being written.
    pub fn file(&self) -> &File {
        self.temporary.file()
    }

    /// Puts the content in place without waiting for the disk.
    pub fn finish_soon(&mut self) -> io::Result<()> {
        self.temporary.persist(&self.target)
    }

    /// Puts the content in place and makes that durable. The file stays open for appending.
    pub fn finish(mut self) -> io::Result<File> {
        self.temporary.persist_durably(&self.target)?;
        self.file().try_clone()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Removes what killed processes left in a directory of sessions of files they were about to put in place.
pub fn remove_stale_replacements(directory: &Path) {
    pith_config::remove_stale_in(directory, &OURS);
}

/// Does the same for one file of a directory.
pub(crate) fn remove_if_stale_replacement(path: &Path) {
    pith_config::remove_if_stale(path, &OURS);
}
