//! Opening a session file to continue it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{FORMAT_VERSION, StoreError};
use crate::files::{self, Replacement};
use crate::journal::Journal;
use crate::load::{Loaded, from_start, in_file, in_file_io, load, open_for_reading, read_header};
use crate::lock::{Lock, LockError, Purpose};
use crate::migrate::migrate;
use crate::paths::side_file;
use crate::store::SessionStore;
use crate::time;
use crate::tree::Header;

impl SessionStore {
    /// Continues the session in a file, at its last entry. No other process may be running on it; it stays free for
    /// others until [`SessionStore::lock`] or the next append.
    ///
    /// Files of older formats are rewritten, with the original kept beside them; files of
    /// newer formats are refused. `current_cwd` only serves the error message when the
    /// session's own directory is gone, and files that do not name one.
    pub fn resume(path: &Path, current_cwd: &Path) -> Result<Self, StoreError> {
        let (file, _) = open_for_reading(path)?;
        // Nobody writes while we read, so an unfinished line is the work of a process that is gone.
        let lock = take_lock(path)?;
        let metadata = file.metadata().map_err(in_file_io(path))?;
        if metadata.len() == 0 {
            return Self::adopt_empty(path, current_cwd, lock);
        }
        let header = read_header(path, &file, metadata.len())?;
        let cwd = check_header(&header, path, current_cwd)?;
        if header.version < FORMAT_VERSION {
            rewrite(path, &file, metadata.len(), header.version)?;
        }
        drop(file);

        let file = Arc::new(files::open_append(path).map_err(in_file_io(path))?);
        let metadata = file.metadata().map_err(in_file_io(path))?;
        let header = read_header(path, &file, metadata.len())?;
        let Loaded { tree, tail, repairs } = load(path, &file, metadata.len(), header)?;
        let journal = Journal::opened(path.to_owned(), file, &metadata, tail);
        let (end, target) = (tree.end, journal.target.clone());
        let mut store = SessionStore::at(tree, end, Some(journal), cwd);
        store.restore_position(&target);
        store.load_context(repairs);
        Ok(store)
    }

    /// Continues the session at a path, or plans a new one there.
    pub fn resume_or_create(path: &Path, current_cwd: &Path) -> Result<Self, StoreError> {
        match Self::resume(path, current_cwd) {
            Err(StoreError::NotFound(_)) => Ok(Self::create_at(path, current_cwd, None)),
            result => result,
        }
    }

    /// Turns an empty file into a session at once.
    fn adopt_empty(path: &Path, cwd: &Path, lock: Option<Lock>) -> Result<Self, StoreError> {
        let mut store = Self::create_at(path, cwd, None);
        let journal = store.journal.as_mut().expect("the session was created with a path");
        journal.adopt(&mut store.tree, lock).map_err(in_file_io(path))?;
        store.claim = None;
        Ok(store)
    }
}

/// Returns the session's working directory, if the session can be used at all.
fn check_header(header: &Header, path: &Path, current_cwd: &Path) -> Result<PathBuf, StoreError> {
    if header.version > FORMAT_VERSION {
        return Err(StoreError::NewerVersion { path: path.to_owned(), found: header.version });
    }
    if header.cwd.is_empty() {
        return Ok(current_cwd.to_owned());
    }
    let cwd = PathBuf::from(&header.cwd);
    if cwd.is_dir() {
        return Ok(cwd);
    }
    let (path, current) = (path.to_owned(), current_cwd.to_owned());
    Err(StoreError::MissingCwd { stored: header.cwd.clone(), path, current })
}

fn take_lock(path: &Path) -> Result<Option<Lock>, StoreError> {
    // A link and its target are the same session.
    let target = fs::canonicalize(path).map_err(in_file_io(path))?;
    match Lock::take(&target, Purpose::Access) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Taken(pid)) => Err(StoreError::InUse { pid, path: path.to_owned() }),
        // Where nothing can be locked, sessions still work; looking before each append remains.
        Err(LockError::Unavailable) => Ok(None),
    }
}

/// Replaces a file by its migrated content in one step, keeping the original as `.v<old>.bak`.
fn rewrite(path: &Path, file: &File, len: u64, version: u32) -> Result<(), StoreError> {
    let io_error = in_file_io(path);
    let target = fs::canonicalize(path).map_err(&io_error)?;
    if let Some(directory) = target.parent() {
        files::remove_stale_replacements(directory);
    }
    let replacement = Replacement::start(&target).map_err(&io_error)?;
    let mut out = BufWriter::new(replacement.file());
    migrate(from_start(file, len).map_err(&io_error)?, version, &mut out).map_err(in_file(path))?;
    out.flush().map_err(&io_error)?;
    drop(out);
    // The new file keeps the mode that the user chose.
    let permissions = file.metadata().map_err(&io_error)?.permissions();
    replacement.file().set_permissions(permissions).map_err(&io_error)?;
    let backup = keep_original(&target, version).map_err(&io_error)?;
    replacement.finish().map_err(&io_error)?;
    // From here on it is a file of its own; that it may be read by others is no reason to fail.
    let _ = make_private(&backup);
    Ok(())
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

fn keep_original(path: &Path, version: u32) -> io::Result<PathBuf> {
    let mut backup = side_file(path, &format!(".v{version}.bak"));
    if backup.exists() {
        backup = side_file(path, &format!(".v{version}-{}.bak", time::now()));
    }
    // A second name costs nothing; where the file system has none, a copy will do.
    fs::hard_link(path, &backup).or_else(|_| fs::copy(path, &backup).map(|_| ()))?;
    Ok(backup)
}
