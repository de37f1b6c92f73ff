//! Look-alike text: a form in which texts that look alike are equal.
//!
//! Made line by line, so that a place in it always corresponds to lines of the file.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// A text and its look-alike form.
pub(super) struct Fuzzy<'a> {
    original: &'a str,
    /// The look-alike form of the whole text.
    pub text: Cow<'a, str>,
    /// Where each line starts in both; empty if they are the same text.
    lines: Vec<(usize, usize)>,
}

impl<'a> Fuzzy<'a> {
    pub fn new(original: &'a str) -> Self {
        if original.split('\n').all(is_plain) {
            return Fuzzy { original, text: Cow::Borrowed(original), lines: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut lines = Vec::new();
        let mut start = 0;
        for line in original.split('\n') {
            if start > 0 {
                text.push('\n');
            }
            lines.push((start, text.len()));
            text.push_str(&fuzzy_line(line));
            start += line.len() + 1;
        }
        Fuzzy { original, text: Cow::Owned(text), lines }
    }

    /// The original text of a range that no edit touches: original lines where the range covers them with their
    /// newlines, look-alike text for the rest.
    pub fn original_of(&self, range: Range<usize>) -> Cow<'_, str> {
        if self.lines.is_empty() {
            return Cow::Borrowed(&self.original[range]);
        }
        let first = self.lines.partition_point(|(_, fuzzy)| *fuzzy <= range.start).saturating_sub(1);
        let mut text = String::with_capacity(range.len());
        for at in first..self.lines.len() {
            let (original, fuzzy) = self.line(at);
            if fuzzy.start > range.end {
                break;
            }
            let end = if at + 1 < self.lines.len() { fuzzy.end + 1 } else { fuzzy.end };
            if fuzzy.start >= range.start && end <= range.end {
                text.push_str(&self.original[original]);
            } else {
                text.push_str(&self.text[fuzzy.start.max(range.start)..fuzzy.end.min(range.end)]);
            }
            if fuzzy.end < range.end {
                text.push('\n');
            } else {
                break;
            }
        }
        Cow::Owned(text)
    }

    /// The range of a line in the original and in the look-alike text, without its newline.
    fn line(&self, at: usize) -> (Range<usize>, Range<usize>) {
        let (original, fuzzy) = self.lines[at];
        let (original_end, fuzzy_end) = match self.lines.get(at + 1) {
            Some((original, fuzzy)) => (original - 1, fuzzy - 1),
            None => (self.original.len(), self.text.len()),
        };
        (original..original_end, fuzzy..fuzzy_end)
    }
}

/// The look-alike form of any text.
pub(super) fn fuzzy(text: &str) -> Cow<'_, str> {
    Fuzzy::new(text).text.into_owned().into()
}

/// The look-alike form of any text, with the blanks at the ends of its lines.
pub(super) fn fuzzy_untrimmed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(composed(text).chars().map(plain_char).collect())
}

fn is_plain(line: &str) -> bool {
    line.is_ascii() && !line.ends_with(|c: char| c.is_ascii_whitespace() || c == '\u{b}')
}

fn fuzzy_line(line: &str) -> Cow<'_, str> {
    if is_plain(line) {
        return Cow::Borrowed(line);
    }
    let composed = composed(line);
    let trimmed = composed.trim_end_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    Cow::Owned(trimmed.chars().map(plain_char).collect())
}

fn composed(text: &str) -> Cow<'_, str> {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect()),
    }
}

fn plain_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn look_alikes_become_equal() {
        for (text, plain) in [
            ("say \u{201c}hi\u{201d}  \nit\u{2019}s\t", "say \"hi\"\nit's"),
            ("a\u{a0}b\u{2014}c\u{2212}d", "a b-c-d"),
            ("\u{fb01}le \u{ff21}", "file A"),
            ("e\u{301}", "\u{e9}"),
            ("  \n\n x ", "\n\n x"),
            ("plain\n", "plain\n"),
        ] {
            assert_eq!(fuzzy(text), plain, "{text:?}");
        }
        assert_eq!(fuzzy_untrimmed("it\u{2019}s\u{a0} \n\u{fb01}\u{3000}"), "it's  \nfi ");
    }

    #[test]
    fn whole_lines_lead_back_to_the_original() {
        let fuzzy = Fuzzy::new("one\u{2019}  \ntwo \nthree");
        assert_eq!(fuzzy.text, "one'\ntwo\nthree");
        assert_eq!(fuzzy.original_of(0..14), "one\u{2019}  \ntwo \nthree");
        assert_eq!(fuzzy.original_of(0..5), "one\u{2019}  \n");
        assert_eq!(fuzzy.original_of(5..9), "two \n");
        assert_eq!(fuzzy.original_of(6..8), "wo");
        assert_eq!(fuzzy.original_of(8..9), "\n");
        assert_eq!(fuzzy.original_of(0..8), "one\u{2019}  \ntwo"); // the second line lost its newline
        assert_eq!(fuzzy.original_of(2..10), "e'\ntwo \nt");
        assert_eq!(fuzzy.original_of(14..14), "");
    }

    proptest! {
        #[test]
        fn nothing_touched_means_nothing_changed(text in "(a| |\u{a0}|\u{2019}|\n|é){0,24}") {
            let fuzzy = Fuzzy::new(&text);
            prop_assert_eq!(fuzzy.original_of(0..fuzzy.text.len()), text.as_str());
            prop_assert_eq!(fuzzy.text.matches('\n').count(), text.matches('\n').count());
        }
    }
}
