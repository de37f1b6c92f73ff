//! Reads a window of lines from a file of any size.
//!
//! The whole file is read once, because the number of its lines is part of the answer, but no more than fits a result
//! is kept in memory.

use std::io::Read;

use pith_agent::ToolOutput;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bridge::Lines;
use crate::command::decode::Decoder;
use crate::os_error;
use crate::seen::Digest;
use crate::tool::{Outcome, check_aborted};
use crate::truncate::{Extent, Limits, TruncatedBy, head_of, size};

const CHUNK: usize = 256 * 1024;

/// The requested lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The first line, a whole number; kept as given, because the error message repeats it.
    offset: f64,
    /// The number of lines before the first.
    skipped: usize,
    count: Option<usize>,
}

impl Window {
    /// `offset` counts from 1 and is rounded down; anything less is the beginning.
    pub fn new(offset: Option<f64>, limit: Option<usize>) -> Self {
        let offset = offset.unwrap_or(1.0).floor().max(1.0);
        // The cast saturates: no file has that many lines.
        Window { offset, skipped: offset as usize - 1, count: limit }
    }

    /// The lines that can be shown at most.
    pub fn lines(self) -> Lines {
        let count = self.count.unwrap_or(usize::MAX).min(Limits::RESULT.lines);
        Lines { first: self.skipped.saturating_add(1), count }
    }
}

/// The result of reading a file.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// A final newline opens one more, empty line.
    total_lines: usize,
    selected: Selected,
    pub digest: Option<u64>,
}

/// The text of the window: as much of its beginning as any limit allows, and its size.
#[derive(Debug, Default)]
struct Selected {
    beginning: String,
    extent: Extent,
    ends_with_newline: bool,
    first_line: Option<usize>,
}

/// Reads a file, feeding `digest` if there is one. Fails if it cannot be read or the call is aborted.
pub(super) fn scan(
    mut file: impl Read,
    window: Window,
    mut digest: Option<Digest>,
    cancel: &CancellationToken,
) -> Result<Scan, String> {
    let start = window.skipped;
    let end = window.count.map_or(usize::MAX, |count| start.saturating_add(count));
    let mut newlines = 0;
    let mut decoder = Decoder::default();
    let mut selected = Selected::default();
    let mut buffer = vec![0; CHUNK];
    loop {
        check_aborted(cancel)?;
        let n = file.read(&mut buffer).map_err(|error| os_error::on_open_file(&error, "read"))?;
        if n == 0 {
            break;
        }
        if let Some(digest) = &mut digest {
            digest.push(&buffer[..n]);
        }
        let mut rest = &buffer[..n];
        if newlines < start {
            rest = skip_lines(rest, start - newlines, &mut newlines);
        }
        if newlines >= start && newlines < end {
            let before = newlines;
            let after = skip_lines(rest, end - newlines, &mut newlines);
            let mut inside = &rest[..rest.len() - after.len()];
            if newlines == end && before < end {
                // The newline that ends the window is not part of it.
                inside = &inside[..inside.len() - 1];
            }
            decoder.push(inside, |text| selected.push(text));
            rest = after;
        }
        newlines += memchr::memchr_iter(b'\n', rest).count();
    }
    decoder.finish(|text| selected.push(text));
    Ok(Scan { total_lines: newlines + 1, selected, digest: digest.map(|digest| digest.finish()) })
}

/// What follows the `n`th newline; empty if there are fewer. Adds the number of newlines passed to `count`.
fn skip_lines<'a>(bytes: &'a [u8], n: usize, count: &mut usize) -> &'a [u8] {
    let mut passed = 0;
    for at in memchr::memchr_iter(b'\n', bytes) {
        passed += 1;
        if passed == n {
            *count += passed;
            return &bytes[at + 1..];
        }
    }
    *count += passed;
    &[]
}

impl Selected {
    fn push(&mut self, text: &str) {
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        if self.first_line.is_none() && newlines > 0 {
            self.first_line = text.find('\n').map(|at| self.extent.bytes + at);
        }
        self.extent = Extent { lines: self.extent.lines + newlines, bytes: self.extent.bytes + text.len() };
        self.ends_with_newline = text.ends_with('\n');
        if self.beginning.len() <= Limits::RESULT.bytes {
            let room = 2 * Limits::RESULT.bytes - self.beginning.len();
            self.beginning.push_str(&text[..text.floor_char_boundary(room)]);
        }
    }

    fn extent(&self) -> Extent {
        let unterminated = self.extent.bytes > 0 && !self.ends_with_newline;
        Extent { lines: self.extent.lines + usize::from(unterminated), ..self.extent }
    }
}

impl Scan {
    /// Renders the answer to the model.
    pub fn render(&self, window: Window, path: &str) -> Outcome {
        let (first, total) = (window.skipped + 1, self.total_lines);
        if first > total {
            return Err(format!("Offset {} is beyond end of file ({total} lines total)", digits(window.offset)));
        }
        let (text, truncation) = head_of(&self.selected.beginning, self.selected.extent(), Limits::RESULT);
        let Some(truncation) = truncation else {
            let next = window.count.map_or(usize::MAX, |count| window.skipped.saturating_add(count)).saturating_add(1);
            return Ok(ToolOutput::text(if next <= total {
                format!("{text}\n\n[{} more lines in file. Use offset={next} to continue.]", total + 1 - next)
            } else {
                text.to_owned()
            }));
        };
        let limit = size(Limits::RESULT.bytes);
        let text = if truncation.first_line_exceeds_limit {
            let line = size(self.selected.first_line.unwrap_or(self.selected.extent.bytes));
            let bytes = Limits::RESULT.bytes;
            format!(
                "[Line {first} is {line}, exceeds {limit} limit. Use bash: sed -n '{first}p' {path} | head -c {bytes}]"
            )
        } else {
            let last = first + truncation.output.lines - 1;
            let why = match truncation.by {
                TruncatedBy::Lines => String::new(),
                TruncatedBy::Bytes => format!(" ({limit} limit)"),
            };
            format!("{text}\n\n[Showing lines {first}-{last} of {total}{why}. Use offset={} to continue.]", last + 1)
        };
        Ok(ToolOutput::text(text).with_details(json!({"truncation": truncation.details()})))
    }
}

/// A whole number as JavaScript writes it, which hosts expect: from 1e21 on with an exponent.
fn digits(number: f64) -> String {
    if number < 1e21 { number.to_string() } else { format!("{number:e}").replace('e', "e+") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(contents: &[u8], offset: Option<u32>, limit: Option<usize>) -> Result<String, String> {
        let window = Window::new(offset.map(f64::from), limit);
        let output = scan(contents, window, None, &CancellationToken::new())?.render(window, "f")?;
        Ok(output.content[0].as_text().unwrap().to_owned())
    }

    fn check(contents: &str, offset: u32, limit: usize, expected: &str) {
        let (offset_given, limit_given) = ((offset > 0).then_some(offset), (limit > 0).then_some(limit));
        let got = read(contents.as_bytes(), offset_given, limit_given).unwrap_or_else(|error| error);
        assert_eq!(got, expected, "{contents:?} offset {offset} limit {limit}");
    }

    #[test]
    fn offset_and_limit_select_lines() {
        check("", 0, 0, "");
        check("", 2, 0, "Offset 2 is beyond end of file (1 lines total)");
        check("\n", 0, 0, "\n");
        check("\n", 0, 1, "\n\n[1 more lines in file. Use offset=2 to continue.]");
        check("\n", 0, 5, "\n");
        check("one\ntwo\nthree\n", 0, 0, "one\ntwo\nthree\n");
        check("one\ntwo\nthree\n", 2, 1, "two\n\n[2 more lines in file. Use offset=3 to continue.]");
        check("one\ntwo\nthree\n", 3, 2, "three\n");
        check("one\ntwo\nthree\n", 4, 0, "");
        check("one\ntwo\nthree\n", 99, 0, "Offset 99 is beyond end of file (4 lines total)");
        check("one\ntwo", 2, 7, "two");
    }

    #[test]
    fn long_files_say_at_which_offset_to_continue() {
        let lines: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
        let text = read(lines.as_bytes(), None, None).unwrap();
        assert!(text.ends_with("line 2000\n\n[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]"));
        let wide = format!("{}\n", "x".repeat(99)).repeat(1000);
        let text = read(wide.as_bytes(), Some(10), Some(600)).unwrap();
        assert!(text.ends_with("\n\n[Showing lines 10-521 of 1001 (50.0KB limit). Use offset=522 to continue.]"));
        let one = format!("a\n{}\nz\n", "y".repeat(60_000));
        let note = "[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' f | head -c 51200]";
        assert_eq!(read(one.as_bytes(), Some(2), None).unwrap(), note);
        assert_eq!(read(one.as_bytes(), Some(2), Some(1)).unwrap(), note);
    }

    #[test]
    fn details_measure_the_window() {
        let lines: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
        let window = Window::new(None, Some(2500));
        let output =
            scan(lines.as_bytes(), window, None, &CancellationToken::new()).unwrap().render(window, "f").unwrap();
        let expected = json!({"truncation": {
            "truncated": true, "truncatedBy": "lines", "totalLines": 2500, "totalBytes": 23892, "outputLines": 2000,
            "outputBytes": 18892, "lastLinePartial": false, "firstLineExceedsLimit": false, "maxLines": 2000,
            "maxBytes": 51200,
        }});
        assert_eq!(output.details, Some(expected));
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        assert_eq!(read(b"caf\xe9\nx\xe2\x82", None, None).unwrap(), "caf\u{fffd}\nx\u{fffd}");
    }

    #[test]
    fn an_aborted_scan_stops() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(
            scan(std::io::repeat(b'x'), Window::new(None, None), None, &cancel).unwrap_err(),
            "Operation aborted"
        );
    }

    /// Returns a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #[test]
        fn pieces_and_windows_agree_with_splitting(
            text in "(a|é|\n){0,30}",
            piece in 1usize..9,
            offset in 1u32..12,
            limit in 1usize..12,
        ) {
            let lines: Vec<&str> = text.split('\n').collect();
            let window = Window::new(Some(offset.into()), Some(limit));
            let scan = scan(Trickle(text.as_bytes(), piece), window, None, &CancellationToken::new()).unwrap();
            prop_assert_eq!(scan.total_lines, lines.len());
            let selected: Vec<&str> = lines.iter().skip(offset as usize - 1).take(limit).copied().collect();
            prop_assert_eq!(&scan.selected.beginning, &selected.join("\n"));
            prop_assert_eq!(scan.selected.extent(), Extent::of(&selected.join("\n")));
        }
    }
}
