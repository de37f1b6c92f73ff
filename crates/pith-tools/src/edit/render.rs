//! Renders a difference: numbered lines for people, a patch for programs.

use std::fmt::Write;

use super::diff::{Run, RunKind, compare, lines};

const CONTEXT: usize = 4;

/// A difference in both forms.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub diff: String,
    pub patch: String,
    /// From 1, in the new version.
    pub first_changed_line: Option<usize>,
}

/// Renders the difference between `before` and `after`.
pub(super) fn difference(before: &[u8], after: &[u8], path: &str) -> Difference {
    let (old, new) = (lines(before), lines(after));
    let runs = compare(&old, &new);
    let versions = Versions { old: &old, new: &new, runs: &runs };
    let first_changed = runs.iter().find(|run| run.kind == RunKind::Changed);
    Difference {
        diff: versions.numbered(number_width(before, after)),
        patch: versions.patch(path),
        first_changed_line: first_changed.map(|run| run.new_start + 1),
    }
}

/// The number of digits of the largest line number; here a final newline does open another line.
fn number_width(before: &[u8], after: &[u8]) -> usize {
    let count = |text: &[u8]| memchr::memchr_iter(b'\n', text).count() + 1;
    count(before).max(count(after)).to_string().len()
}

struct Versions<'a> {
    old: &'a [&'a [u8]],
    new: &'a [&'a [u8]],
    runs: &'a [Run],
}

impl Versions<'_> {
    fn numbered(&self, width: usize) -> String {
        let mut out: Vec<String> = Vec::new();
        let line = |sign: char, number: usize, line: &[u8]| format!("{sign}{number:>width$} {}", shown(line));
        for (at, run) in self.runs.iter().enumerate() {
            if run.kind == RunKind::Changed {
                out.extend((0..run.old_lines).map(|n| run.old_start + n).map(|n| line('-', n + 1, self.old[n])));
                out.extend((0..run.new_lines).map(|n| run.new_start + n).map(|n| line('+', n + 1, self.new[n])));
                continue;
            }
            let (start, end) = (run.old_start, run.old_start + run.old_lines);
            let (head, tail) = self.context(at);
            let same = |range: std::ops::Range<usize>| range.map(|n| line(' ', n + 1, self.old[n]));
            if head + tail >= run.old_lines {
                out.extend(same(start..end));
                continue;
            }
            out.extend(same(start..start + head));
            out.push(format!(" {:width$} ...", ""));
            out.extend(same(end - tail..end));
        }
        out.join("\n")
    }

    /// How many lines of an unchanged run are shown after the previous change and before the next one.
    fn context(&self, at: usize) -> (usize, usize) {
        (if at > 0 { CONTEXT } else { 0 }, if at + 1 < self.runs.len() { CONTEXT } else { 0 })
    }

    fn patch(&self, path: &str) -> String {
        let mut out = format!("--- {path}\n+++ {path}\n");
        let mut hunk = Hunk::default();
        for (at, run) in self.runs.iter().enumerate() {
            if run.kind == RunKind::Changed {
                hunk.open(run.old_start, run.new_start);
                hunk.lines('-', &self.old[run.old_start..run.old_start + run.old_lines]);
                hunk.lines('+', &self.new[run.new_start..run.new_start + run.new_lines]);
                continue;
            }
            let (head, tail) = self.context(at);
            let same = &self.old[run.old_start..run.old_start + run.old_lines];
            if hunk.is_open() && head + tail >= same.len() {
                hunk.lines(' ', same);
                continue;
            }
            if hunk.is_open() {
                hunk.lines(' ', &same[..head.min(same.len())]);
                hunk.close(&mut out);
            }
            let skipped = same.len().saturating_sub(tail);
            if tail > 0 {
                hunk.open(run.old_start + skipped, run.new_start + skipped);
                hunk.lines(' ', &same[skipped..]);
            }
        }
        hunk.close(&mut out);
        out
    }
}

/// A hunk of a patch as it is built.
#[derive(Default)]
struct Hunk {
    start: Option<(usize, usize)>,
    old_lines: usize,
    new_lines: usize,
    body: String,
}

impl Hunk {
    fn is_open(&self) -> bool {
        self.start.is_some()
    }

    fn open(&mut self, old: usize, new: usize) {
        self.start.get_or_insert((old, new));
    }

    fn lines(&mut self, sign: char, lines: &[&[u8]]) {
        self.old_lines += if sign == '+' { 0 } else { lines.len() };
        self.new_lines += if sign == '-' { 0 } else { lines.len() };
        for line in lines {
            let remark = if line.ends_with(b"\n") { "" } else { "\\ No newline at end of file\n" };
            // Writing to a string cannot fail.
            let _ = write!(self.body, "{sign}{}\n{remark}", shown(line));
        }
    }

    fn close(&mut self, out: &mut String) {
        let hunk = std::mem::take(self);
        let Some((old, new)) = hunk.start else { return };
        // An empty side is positioned at the line before it.
        let position = |start: usize, lines: usize| if lines == 0 { start } else { start + 1 };
        let (old, new) = (position(old, hunk.old_lines), position(new, hunk.new_lines));
        let _ = write!(out, "@@ -{old},{} +{new},{} @@\n{}", hunk.old_lines, hunk.new_lines, hunk.body);
    }
}

fn shown(line: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str, diff: &str, hunks: &str, first: usize) {
        let expected = Difference {
            diff: diff.to_owned(),
            patch: format!("--- f\n+++ f\n{hunks}"),
            first_changed_line: Some(first),
        };
        assert_eq!(difference(before.as_bytes(), after.as_bytes(), "f"), expected);
    }

    fn numbered(range: std::ops::RangeInclusive<usize>) -> String {
        range.map(|n| format!("l{n}\n")).collect()
    }

    #[test]
    fn changed_lines_are_numbered_and_marked() {
        check(
            "one\ntwo\nthree\n",
            "one\n2\nthree\n",
            " 1 one\n-2 two\n+2 2\n 3 three",
            "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            2,
        );
        check("a\nb\nc\n", "a\nB\nC\n", " 1 a\n-2 b\n-3 c\n+2 B\n+3 C", "@@ -1,3 +1,3 @@\n a\n-b\n-c\n+B\n+C\n", 2);
        check("x", "", "-1 x", "@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n", 1);
        check("a\nc", "a\nc\n", " 1 a\n-2 c\n+2 c", "@@ -1,2 +1,2 @@\n a\n-c\n\\ No newline at end of file\n+c\n", 2);
        check(
            "a\nb\nc\nd\ne\nf\n",
            "a\ne\nb\nd\nq\ne\nf\n",
            " 1 a\n+2 e\n 2 b\n-3 c\n 4 d\n+5 q\n 5 e\n 6 f",
            "@@ -1,6 +1,7 @@\n a\n+e\n b\n-c\n d\n+q\n e\n f\n",
            2,
        );
    }

    #[test]
    fn lines_far_from_changes_are_omitted() {
        let before = numbered(1..=30);
        check(
            &before,
            &before.replace("l15\n", ""),
            "    ...\n 11 l11\n 12 l12\n 13 l13\n 14 l14\n-15 l15\n 16 l16\n 17 l17\n 18 l18\n 19 l19\n    ...",
            "@@ -11,9 +11,8 @@\n l11\n l12\n l13\n l14\n-l15\n l16\n l17\n l18\n l19\n",
            15,
        );
        check(
            &before,
            &format!("new\n{before}l31\n"),
            "+ 1 new\n  1 l1\n  2 l2\n  3 l3\n  4 l4\n    ...\n 27 l27\n 28 l28\n 29 l29\n 30 l30\n+32 l31",
            "@@ -1,4 +1,5 @@\n+new\n l1\n l2\n l3\n l4\n@@ -27,4 +28,5 @@\n l27\n l28\n l29\n l30\n+l31\n",
            1,
        );
    }

    #[test]
    fn a_gap_of_eight_lines_is_shown_a_gap_of_nine_is_not() {
        let before = numbered(1..=30);
        let diff = |other: &str| {
            let after = before.replace("l15\n", "X\n").replace(other, "Y\n");
            difference(before.as_bytes(), after.as_bytes(), "f")
        };
        assert_eq!(diff("l24\n").patch.matches("@@ -").count(), 1);
        assert_eq!(diff("l24\n").diff.matches("...").count(), 2);
        assert_eq!(diff("l25\n").patch.matches("@@ -").count(), 2);
        assert_eq!(diff("l25\n").diff.matches("...").count(), 3);
    }

    #[test]
    fn nine_terminated_lines_have_two_digit_numbers() {
        let before = numbered(1..=9);
        let shown = difference(before.as_bytes(), before.replace("l5", "L5").as_bytes(), "f").diff;
        assert!(shown.contains("\n- 5 l5\n+ 5 L5\n"), "{shown}");
    }
}
