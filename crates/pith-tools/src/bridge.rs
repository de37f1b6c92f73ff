//! Files as an editor has them: buffers that are newer than the disk. Its terminals are in [`crate::terminal`].
//!
//! `read` and `edit` see the buffers, `edit` and `write` change them, so that undo and review work in the editor. Whoever
//! has an editor at the other end gives the [`Workbench`] a [`Bridge`]; all others pay one branch.

use std::path::Path;

use pith_agent::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::edit::same_text;
use crate::terminal::{InTerminal, TerminalCommand, TerminalFailure};
use crate::tool::check_aborted;
use crate::workbench::Workbench;

/// Larger files are read from the disk and written to it.
pub(crate) const MAX_FILE: usize = 10 << 20;

/// Of larger files `read` asks only for the lines that it shows.
const MAX_WHOLE: usize = 2 << 20;

/// Lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first one, counted from 1.
    pub first: usize,
    pub count: usize,
}

/// An editor. The functions about files are called on threads that may block.
pub trait Bridge: Send + Sync {
    /// Whether the editor is asked about this file.
    fn covers(&self, path: &Path) -> bool;

    /// Whether it changes buffers.
    fn takes_writes(&self) -> bool;

    /// Returns the text that the editor has, or some lines of it; `None` if it does not tell.
    fn read_text(&self, path: &Path, lines: Option<Lines>, cancel: &CancellationToken) -> Option<String>;

    /// Changes the text that the editor has. The error says why that did not happen.
    fn write_text(&self, path: &Path, text: &str, cancel: &CancellationToken) -> Result<(), String>;

    /// Runs a command in a terminal of the editor; `None` if commands are not run there.
    fn run_terminal<'a>(
        &'a self,
        command: TerminalCommand<'a>,
    ) -> Option<BoxFuture<'a, Result<InTerminal, TerminalFailure>>>;
}

/// Returns the text of a file in the editor if it is another one than on the disk. Differences in line endings and in
/// the byte order mark are no others: editors normalise those.
pub(crate) fn unsaved(workbench: &Workbench, path: &Path, disk: &[u8], cancel: &CancellationToken) -> Option<Vec<u8>> {
    let bridge = workbench.bridge().filter(|bridge| is_text(disk) && bridge.covers(path))?;
    let text = bridge.read_text(path, None, cancel)?.into_bytes();
    (!same_text(&text, disk)).then_some(text)
}

/// Like [`unsaved`], for somebody who shows these lines. Of a large file only they are as the editor has them.
pub(crate) fn unsaved_lines(
    workbench: &Workbench,
    path: &Path,
    disk: &[u8],
    lines: Lines,
    cancel: &CancellationToken,
) -> Option<Vec<u8>> {
    if disk.len() <= MAX_WHOLE {
        return unsaved(workbench, path, disk, cancel);
    }
    let bridge = workbench.bridge().filter(|bridge| is_text(disk) && bridge.covers(path))?;
    let text = bridge.read_text(path, Some(lines), cancel)?;
    let (start, end) = (line_start(disk, lines.first), line_start(disk, lines.first.saturating_add(lines.count)));
    // Some editors end what they tell with a newline, some do not.
    let told = text.strip_suffix('\n').unwrap_or(&text).as_bytes();
    let on_disk = disk[start..end].strip_suffix(b"\n").unwrap_or(&disk[start..end]);
    if same_text(told, on_disk) {
        return None;
    }
    let newline: &[u8] = if end > start && disk[end - 1] == b'\n' { b"\n" } else { b"" };
    Some([&disk[..start], told, newline, &disk[end..]].concat())
}

/// Where a line begins, counted from 1; the end of the text if there are not so many.
fn line_start(text: &[u8], line: usize) -> usize {
    if line <= 1 {
        return 0;
    }
    memchr::memchr_iter(b'\n', text).nth(line - 2).map_or(text.len(), |newline| newline + 1)
}

/// Writes a file through the editor. Returns the remark for the model, or `None` if it is to be written to the disk.
pub(crate) fn write(
    workbench: &Workbench,
    (path, shown_path): (&Path, &str),
    contents: &[u8],
    cancel: &CancellationToken,
) -> Result<Option<String>, String> {
    let Some(bridge) = workbench.bridge().filter(|bridge| bridge.takes_writes() && bridge.covers(path)) else {
        return Ok(None);
    };
    let Some(text) = text_of(contents).filter(|_| is_text_on_disk(path)) else { return Ok(None) };
    workbench.confinement.admit(path, "open")?;
    bridge.write_text(path, text, cancel).map_err(|why| {
        // An abort has a text of its own.
        check_aborted(cancel).err().unwrap_or_else(|| format!("The editor did not write {shown_path}: {why}"))
    })?;
    let is_saved = std::fs::read(path).is_ok_and(|disk| same_text(&disk, contents));
    let remark = "\n\n[Note: the editor has this change and has not saved it. Commands see the file without it.]";
    Ok(Some(if is_saved { String::new() } else { remark.to_owned() }))
}

fn is_text(contents: &[u8]) -> bool {
    text_of(contents).is_some()
}

fn text_of(contents: &[u8]) -> Option<&str> {
    let is_small = contents.len() <= MAX_FILE && memchr::memchr(0, contents).is_none();
    if is_small { std::str::from_utf8(contents).ok() } else { None }
}

/// Whether the disk has a text file there, or nothing. Editors are not asked to replace anything else.
fn is_text_on_disk(path: &Path) -> bool {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_FILE as u64 => {
            std::fs::read(path).is_ok_and(|contents| is_text(&contents))
        }
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
