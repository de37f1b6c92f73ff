//! The lines the user has typed, in a file of the user.
//!
//! The file begins with `#V2`; in its lines `\n` stands for a line break and `\\` for a backslash. Files without that
//! mark are read as they are.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

const VERSION: &str = "#V2";
const MAX_LINES: usize = 1000;

/// A longer text, such as a pasted file, is not kept.
const MAX_BYTES: usize = 16 << 10;

/// Earlier lines, and the place among them.
#[derive(Debug, Default)]
pub struct History {
    file: Option<PathBuf>,
    lines: Vec<String>,
    /// The line that is shown; `None` while the user writes a new one.
    place: Option<usize>,
    /// What was being written before an earlier line was shown.
    draft: String,
    is_readable: bool,
}

impl History {
    /// Reads a file; one that is missing or unreadable is an empty one.
    pub fn load(file: PathBuf) -> Self {
        let data = std::fs::read(&file);
        let is_readable = match &data {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let data = data.unwrap_or_default();
        let text = String::from_utf8_lossy(&data);
        let is_escaped = text.lines().next() == Some(VERSION);
        let lines = text.lines().skip(usize::from(is_escaped)).filter(|line| !line.is_empty());
        let mut lines: Vec<String> =
            lines.map(|line| if is_escaped { unescaped(line) } else { line.to_owned() }).collect();
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        // A file of another form is not appended to.
        let is_ours = is_escaped || data.is_empty();
        History { file: Some(file), lines, is_readable: is_readable && is_ours, ..History::default() }
    }

    /// Adds a line, unless it begins with a space or repeats the last one.
    pub fn add(&mut self, line: &str) {
        self.place = None;
        if line.trim().is_empty() || line.starts_with(' ') || line.len() > MAX_BYTES {
            return;
        }
        if self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push(line.to_owned());
        if self.lines.len() > MAX_LINES {
            self.lines.remove(0);
        }
        // Without a writable file the lines of this chat are still there.
        let _ = self.append(line);
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.is_readable) else { return Ok(()) };
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
        let head = if file.metadata()?.len() == 0 { format!("{VERSION}\n") } else { String::new() };
        file.write_all(format!("{head}{}\n", escaped(line)).as_bytes())
    }

    /// The line before the one that is shown.
    pub fn previous(&mut self, shown: &str) -> Option<&str> {
        let place = self.place.unwrap_or(self.lines.len()).checked_sub(1)?;
        if self.place.is_none() {
            shown.clone_into(&mut self.draft);
        }
        self.place = Some(place);
        self.lines.get(place).map(String::as_str)
    }

    /// The line after the one that is shown; after the last one, what was being written.
    pub fn next(&mut self) -> Option<&str> {
        let place = self.place? + 1;
        self.place = (place < self.lines.len()).then_some(place);
        Some(self.lines.get(place).map_or(self.draft.as_str(), String::as_str))
    }

    /// Called when the shown line is changed: it is a new one now.
    pub fn leave(&mut self) {
        self.place = None;
    }
}

fn escaped(line: &str) -> String {
    line.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let kept = if char == '\\' { chars.next().unwrap_or('\\') } else { char };
        text.push(if char == '\\' && kept == 'n' { '\n' } else { kept });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_and_walked_through() {
        let file = std::env::temp_dir().join(format!("pith-history-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let mut history = History::load(file.clone());
        for line in ["one", "two\nlines \\", "two\nlines \\", " secret", ""] {
            history.add(line);
        }
        assert_eq!(std::fs::read_to_string(&file).expect("written"), "#V2\none\ntwo\\nlines \\\\\n");
        let mut history = History::load(file.clone());
        assert_eq!(history.previous("draft"), Some("two\nlines \\"));
        assert_eq!(history.previous(""), Some("one"));
        assert_eq!(history.previous(""), None);
        assert_eq!(history.next(), Some("two\nlines \\"));
        assert_eq!(history.next(), Some("draft"));
        assert_eq!(history.next(), None);
        // A directory, or a file nobody may read, is no reason to fail.
        let mut none = History::load(std::env::temp_dir());
        none.add("x");
        assert_eq!(none.previous(""), Some("x"));
        std::fs::remove_file(&file).expect("removed");
    }
}
