//! A text file as lines with their own endings.
//!
//! Edits are matched and compared with LF as every line ending. The real ending of each line is stored beside the text,
//! so that an unchanged line keeps its ending.

use std::borrow::Cow;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
    Cr,
}

impl Ending {
    fn bytes(self) -> &'static [u8] {
        match self {
            Ending::Lf => b"\n",
            Ending::CrLf => b"\r\n",
            Ending::Cr => b"\r",
        }
    }
}

/// Whether two files have the same text, whatever their line endings and byte order marks.
pub(crate) fn same_text(one: &[u8], other: &[u8]) -> bool {
    one == other || Document::parse(one).text == Document::parse(other).text
}

/// The parsed contents of a file.
#[derive(Debug)]
pub(super) struct Document<'a> {
    has_bom: bool,
    /// With LF as every line ending.
    pub text: Cow<'a, [u8]>,
    /// One for each LF in `text`; empty if all of them are LF.
    endings: Vec<Ending>,
}

impl<'a> Document<'a> {
    pub fn parse(contents: &'a [u8]) -> Self {
        let body = contents.strip_prefix(BOM).unwrap_or(contents);
        let (text, endings) = normalised(body);
        Document { has_bom: body.len() != contents.len(), text, endings }
    }

    /// Assembles a file from changed text; it keeps the byte order mark of this one.
    pub fn assemble(&self, changed: &Changed) -> Vec<u8> {
        let mut contents = Vec::with_capacity(changed.text.len() + changed.text.len() / 16 + BOM.len());
        if self.has_bom {
            contents.extend_from_slice(BOM);
        }
        if self.endings.is_empty() {
            contents.extend_from_slice(&changed.text);
            return contents;
        }
        let mut endings = changed.endings.iter();
        for line in changed.text.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    contents.extend_from_slice(line);
                    contents.extend_from_slice(endings.next().unwrap_or(&Ending::Lf).bytes());
                }
                None => contents.extend_from_slice(line),
            }
        }
        contents
    }

    /// The endings of the newlines in `range`.
    fn endings(&self, range: std::ops::Range<usize>) -> &[Ending] {
        if self.endings.is_empty() { &[] } else { &self.endings[range] }
    }

    /// The ending for the `nth` line of a replacement for the newlines `replaced`.
    fn ending_for(&self, nth: usize, replaced: &std::ops::Range<usize>) -> Ending {
        let own = self.endings.get(replaced.start..replaced.end).unwrap_or_default();
        let candidates = [own.get(nth), own.last(), self.endings.get(replaced.start), self.endings.first()];
        candidates.into_iter().flatten().next().copied().unwrap_or(Ending::Lf)
    }
}

/// Converts CRLF and CR to LF; returns the original endings if any was not LF.
fn normalised(body: &[u8]) -> (Cow<'_, [u8]>, Vec<Ending>) {
    if memchr::memchr(b'\r', body).is_none() {
        return (Cow::Borrowed(body), Vec::new());
    }
    let mut text = Vec::with_capacity(body.len());
    let mut endings = Vec::new();
    let mut rest = body;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let ending = match &rest[at..] {
            [b'\r', b'\n', ..] => Ending::CrLf,
            [b'\r', ..] => Ending::Cr,
            _ => Ending::Lf,
        };
        text.extend_from_slice(&rest[..at]);
        text.push(b'\n');
        endings.push(ending);
        rest = &rest[at + ending.bytes().len()..];
    }
    text.extend_from_slice(rest);
    (Cow::Owned(text), endings)
}

/// The text of an argument with LF as every line ending.
pub(super) fn with_lf(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The changed text as it is built, with the ending of each of its lines.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub text: Vec<u8>,
    endings: Vec<Ending>,
}

impl Changed {
    /// Appends unchanged text; its first newline is number `newline` of the document.
    pub fn keep(&mut self, document: &Document<'_>, text: &[u8], newline: usize) {
        self.text.extend_from_slice(text);
        let count = memchr::memchr_iter(b'\n', text).count();
        self.endings.extend_from_slice(document.endings(newline..newline + count));
    }

    /// Appends new text that replaces the newlines `replaced`.
    pub fn insert(&mut self, document: &Document<'_>, text: &[u8], replaced: std::ops::Range<usize>) {
        self.text.extend_from_slice(text);
        let count = memchr::memchr_iter(b'\n', text).count();
        self.endings.extend((0..count).map(|nth| document.ending_for(nth, &replaced)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_apart_and_putting_together_changes_nothing() {
        for contents in ["", "a", "a\n", "a\r\nb\nc\rd", "\u{feff}a\r\n\r\r\n\n", "\r", "\n\r"] {
            let document = Document::parse(contents.as_bytes());
            let mut same = Changed::default();
            same.keep(&document, &document.text, 0);
            assert_eq!(document.assemble(&same), contents.as_bytes(), "{contents:?}");
            assert!(!document.text.contains(&b'\r') && !document.text.starts_with(BOM));
        }
    }

    #[test]
    fn new_lines_end_like_those_they_replace() {
        let document = Document::parse(b"a\r\nb\nc\rd");
        let check = |new: &str, replaced, expected: &str| {
            let mut changed = Changed::default();
            changed.insert(&document, new.as_bytes(), replaced);
            assert_eq!(document.assemble(&changed), expected.as_bytes(), "{new:?}");
        };
        check("x\ny\nz\n", 0..2, "x\r\ny\nz\n"); // one line more than replaced: as the last of them
        check("x\ny", 2..2, "x\ry"); // inside a line: as that line
        check("x\ny", 3..3, "x\r\ny"); // the last line has no ending: as the first
    }
}
