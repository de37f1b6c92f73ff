//! Splits bytes into lines. LF is the only separator, and every byte is examined once.

/// A line of input, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(&'a [u8]),
    /// The line was longer than allowed and was dropped up to the next newline.
    TooLong,
}

/// Collects chunks into lines.
pub struct LineSplitter {
    limit: usize,
    /// The unfinished line.
    rest: Vec<u8>,
    is_dropping: bool,
}

/// A buffer larger than this is shrunk after a long line.
const KEEP: usize = 1 << 20;

impl LineSplitter {
    /// Lines longer than `limit` are reported, not kept.
    pub fn new(limit: usize) -> Self {
        LineSplitter { limit, rest: Vec::new(), is_dropping: false }
    }

    /// Takes the next bytes and passes on every line they complete.
    pub fn push(&mut self, mut chunk: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, after) = (&chunk[..end], &chunk[end + 1..]);
            chunk = after;
            if self.rest.is_empty() && !self.is_dropping && line.len() <= self.limit {
                take(Line::Whole(strip(line)));
            } else {
                self.hold(line);
                self.finish(&mut take);
            }
        }
        self.hold(chunk);
    }

    /// Passes on a last line that has no newline.
    pub fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if std::mem::take(&mut self.is_dropping) {
            take(Line::TooLong);
        } else {
            take(Line::Whole(strip(&self.rest)));
        }
        self.rest.clear();
        self.rest.shrink_to(KEEP);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.is_dropping {
            return;
        }
        if self.rest.len() + bytes.len() > self.limit {
            self.is_dropping = true;
            self.rest = Vec::new();
            return;
        }
        self.rest.extend_from_slice(bytes);
    }
}

/// Removes one trailing CR, which belongs to the line ending, and one byte order mark at the start: a host that
/// concatenates files, or uses an encoder per line, can put one before any line.
fn strip(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<Option<Vec<u8>>> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        let mut take = |line: Line<'_>| {
            lines.push(match line {
                Line::Whole(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            });
        };
        for chunk in chunks {
            splitter.push(chunk, &mut take);
        }
        splitter.finish(&mut take);
        lines
    }

    fn check(text: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|line| Some(line.as_bytes().to_vec())).collect();
        assert_eq!(split(&[text.as_bytes()], 100), expected, "{text:?}");
    }

    #[test]
    fn line_endings() {
        check("a\nb\n", &["a", "b", ""]);
        check("a\r\nb", &["a", "b"]); // the last line needs no newline
        check("a\u{2028}b\u{85}c\rd\n", &["a\u{2028}b\u{85}c\rd", ""]); // legal inside a JSON string
        check("\u{feff}a\n\u{feff}b\r\n\u{feff}\n\u{feff}\u{feff}c", &["a", "b", "", "\u{feff}c"]);
        check("a\r\r\n", &["a\r", ""]);
    }

    #[test]
    fn long_lines_are_dropped_and_the_next_is_read() {
        assert_eq!(
            split(&[b"12345\n1", b"23456", b"7\nok\n12345"], 5),
            vec![Some(b"12345".to_vec()), None, Some(b"ok".to_vec()), Some(b"12345".to_vec())]
        );
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_lines(text in "[ab\\n\\r\u{2028}\u{feff}]{0,60}", cuts in prop::collection::vec(0usize..80, 0..6), limit in 1usize..20) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(split(&chunks, limit), split(&[bytes], limit));
        }
    }
}
