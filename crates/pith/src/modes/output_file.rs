//! `--output`: a file that gets what stdout would.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use pith_config::replace;

use crate::warn;

/// The file, known to be writable before any work is done.
pub struct OutputFile {
    path: PathBuf,
    /// Devices and pipes cannot be replaced, only written to.
    is_regular: bool,
    /// Whether this process has created the file and nothing is in it: if nothing comes of the work it is removed.
    is_blank: bool,
}

impl OutputFile {
    /// Creates the file if there is none, so that a path that cannot be written is known at once.
    pub fn prepare(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let is_blank = !path.exists();
        ensure!(!path.is_dir(), "cannot write {shown}: it is a directory");
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let file = opened.with_context(|| format!("cannot write {shown}"))?;
        let is_regular = file.metadata().with_context(|| format!("cannot write {shown}"))?.is_file();
        Ok(OutputFile { path: path.to_owned(), is_regular, is_blank })
    }

    /// Writes the whole answer in one step: others see the old content or the new one.
    pub fn write(mut self, text: &str) -> anyhow::Result<()> {
        let written = if self.is_regular {
            replace(&self.path, text.as_bytes())
        } else {
            OpenOptions::new().append(true).open(&self.path).and_then(|mut file| file.write_all(text.as_bytes()))
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.is_blank = false;
        Ok(())
    }

    /// Empties the file for records that are written as they come.
    pub fn into_records(mut self) -> anyhow::Result<RecordFile> {
        let mut options = OpenOptions::new();
        let options = if self.is_regular { options.write(true).truncate(true) } else { options.append(true) };
        let file = options.open(&self.path).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.is_blank = false;
        Ok(RecordFile { file, name: self.path.display().to_string() })
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_blank {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where records are written; a failed write is reported with its name.
pub struct RecordFile {
    file: File,
    /// The path, or `stdout`.
    name: String,
}

impl RecordFile {
    pub fn stdout(file: File) -> Self {
        RecordFile { file, name: "stdout".to_owned() }
    }
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| match error.kind() {
            // Tried again; a reader that has closed the pipe is no error worth a message.
            io::ErrorKind::Interrupted | io::ErrorKind::BrokenPipe => {}
            _ => warn(&format!("Error: cannot write {}: {error}", self.name)),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_file_that_was_not_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("answer.txt");
        drop(OutputFile::prepare(&path).expect("writable"));
        assert!(!path.exists());
        std::fs::write(&path, "old").expect("written");
        drop(OutputFile::prepare(&path).expect("writable"));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "old");
        OutputFile::prepare(&path).expect("writable").write("new\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "new\n");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let refusal = |path: &Path| format!("{:#}", OutputFile::prepare(path).err().expect("refused"));
        let inside = directory.path().join("none/answer.txt");
        assert!(refusal(&inside).starts_with(&format!("cannot write {}: ", inside.display())));
        assert!(refusal(directory.path()).ends_with(": it is a directory"));
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        let null = Path::new("/dev/null");
        OutputFile::prepare(null).expect("writable").write("gone").expect("written");
        assert!(!std::fs::metadata(null).expect("there").is_file());
    }
}
