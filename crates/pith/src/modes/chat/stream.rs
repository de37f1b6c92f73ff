//! An answer while it is written: what cannot change any more becomes rows for the scrollback, the rest is shown live.
//!
//! Markdown is final at the end of a block, code at the end of a line. So whatever the length of the answer, only its
//! last block is rendered again when more of it arrives.

use pith_visible::visible;

use super::frames::tail;
use super::highlight::Highlighter;
use super::markdown;
use super::text::{Break, Piece, Row, wrap};
use super::theme;

/// A block that grows beyond this is cut: rendering it again for every piece would take ever longer.
const MAX_OPEN: usize = 16 << 10;

/// The end of it that is drawn meanwhile: a screen or more of text, in a time that no key waits for.
const MAX_LIVE: usize = 4 << 10;

/// The part of an answer that may still change.
#[derive(Default)]
pub struct AnswerStream {
    /// Text that is not in the scrollback.
    open: String,
    /// The start of the line in `open` that is not complete.
    line: usize,
    code: Option<OpenCode>,
    /// Whether anything of the answer is in the scrollback.
    has_begun: bool,
    /// Whether the beginning of the block is there as well.
    is_cut: bool,
    /// Whether the last piece ended with a carriage return, which may be half of a line's end.
    has_return: bool,
}

/// A fenced block of code.
struct OpenCode {
    /// What ends it: as many of the same character, or more.
    fence: String,
    highlighter: Highlighter,
}

impl AnswerStream {
    /// Takes the next piece; rows that are final are appended to `out`.
    pub fn push(&mut self, delta: &str, width: usize, out: &mut Vec<Row>) {
        // Made visible before it is Markdown, which takes some control characters for line ends.
        let whole = if std::mem::take(&mut self.has_return) { format!("\r{delta}") } else { delta.to_owned() };
        let text = whole.strip_suffix('\r').unwrap_or(&whole);
        self.has_return = text.len() < whole.len();
        self.open.push_str(&visible(text));
        while let Some(n_bytes) = self.open[self.line..].find('\n') {
            let end = self.line + n_bytes + 1;
            self.end_line(end, width, out);
        }
        if self.open.len() > MAX_OPEN {
            self.cut(width, out);
        }
    }

    /// Ends the answer.
    pub fn finish(&mut self, width: usize, out: &mut Vec<Row>) {
        if self.code.is_some() {
            if !self.open.is_empty() {
                self.open.push('\n');
                self.end_line(self.open.len(), width, out);
            }
            if self.code.is_some() {
                out.push(Row::new("```", theme::dim()));
            }
        } else {
            self.commit(self.open.len(), width, out);
        }
        *self = AnswerStream::default();
    }

    /// The rows that may still change.
    pub fn live(&self, width: usize) -> Vec<Row> {
        match &self.code {
            Some(_) if self.open.is_empty() => Vec::new(),
            Some(code) => {
                let pieces = code.highlighter.clone().line(&self.open);
                wrap(&pieces, width, Break::Anywhere, &[], &[])
            }
            None => {
                let end = tail(&self.open, MAX_LIVE);
                // A whole line, so that what it is can be told.
                let is_cut = end.len() < self.open.len();
                let start = end.find('\n').filter(|_| is_cut).map_or(0, |at| at + 1);
                let mut rows = markdown::render(&end[start..], width);
                if self.has_begun && !self.is_cut && !rows.is_empty() {
                    rows.insert(0, Row::default());
                }
                rows
            }
        }
    }

    /// Called with the end of a complete line.
    fn end_line(&mut self, end: usize, width: usize, out: &mut Vec<Row>) {
        let line = self.open[self.line..end].trim_end_matches(['\n', '\r']);
        if let Some(code) = &mut self.code {
            if closes(line, &code.fence) {
                out.push(Row::new("```", theme::dim()));
                self.code = None;
            } else {
                out.extend(wrap(&code.highlighter.line(line), width, Break::Anywhere, &[], &[]));
            }
            self.open.drain(..end);
            self.line = 0;
            return;
        }
        if let Some((fence, language)) = opened(line) {
            let (fence, language) = (fence.to_owned(), language.to_owned());
            self.commit(self.line, width, out);
            if std::mem::replace(&mut self.has_begun, true) {
                out.push(Row::default());
            }
            out.push(Row::new(&format!("```{language}"), theme::dim()));
            // What was before it is gone, so the line is at the start.
            let n_bytes = self.open.find('\n').map_or(self.open.len(), |at| at + 1);
            self.open.drain(..n_bytes);
            self.line = 0;
            self.code = Some(OpenCode { fence, highlighter: Highlighter::new(&language) });
            return;
        }
        // A block ends at a blank line, unless the next line is indented and may belong to a list.
        let begins_block = !line.is_empty() && !line.starts_with([' ', '\t']);
        if begins_block && self.open[..self.line].ends_with("\n\n") {
            let start = self.line;
            self.commit(start, width, out);
            self.line = end - start;
        } else {
            self.line = end;
        }
    }

    /// Renders the first bytes for good.
    fn commit(&mut self, n_bytes: usize, width: usize, out: &mut Vec<Row>) {
        let rows = markdown::render(&self.open[..n_bytes], width);
        if !rows.is_empty() {
            let is_new = !std::mem::take(&mut self.is_cut);
            if std::mem::replace(&mut self.has_begun, true) && is_new {
                out.push(Row::default());
            }
            out.extend(rows);
        }
        self.open.drain(..n_bytes);
        self.line = self.line.saturating_sub(n_bytes);
    }

    /// Shows the beginning of a very long block, or line of code, for good. A list goes on after a line of it, a
    /// paragraph after a word.
    fn cut(&mut self, width: usize, out: &mut Vec<Row>) {
        let after_last = |mark: char| self.open.rfind(mark).map(|at| at + 1).filter(|at| *at > MAX_OPEN / 2);
        let at = after_last('\n').or_else(|| after_last(' ')).unwrap_or(self.open.len());
        match &mut self.code {
            Some(code) => {
                out.extend(wrap(&code.highlighter.line(&self.open[..at]), width, Break::Anywhere, &[], &[]));
                self.open.drain(..at);
                self.line = 0;
            }
            None => {
                let (text, n_rows) = (self.open[..at].to_owned(), out.len());
                self.commit(at, width, out);
                // Marks without a word between them are shown as they are.
                if out.len() == n_rows {
                    out.extend(wrap(&[Piece::plain(&text)], width, Break::Anywhere, &[], &[]));
                }
                self.is_cut = true;
            }
        }
    }
}

/// Returns fence and language if the line opens a block of code.
fn opened(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = text.chars().next().filter(|char| *char == '`' || *char == '~')?;
    let language = text.trim_start_matches(mark);
    let fence = &text[..text.len() - language.len()];
    (fence.len() >= 3 && !language.contains('`')).then(|| (fence, language.trim()))
}

/// Returns whether the line ends the block of code.
fn closes(line: &str, fence: &str) -> bool {
    let text = line.trim();
    text.len() >= fence.len() && text.starts_with(fence) && text.chars().all(|char| fence.starts_with(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# A **b**\n\nSome words\nmore.\n\n- x\n- y\n\n  still y\n\n```sh\n# no **mark**\n\nls\n```\nend\r\n*i*\rx";

    fn streamed(pieces: &[&str]) -> Vec<String> {
        let (mut stream, mut out) = (AnswerStream::default(), Vec::new());
        pieces.iter().for_each(|piece| stream.push(piece, 40, &mut out));
        stream.finish(40, &mut out);
        out.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn any_cut_gives_the_same_rows() {
        let whole = streamed(&[TEXT]);
        let expected = [
            "A b",
            "",
            "Some words more.",
            "",
            "• x",
            "• y",
            "",
            "  still y",
            "",
            "```sh",
            "# no **mark**",
            "",
            "ls",
            "```",
            "",
            "end i␍x",
        ];
        assert_eq!(whole, expected);
        for at in 0..TEXT.len() {
            assert_eq!(streamed(&[&TEXT[..at], &TEXT[at..]]), whole, "cut at {at}");
        }
        let letters: Vec<&str> = TEXT.split_inclusive(|_| true).collect();
        assert_eq!(streamed(&letters), whole);
    }

    #[test]
    fn the_rest_is_live() {
        let (mut stream, mut out) = (AnswerStream::default(), Vec::new());
        stream.push("done\n\nnot **yet", 40, &mut out);
        assert_eq!(out.len(), 0);
        stream.push("**\n", 40, &mut out);
        assert_eq!(out.iter().map(Row::text).collect::<Vec<_>>(), ["done"]);
        assert_eq!(stream.live(40).iter().map(Row::text).collect::<Vec<_>>(), ["", "not yet"]);
    }

    #[test]
    fn memory_is_bounded_whatever_the_answer() {
        for piece in ["word ", "x", "\u{301}", "日本", "| a ", "> ", "```", "`"] {
            let (mut stream, mut out) = (AnswerStream::default(), Vec::new());
            let chunk = piece.repeat(1000);
            for _ in 0..200 {
                stream.push(&chunk, 80, &mut out);
                assert!(stream.open.len() <= MAX_OPEN + chunk.len(), "{piece}");
            }
            stream.finish(80, &mut out);
            let shown: usize = out.iter().map(|row| row.text().len()).sum();
            assert!(shown > 0 && stream.open.is_empty(), "{piece}");
        }
    }

    #[test]
    fn a_long_list_stays_a_list() {
        let (mut stream, mut out) = (AnswerStream::default(), Vec::new());
        for _ in 0..5000 {
            stream.push("- an **item**\n", 80, &mut out);
        }
        stream.finish(80, &mut out);
        assert!(out.len() == 5000 && out.iter().all(|row| row.text() == "• an item"), "{}", out.len());
    }

    #[test]
    fn code_of_many_lines_goes_to_the_scrollback_line_by_line() {
        let (mut stream, mut out) = (AnswerStream::default(), Vec::new());
        stream.push("```\n", 80, &mut out);
        for number in 0..100_000 {
            stream.push(&format!("line {number}\n"), 80, &mut out);
        }
        assert_eq!((out.len(), stream.open.len()), (100_001, 0));
    }
}
