//! Keeps the end of a command's output, and counts all of it.

use crate::truncate::{Extent, Limits, Truncation, tail_of};

/// At least this many bytes are kept; more than any limit that is applied.
const KEPT: usize = 64 * 1024;

/// Keeps the last part of a text of any length in bounded memory.
#[derive(Default)]
pub(crate) struct Tail {
    recent: String,
    bytes: usize,
    newlines: usize,
    /// The length of the line being written.
    open_line: usize,
    /// The length of the previous line.
    closed_line: usize,
}

impl Tail {
    /// Appends text.
    pub fn push(&mut self, text: &str) {
        self.measure(text);
        if text.len() >= KEPT {
            self.recent.clear();
            self.recent.push_str(&text[text.floor_char_boundary(text.len() - KEPT)..]);
            return;
        }
        if self.recent.len() + text.len() > 2 * KEPT {
            let excess = self.recent.floor_char_boundary(self.recent.len().saturating_sub(KEPT));
            self.recent.drain(..excess);
        }
        self.recent.push_str(text);
    }

    fn measure(&mut self, text: &str) {
        self.bytes += text.len();
        let bytes = text.as_bytes();
        let Some(last) = memchr::memrchr(b'\n', bytes) else {
            self.open_line += text.len();
            return;
        };
        self.newlines += memchr::memchr_iter(b'\n', bytes).count();
        self.closed_line = match memchr::memrchr(b'\n', &bytes[..last]) {
            Some(before) => last - before - 1,
            None => self.open_line + last,
        };
        self.open_line = text.len() - last - 1;
    }

    /// Lines and bytes of all text so far.
    pub fn total(&self) -> Extent {
        Extent { lines: self.newlines + usize::from(self.open_line > 0), bytes: self.bytes }
    }

    /// Lines as counted by newlines: one more than there are newlines, none in an empty text.
    pub fn opened_lines(&self) -> usize {
        if self.bytes == 0 { 0 } else { self.newlines + 1 }
    }

    /// The length of the last line, without its newline.
    pub fn last_line(&self) -> usize {
        if self.open_line > 0 { self.open_line } else { self.closed_line }
    }

    /// The end of the text that fits the limits.
    pub fn cut(&self, limits: Limits) -> (&str, Option<Truncation>) {
        debug_assert!(limits.bytes < KEPT);
        tail_of(&self.recent, self.total(), limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truncate;

    #[test]
    fn the_end_of_a_long_text_equals_cutting_the_whole() {
        let whole: String = (0..12_000).map(|n| format!("line {n} é\n")).collect();
        for piece in [7, 1000, 70_000] {
            let mut tail = Tail::default();
            let mut rest = whole.as_str();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
                tail.push(now);
                rest = later;
            }
            assert_eq!(tail.cut(Limits::RESULT), truncate::tail(&whole, Limits::RESULT), "pieces of {piece}");
            assert!(tail.recent.capacity() < 4 * KEPT);
        }
    }

    #[test]
    fn the_last_line_is_measured() {
        for (pieces, last_line) in [
            (vec!["abc"], 3),
            (vec!["abc\n"], 3),
            (vec!["ab", "cd\n"], 4),
            (vec!["x\nab", "cd\n", "e"], 1),
            (vec!["x\nab\n\n"], 0),
            (vec!["abc\n", "\n"], 0),
        ] {
            let mut tail = Tail::default();
            pieces.iter().for_each(|piece| tail.push(piece));
            assert_eq!(tail.last_line(), last_line, "{pieces:?}");
        }
    }
}
