//! Putting a page into a file, in one step.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pith_config::TemporaryFile;

use crate::page::{Page, render};

/// The name of a page that is being written, without the digits that make it unique.
const TEMPORARY: &str = ".pith-export-";

/// Why there is no page. The texts reach hosts unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("Cannot export in-memory session to HTML")]
    InMemory,
    #[error("Nothing to export yet - start a conversation first")]
    Nothing,
    #[error("Cannot read {}: {error}", .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("Cannot write {}: {error}", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Returns the default name of a page, given whose session it is and the session file's name without its
/// extension.
pub fn default_name(app: &str, session_file_stem: &str) -> String {
    format!("{app}-session-{session_file_stem}.html")
}

/// Removes what killed processes left in a directory of pages they were about to put in place.
pub fn remove_unfinished(directory: &Path) {
    pith_config::remove_stale_in(directory, &[TEMPORARY]);
}

/// Writes the page to a file only its owner can read, replacing what was there once the page is complete.
pub fn export(page: &Page<'_>, target: &Path) -> Result<(), ExportError> {
    write(page, target).map_err(|error| ExportError::Write { path: target.to_owned(), error })
}

fn write(page: &Page<'_>, target: &Path) -> io::Result<()> {
    let target = destination(target)?;
    if target.file_name().is_none() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let directory = target.parent().unwrap_or(Path::new(""));
    remove_unfinished(directory);
    let mut temporary = TemporaryFile::create(directory, TEMPORARY)?;
    let mut out = BufWriter::with_capacity(64 * 1024, temporary.file());
    render(page, &mut out)?;
    out.flush()?;
    drop(out);
    temporary.persist(&target)
}

/// Returns the file to be replaced. A link stands for the file it leads to; devices and pipes cannot be replaced.
fn destination(target: &Path) -> io::Result<PathBuf> {
    match fs::metadata(target) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => fs::canonicalize(target),
        Err(_) => Ok(target.to_owned()),
    }
}
