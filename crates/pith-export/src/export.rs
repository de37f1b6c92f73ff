//! Putting a page into a file, in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::page::{Page, render};

/// Why there is no page. The texts reach hosts unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("Cannot export in-memory session to HTML")]
    InMemory,
    #[error("Nothing to export yet - start a conversation first")]
    Nothing,
    #[error("Cannot write {}: {error}", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Returns the name of a page nobody has named, given whose session it is and the session file's name without its
/// extension.
pub fn default_name(app: &str, session_file_stem: &str) -> String {
    format!("{app}-session-{session_file_stem}.html")
}

/// Writes the page to a file only its owner can read, replacing what was there once the page is complete.
pub fn export(page: &Page<'_>, target: &Path) -> Result<(), ExportError> {
    write(page, target).map_err(|error| ExportError::Write { path: target.to_owned(), error })
}

fn write(page: &Page<'_>, target: &Path) -> io::Result<()> {
    let target = destination(target)?;
    let temporary = Temporary::create(&target)?;
    let mut out = BufWriter::with_capacity(64 * 1024, &temporary.file);
    render(page, &mut out)?;
    out.flush()?;
    drop(out);
    temporary.rename(&target)
}

/// The file to be replaced. A link stands for the file it leads to; devices and pipes cannot be replaced.
fn destination(target: &Path) -> io::Result<PathBuf> {
    match fs::metadata(target) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => fs::canonicalize(target),
        Err(_) => Ok(target.to_owned()),
    }
}

/// A file beside its target that goes away unless it is put in place.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    fn create(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = target.with_file_name(format!(".pith-export-{}", uuid::Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Temporary { file: options.open(&path)?, path })
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            _ = fs::remove_file(&self.path);
        }
    }
}
