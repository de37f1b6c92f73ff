//! Text for a terminal: pieces with a style, rows of pieces, and wrapping by words.
//!
//! A piece is made visible when it is created, so nothing in a row is ever obeyed by the terminal.

use std::rc::Rc;

use pith_visible::visible;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::picture::Drawing;

/// Columns of a tab.
const TAB: &str = "    ";

/// Text of one style, without control characters and line breaks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    text: String,
    pub style: Style,
    /// Where the text leads to; visible as well.
    link: Option<Rc<str>>,
    /// A picture, in the place of text.
    drawing: Option<Rc<Drawing>>,
}

impl Piece {
    /// Creates a piece; control characters are made visible, tabs become spaces.
    pub fn new(text: &str, style: Style) -> Self {
        let mut text = visible(text).into_owned();
        if text.contains(['\n', '\t']) {
            text = text.replace('\n', " ").replace('\t', TAB);
        }
        Piece { text, style, ..Piece::default() }
    }

    /// Creates a piece without a style.
    pub fn plain(text: &str) -> Self {
        Piece::new(text, Style::default())
    }

    /// Adds where the text leads to.
    pub fn linked(mut self, target: Option<&str>) -> Self {
        self.link = target.map(|target| visible(target).replace(['\n', '\t', ' '], "").into());
        self
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    pub fn drawing(&self) -> Option<&Drawing> {
        self.drawing.as_deref()
    }

    /// Like this piece, with a part of its text.
    fn part(&self, text: &str) -> Piece {
        Piece { text: text.to_owned(), style: self.style, link: self.link.clone(), drawing: None }
    }
}

/// One row of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<Piece>);

impl Row {
    /// Creates a row of one piece.
    pub fn new(text: &str, style: Style) -> Self {
        Row(vec![Piece::new(text, style)])
    }

    /// Creates a row without a style.
    pub fn plain(text: &str) -> Self {
        Row::new(text, Style::default())
    }

    /// Creates a row for the scrollback that is as high as a picture.
    pub fn drawing(drawing: Drawing) -> Self {
        Row(vec![Piece { drawing: Some(Rc::new(drawing)), ..Piece::default() }])
    }

    /// Appends a piece.
    pub fn with(mut self, text: &str, style: Style) -> Self {
        self.0.push(Piece::new(text, style));
        self
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(|piece| piece.text.width()).sum()
    }

    /// The row without its styles.
    pub fn text(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Shortens the row to a number of columns; an ellipsis shows that something is missing.
    pub fn cut(self, width: usize) -> Row {
        if self.width() <= width {
            return self;
        }
        let mut room = width.saturating_sub(1);
        let mut pieces = Vec::new();
        for piece in self.0 {
            let fitting = fitting(&piece.text, room);
            let is_whole = fitting == piece.text.len();
            room -= piece.text[..fitting].width().min(room);
            pieces.push(piece.part(&piece.text[..fitting]));
            if !is_whole {
                break;
            }
        }
        let style = pieces.last().map(|piece| piece.style).unwrap_or_default();
        pieces.push(Piece::new("…", style));
        Row(pieces)
    }

    /// The row as a widget draws it.
    pub fn to_line(&self) -> Line<'_> {
        Line::from(self.0.iter().map(|piece| Span::styled(piece.text.as_str(), piece.style)).collect::<Vec<_>>())
    }
}

/// Returns how many bytes of the text fit into a number of columns.
fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (at, char) in text.char_indices() {
        used += char.width().unwrap_or(0);
        if used > width {
            return at;
        }
    }
    text.len()
}

/// How lines that are too long continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Between words, for prose.
    Words,
    /// Anywhere, for code and output: every space counts.
    Anywhere,
}

/// Breaks pieces into rows. The first row begins with `first`, further ones with `rest`.
pub fn wrap(pieces: &[Piece], width: usize, how: Break, first: &[Piece], rest: &[Piece]) -> Vec<Row> {
    let mut wrapped = Wrapped::new(width, first, rest);
    match how {
        Break::Anywhere => pieces.iter().for_each(|piece| wrapped.push_broken((piece, &piece.text))),
        Break::Words => wrapped.push_words(pieces),
    }
    wrapped.rows.push(wrapped.row);
    wrapped.rows
}

/// A part of a piece's text.
type Part<'a> = (&'a Piece, &'a str);

struct Wrapped<'a> {
    rows: Vec<Row>,
    row: Row,
    rest: &'a [Piece],
    /// Columns that there are, that are used, and that the beginning of the row takes.
    width: usize,
    used: usize,
    indent: usize,
}

impl<'a> Wrapped<'a> {
    fn new(width: usize, first: &[Piece], rest: &'a [Piece]) -> Self {
        let row = Row(first.to_vec());
        let used = row.width();
        Wrapped { rows: Vec::new(), row, rest, width: width.max(1), used, indent: used }
    }

    /// Collects words, which may consist of several pieces, with the blanks before them.
    fn push_words(&mut self, pieces: &[Piece]) {
        let (mut blanks, mut word): (Vec<Part<'_>>, Vec<Part<'_>>) = (Vec::new(), Vec::new());
        for piece in pieces {
            let mut text = piece.text.as_str();
            while !text.is_empty() {
                let n_blanks = text.len() - text.trim_start_matches(' ').len();
                if n_blanks > 0 {
                    if !word.is_empty() {
                        self.push_word(&std::mem::take(&mut blanks), &std::mem::take(&mut word));
                    }
                    blanks.push((piece, &text[..n_blanks]));
                    text = &text[n_blanks..];
                } else {
                    let end = text.find(' ').unwrap_or(text.len());
                    word.push((piece, &text[..end]));
                    text = &text[end..];
                }
            }
        }
        self.push_word(&blanks, &word);
    }

    fn push_word(&mut self, blanks: &[Part<'_>], word: &[Part<'_>]) {
        let (n_blanks, n_columns) = (columns(blanks), columns(word));
        if self.used + n_blanks + n_columns <= self.width {
            blanks.iter().chain(word).for_each(|part| self.append(*part));
            return;
        }
        let room = self.width.saturating_sub(self.rest.iter().map(|piece| piece.text.width()).sum());
        if n_columns > room {
            // Longer than any row.
            if self.used > self.indent && self.used + n_blanks < self.width {
                blanks.iter().for_each(|part| self.append(*part));
            }
            word.iter().for_each(|part| self.push_broken(*part));
            return;
        }
        if self.used > self.indent {
            self.next_row();
        }
        word.iter().for_each(|part| self.append(*part));
    }

    fn push_broken(&mut self, (piece, mut text): Part<'_>) {
        while !text.is_empty() {
            let mut n_bytes = fitting(text, self.width.saturating_sub(self.used));
            if n_bytes == 0 {
                if self.used > self.indent {
                    self.next_row();
                    continue;
                }
                // Wider than the whole row: shown anyway.
                n_bytes = text.chars().next().map_or(0, char::len_utf8);
            }
            self.append((piece, &text[..n_bytes]));
            text = &text[n_bytes..];
        }
    }

    fn append(&mut self, (piece, text): Part<'_>) {
        let is_first = self.used <= self.indent;
        self.used += text.width();
        match self.row.0.last_mut() {
            Some(last) if !is_first && last.style == piece.style && last.link == piece.link => last.text.push_str(text),
            _ => self.row.0.push(piece.part(text)),
        }
    }

    fn next_row(&mut self) {
        let next = Row(self.rest.to_vec());
        (self.used, self.indent) = (next.width(), next.width());
        self.rows.push(std::mem::replace(&mut self.row, next));
    }
}

fn columns(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|(_, text)| text.width()).sum()
}

#[cfg(test)]
mod tests {
    use ratatui::style::Modifier;

    use super::*;

    fn words(text: &str, width: usize) -> Vec<String> {
        wrap(&[Piece::plain(text)], width, Break::Words, &[], &[]).iter().map(Row::text).collect()
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(words("one two three", 8), ["one two", "three"]);
        assert_eq!(words("one two", 7), ["one two"]);
        assert_eq!(words("", 7), [""]);
        assert_eq!(words("a incomprehensibilities b", 8), ["a incomp", "rehensib", "ilities", "b"]);
        assert_eq!(words("日本語 日本", 6), ["日本語", "日本"]);
        assert_eq!(words("日本", 1), ["日", "本"]);
        assert_eq!(words("x  y", 80), ["x  y"]);
    }

    #[test]
    fn a_word_of_several_styles_stays_whole() {
        let pieces =
            [Piece::plain("see "), Piece::new("bold", Style::new().add_modifier(Modifier::BOLD)), Piece::plain(", ok")];
        let rows = wrap(&pieces, 8, Break::Words, &[], &[Piece::plain("  ")]);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), ["see", "  bold,", "  ok"]);
    }

    #[test]
    fn code_keeps_its_blanks() {
        let rows = wrap(&[Piece::plain("    a  b")], 6, Break::Anywhere, &[], &[]);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), ["    a ", " b"]);
    }

    #[test]
    fn nothing_in_a_piece_is_obeyed() {
        let piece = Piece::new("\x1b]0;t\x07\n\u{9b}2J\t", Style::new().red()).linked(Some("http://x/\x1b\\ \n"));
        assert_eq!(piece.text(), "␛]0;t␇ \\u{9b}2J    ");
        assert_eq!(piece.link(), Some("http://x/␛\\"));
    }

    #[test]
    fn a_row_can_be_cut() {
        let row = Row::plain("one ").with("日本語", Style::new().dim());
        assert_eq!(row.clone().cut(7).text(), "one 日…");
        assert_eq!(row.clone().cut(10).text(), "one 日本語");
        assert_eq!(row.cut(3).text(), "on…");
    }
}
