//! The last lines that a server wrote beside the protocol: stderr, and stdout that is no frame. Secrets are masked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_secrets::{Secrets, Stream};

/// How much is kept per server.
const MAX_BYTES: usize = 64 * 1024;
/// A longer line is cut.
pub const MAX_LINE: usize = 4096;

/// The lines, shared by everyone who writes or shows them.
#[derive(Clone, Default)]
pub struct Remarks {
    lines: Arc<Mutex<Lines>>,
    /// What the session knows.
    known: Arc<Secrets>,
    /// What the entry of the server holds: a name may be in it that is no secret elsewhere.
    own: Arc<Secrets>,
}

struct Lines {
    lines: VecDeque<String>,
    n_bytes: usize,
    max_lines: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { lines: VecDeque::new(), n_bytes: 0, max_lines: usize::MAX }
    }
}

impl Remarks {
    /// Creates an empty list that keeps so many lines.
    pub fn ring(max_lines: usize) -> Self {
        let remarks = Remarks::default();
        remarks.lines().max_lines = max_lines;
        remarks
    }

    /// Creates an empty list that shows neither these values nor known secrets.
    pub fn hiding(values: &[String], known: &Arc<Secrets>) -> Self {
        let remarks = Remarks { known: known.clone(), ..Remarks::default() };
        values.iter().for_each(|value| remarks.own.remember(value));
        remarks
    }

    /// Lets everybody hide one more value.
    pub fn hide(&self, value: &str) {
        self.known.remember(value);
    }

    /// Adds a line.
    pub fn push(&self, line: &[u8]) {
        let line = self.masked(String::from_utf8_lossy(line).trim_end());
        if line.is_empty() {
            return;
        }
        let line = cut(&line, MAX_LINE).to_owned();
        let mut lines = self.lines();
        lines.n_bytes += line.len();
        lines.lines.push_back(line);
        while lines.n_bytes > MAX_BYTES || lines.lines.len() > lines.max_lines {
            let Some(oldest) = lines.lines.pop_front() else { return };
            lines.n_bytes -= oldest.len();
        }
    }

    /// Returns the last lines.
    pub fn last(&self, n_lines: usize) -> Vec<String> {
        let lines = self.lines();
        lines.lines.iter().skip(lines.lines.len().saturating_sub(n_lines)).cloned().collect()
    }

    /// Replaces every secret in a text.
    pub fn masked(&self, text: &str) -> String {
        self.known.redact(&self.own.redact(text)).into_owned()
    }

    /// Masks a text that comes in pieces.
    pub fn masking(&self) -> Masking {
        Masking { own: Stream::new(Some(self.own.clone())), known: Stream::new(Some(self.known.clone())) }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes secrets out of a text that comes in pieces; what may be the beginning of one waits for the next piece.
pub struct Masking {
    own: Stream,
    known: Stream,
}

impl Masking {
    /// Takes a piece, and appends what is certain.
    pub fn push(&mut self, piece: &[u8], masked: &mut Vec<u8>) {
        let Masking { own, known } = self;
        own.push(piece, |bytes| known.push(bytes, |bytes| masked.extend_from_slice(bytes)));
    }

    /// Appends what has waited.
    pub fn finish(mut self, masked: &mut Vec<u8>) {
        let Masking { own, known } = &mut self;
        own.finish(|bytes| known.push(bytes, |bytes| masked.extend_from_slice(bytes)));
        known.finish(|bytes| masked.extend_from_slice(bytes));
    }
}

/// Returns the beginning of a text, of at most so many bytes.
pub fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stay_and_secrets_do_not_show() {
        let remarks = Remarks::hiding(&["sk-12345678".to_owned(), "a".to_owned()], &Arc::default());
        remarks.push(b"key sk-12345678\r\n");
        remarks.push(b"\n");
        remarks.push("bad \u{fffd}".as_bytes());
        assert_eq!(remarks.last(5), ["key [redacted]", "bad \u{fffd}"]);
        remarks.push(format!("{}sk-12345678", "x".repeat(MAX_LINE - 5)).as_bytes());
        assert_eq!(remarks.last(1), [format!("{}[reda", "x".repeat(MAX_LINE - 5))]);
        for number in 0..100_000 {
            remarks.push(format!("line {number}").as_bytes());
        }
        assert_eq!(remarks.last(1), ["line 99999"]);
        assert!(remarks.last(usize::MAX).iter().map(String::len).sum::<usize>() <= MAX_BYTES);
    }
}
