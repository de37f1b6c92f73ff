//! The two output limits of every tool, and how text is cut to fit them.
//!
//! Only whole lines are returned, with one exception at the tail, and a character is never split. A trailing newline
//! does not open another line.

use serde_json::{Value, json};

/// How much text a result may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

impl Limits {
    /// The limits of one tool result.
    pub const RESULT: Limits = Limits { lines: 2000, bytes: 51_200 };
}

/// Which limit was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncatedBy {
    Lines,
    Bytes,
}

/// What was cut, as hosts read it in `details.truncation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    pub by: TruncatedBy,
    pub total: Extent,
    pub output: Extent,
    /// The last line alone is too long; only its end is shown.
    pub last_line_partial: bool,
    /// The first line alone is too long; nothing is shown.
    pub first_line_exceeds_limit: bool,
    pub limits: Limits,
}

/// Lines and bytes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub lines: usize,
    pub bytes: usize,
}

impl Extent {
    /// Measures a text; a trailing newline does not count as an extra line.
    pub fn of(text: &str) -> Extent {
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let unterminated = !text.is_empty() && !text.ends_with('\n');
        Extent { lines: newlines + usize::from(unterminated), bytes: text.len() }
    }

    /// Returns whether nothing has to be cut.
    pub fn fits(self, limits: Limits) -> bool {
        self.lines <= limits.lines && self.bytes <= limits.bytes
    }
}

impl Truncation {
    /// Returns the JSON form, without the text itself.
    pub fn details(&self) -> Value {
        json!({
            "truncated": true,
            "truncatedBy": match self.by {
                TruncatedBy::Lines => "lines",
                TruncatedBy::Bytes => "bytes",
            },
            "totalLines": self.total.lines,
            "totalBytes": self.total.bytes,
            "outputLines": self.output.lines,
            "outputBytes": self.output.bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.limits.lines,
            "maxBytes": self.limits.bytes,
        })
    }
}

/// Keeps the first lines that fit.
pub fn head(text: &str, limits: Limits) -> (&str, Option<Truncation>) {
    head_of(text, Extent::of(text), limits)
}

/// Like [`head`], for the beginning of a longer text of which only the extent is known.
///
/// `beginning` must reach past both limits, or be the whole text.
pub fn head_of(beginning: &str, total: Extent, limits: Limits) -> (&str, Option<Truncation>) {
    if total.fits(limits) {
        return (beginning, None);
    }
    let mut kept = Extent::default();
    let mut by = TruncatedBy::Lines;
    let mut end = 0;
    for line in lines(beginning).take(limits.lines) {
        let separator = usize::from(kept.lines > 0);
        if kept.bytes + separator + line.len() > limits.bytes {
            by = TruncatedBy::Bytes;
            break;
        }
        kept = Extent { lines: kept.lines + 1, bytes: kept.bytes + separator + line.len() };
        end = kept.bytes;
    }
    let truncation = Truncation {
        by,
        total,
        output: kept,
        last_line_partial: false,
        first_line_exceeds_limit: kept.lines == 0 && by == TruncatedBy::Bytes,
        limits,
    };
    (&beginning[..end], Some(truncation))
}

/// Keeps the last lines that fit, or the end of a last line that is too long by itself.
pub fn tail(text: &str, limits: Limits) -> (&str, Option<Truncation>) {
    tail_of(text, Extent::of(text), limits)
}

/// Like [`tail`], for the end of a longer text of which only the extent is known.
///
/// `end` must hold more bytes than the byte limit, or be the whole text.
pub fn tail_of(end: &str, total: Extent, limits: Limits) -> (&str, Option<Truncation>) {
    if total.fits(limits) {
        return (end, None);
    }
    // The kept text ends before a trailing newline, as the kept lines joined would.
    let body = end.strip_suffix('\n').unwrap_or(end);
    let mut by = TruncatedBy::Lines;
    let mut output = Extent::default();
    let mut start = body.len();
    let mut last_line_partial = false;
    for line in body.rsplit('\n').take(limits.lines) {
        let separator = usize::from(output.lines > 0);
        if output.bytes + separator + line.len() > limits.bytes {
            by = TruncatedBy::Bytes;
            if output.lines == 0 {
                last_line_partial = true;
                start = end_that_fits(body, limits.bytes);
                output = Extent { lines: 1, bytes: body.len() - start };
            }
            break;
        }
        output = Extent { lines: output.lines + 1, bytes: output.bytes + separator + line.len() };
        start = body.len() - output.bytes;
    }
    let truncation = Truncation { by, total, output, last_line_partial, first_line_exceeds_limit: false, limits };
    (&body[start..], Some(truncation))
}

/// The start of the longest end of `text` that has at most `bytes` bytes and only whole characters.
fn end_that_fits(text: &str, bytes: usize) -> usize {
    text.ceil_char_boundary(text.len().saturating_sub(bytes))
}

/// Splits into lines without their newlines; a trailing newline opens no further line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    (!text.is_empty()).then(|| body.split('\n')).into_iter().flatten()
}

/// Formats a size: `812B`, `50.0KB`, `1.3MB`.
pub fn size(bytes: usize) -> String {
    const KB: f64 = 1024.0;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.1}KB", bytes as f64 / KB),
        _ => format!("{:.1}MB", bytes as f64 / (KB * KB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Limits = Limits { lines: 3, bytes: 10 };

    fn check_head(text: &str, kept: &str, by: Option<TruncatedBy>) {
        let (got, truncation) = head(text, SMALL);
        assert_eq!((got, truncation.map(|t| t.by)), (kept, by), "head of {text:?}");
    }

    fn check_tail(text: &str, kept: &str, by: Option<TruncatedBy>) {
        let (got, truncation) = tail(text, SMALL);
        assert_eq!((got, truncation.map(|t| t.by)), (kept, by), "tail of {text:?}");
    }

    #[test]
    fn head_keeps_whole_lines() {
        check_head("", "", None);
        check_head("a\nb\nc\n", "a\nb\nc\n", None);
        check_head("a\nb\nc\nd", "a\nb\nc", Some(TruncatedBy::Lines));
        check_head("aaaa\nbbbb\ncccc\n", "aaaa\nbbbb", Some(TruncatedBy::Bytes));
        check_head("aaaaaaaaaaa\nb\n", "", Some(TruncatedBy::Bytes));
        // Only the final newline is too much: no line was dropped.
        check_head("aaaaaaaaaa\n", "aaaaaaaaaa", Some(TruncatedBy::Lines));
    }

    #[test]
    fn tail_keeps_whole_lines() {
        check_tail("a\nb\nc\n", "a\nb\nc\n", None);
        check_tail("a\nb\nc\nd\n", "b\nc\nd", Some(TruncatedBy::Lines));
        check_tail("aaaa\nbbbb\ncccc\n", "bbbb\ncccc", Some(TruncatedBy::Bytes));
        check_tail("x\naaaaaaaaaaab\n", "aaaaaaaaab", Some(TruncatedBy::Bytes));
        check_tail("éééééé", "ééééé", Some(TruncatedBy::Bytes));
        check_tail("aéééééa", "ééééa", Some(TruncatedBy::Bytes)); // ten bytes would split a character
    }

    #[test]
    fn a_line_longer_than_the_limit_is_marked() {
        assert!(head("aaaaaaaaaaaa\nb", SMALL).1.unwrap().first_line_exceeds_limit);
        let partial = tail("b\naaaaaaaaaaaa", SMALL).1.unwrap();
        assert!(partial.last_line_partial);
        assert_eq!(partial.output, Extent { lines: 1, bytes: 10 });
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (bytes, text) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (51_200, "50.0KB"), (60_000, "58.6KB"), (1 << 20, "1.0MB")]
        {
            assert_eq!(size(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn both_ends_stay_within_their_limits(
            text in "(\\PC|\n|é|😀){0,60}",
            lines in 1usize..6,
            bytes in 4usize..40,
        ) {
            let limits = Limits { lines, bytes };
            for (kept, truncation) in [head(&text, limits), tail(&text, limits)] {
                prop_assert!(kept.len() <= bytes && Extent::of(kept).lines <= lines);
                match truncation {
                    None => prop_assert_eq!(kept, &text),
                    Some(truncation) => prop_assert_eq!(truncation.output.bytes, kept.len()),
                }
            }
            prop_assert!(text.starts_with(head(&text, limits).0));
            let body = text.strip_suffix('\n').unwrap_or(&text);
            let end = tail(&text, limits).0;
            prop_assert!(body.ends_with(end) || text.ends_with(end));
        }
    }
}
