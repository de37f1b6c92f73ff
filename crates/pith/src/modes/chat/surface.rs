//! The last rows of the terminal, drawn in place; finished rows go above them into the scrollback, which stays the
//! user's.
//!
//! ratatui's inline viewport has one height for its life and asks the terminal where the cursor is, which takes a
//! terminal that answers. Here rows are drawn relative to the cursor: the height follows the content, and nothing is
//! asked. Only rows that have changed are written.

use std::fmt::Write as _;
use std::io::{self, Write};

use pith_visible::visible;
use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::style::{Color, Modifier, Style};

use super::picture::Drawing;
use super::text::Row;
use super::view::Drawn;

/// Between these the terminal shows nothing, so that no half-drawn screen is seen. Others ignore them.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_REST: &str = "\x1b[K";
const SAVE_CURSOR: &str = "\x1b7";
const RESTORE_CURSOR: &str = "\x1b8";
const PLAIN: &str = "\x1b[0m";

/// What the terminal can do.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    pub has_colour: bool,
    pub has_links: bool,
}

/// The rows on the screen.
pub struct Surface<W> {
    out: W,
    looks: Looks,
    /// The rows as they were written, with their columns.
    shown: Vec<(String, usize)>,
    /// Where the terminal's cursor is, from the first row.
    cursor: (u16, u16),
    /// Whether the rows have to be erased before they are drawn again.
    is_resized: bool,
}

impl<W: Write> Surface<W> {
    pub fn new(out: W, looks: Looks) -> Self {
        Surface { out, looks, shown: Vec::new(), cursor: (0, 0), is_resized: false }
    }

    /// Puts finished rows into the scrollback and draws the rest below them.
    pub fn draw(&mut self, finished: &[Row], drawn: &Drawn) -> io::Result<()> {
        let rows: Vec<(String, usize)> =
            (0..drawn.buffer.area.height).map(|row| encode_cells(&drawn.buffer, row, self.looks)).collect();
        let cursor = drawn.cursor.map(|position| (position.x, position.y));
        if finished.is_empty() && !self.is_resized && rows == self.shown && cursor == Some(self.cursor) {
            return Ok(());
        }
        let mut text = BEGIN.to_owned();
        self.go_to_top(&mut text);
        if std::mem::take(&mut self.is_resized) || !finished.is_empty() {
            text.push_str(CLEAR_BELOW);
            self.shown.clear();
            for row in finished {
                text.push_str(&encode_row(row, self.looks));
                text.push_str("\r\n");
            }
        }
        let n_rows = rows.len();
        for (at, row) in rows.iter().enumerate() {
            if self.shown.get(at) != Some(row) {
                text.push_str(&row.0);
                text.push_str(CLEAR_REST);
            }
            if at + 1 < n_rows {
                text.push_str("\r\n");
            }
        }
        if self.shown.len() > n_rows {
            // The row below is there, so this does not scroll.
            text.push_str("\r\n");
            text.push_str(CLEAR_BELOW);
            text.push_str("\x1b[A");
        }
        let last = u16::try_from(n_rows.saturating_sub(1)).unwrap_or(u16::MAX);
        self.cursor = match cursor {
            Some((column, row)) => {
                text.push('\r');
                move_by(&mut text, last.saturating_sub(row), 'A');
                move_by(&mut text, column, 'C');
                text.push_str(SHOW_CURSOR);
                (column, row)
            }
            None => {
                text.push('\r');
                (0, last)
            }
        };
        text.push_str(END);
        self.shown = rows;
        self.write(&text)
    }

    /// Erases the rows; the cursor is where they began.
    pub fn clear(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.go_to_top(&mut text);
        text.push_str(CLEAR_BELOW);
        text.push_str(SHOW_CURSOR);
        self.forget();
        self.write(&text)
    }

    /// Called when somebody else has used the terminal: the next rows are drawn where the cursor is.
    pub fn forget(&mut self) {
        self.shown.clear();
        self.cursor = (0, 0);
        self.is_resized = false;
    }

    /// Called when the terminal has another width. Rows that are too long now take several of its rows.
    pub fn resized(&mut self, columns: u16) {
        let columns = usize::from(columns.max(1));
        let n_rows = |width: usize| width.div_ceil(columns).max(1);
        let above: usize = self.shown.iter().take(usize::from(self.cursor.1)).map(|(_, width)| n_rows(*width)).sum();
        let within = usize::from(self.cursor.0) / columns;
        self.cursor.1 = u16::try_from(above + within).unwrap_or(u16::MAX);
        // Rows that are only written over stay one line to a terminal that has wrapped them: it would join them when it
        // becomes wider, and the way up would lead into what stands above.
        self.is_resized = true;
    }

    /// Sets the title of the window.
    pub fn set_title(&mut self, title: &str) -> io::Result<()> {
        let title = visible(title).replace(['\n', '\t'], " ");
        self.write(&format!("\x1b]0;{title}\x07"))
    }

    fn go_to_top(&self, text: &mut String) {
        text.push('\r');
        move_by(text, self.cursor.1, 'A');
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

fn move_by(text: &mut String, n_places: u16, direction: char) {
    if n_places > 0 {
        write!(text, "\x1b[{n_places}{direction}").expect("writing to a string");
    }
}

/// Returns a row of cells as it is written, and its columns.
fn encode_cells(buffer: &Buffer, row: u16, looks: Looks) -> (String, usize) {
    let mut style = Style { fg: Some(Color::Reset), bg: Some(Color::Reset), ..Style::default() };
    let mut text = String::new();
    let (mut end, mut width) = (0, 0);
    let mut column = 0;
    while column < buffer.area.width {
        let Some(cell) = buffer.cell((column, row)) else { break };
        // Cells covered by a wide character are not written.
        let n_columns = cell.symbol().cell_width().max(1);
        column += n_columns;
        let own = Style { fg: Some(cell.fg), bg: Some(cell.bg), add_modifier: cell.modifier, ..Style::default() };
        if own != style {
            text.push_str(&sequence(own, looks));
            style = own;
        }
        text.push_str(cell.symbol());
        if cell.symbol() != " " {
            (end, width) = (text.len(), usize::from(column));
        }
    }
    // Blanks at the end are not written: a terminal that becomes narrower would wrap them.
    text.truncate(end);
    if text.contains('\x1b') {
        text.push_str(PLAIN);
    }
    (text, width)
}

/// Returns a row of text as it is written.
pub fn encode_row(row: &Row, looks: Looks) -> String {
    let mut text = String::new();
    for piece in &row.0 {
        if let Some(drawing) = piece.drawing() {
            draw_picture(&mut text, drawing);
        }
        let is_styled = piece.style != Style::default();
        let link = piece.link().filter(|link| looks.has_links && is_safe(link));
        if let Some(link) = link {
            write!(text, "\x1b]8;;{link}\x1b\\").expect("writing to a string");
        }
        if is_styled {
            text.push_str(&sequence(piece.style, looks));
        }
        text.push_str(piece.text());
        if is_styled {
            text.push_str(PLAIN);
        }
        if link.is_some() {
            text.push_str("\x1b]8;;\x1b\\");
        }
    }
    text
}

/// Writes a picture into rows that are there before it, so that nothing scrolls while it is drawn; the cursor ends in the
/// last of them.
fn draw_picture(text: &mut String, drawing: &Drawing) {
    let n_below = u16::try_from(drawing.n_rows.saturating_sub(1)).unwrap_or(u16::MAX);
    text.push_str(&"\r\n".repeat(usize::from(n_below)));
    move_by(text, n_below, 'A');
    text.push_str(SAVE_CURSOR);
    text.push_str(&drawing.sequence);
    text.push_str(RESTORE_CURSOR);
    move_by(text, n_below, 'B');
}

/// Whether a terminal may be told to open it.
fn is_safe(link: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|start| link.starts_with(start)) && link.is_ascii()
}

/// The control sequence of a style.
fn sequence(style: Style, looks: Looks) -> String {
    let mut codes = vec!["0".to_owned()];
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    codes.extend(
        modifiers.iter().filter(|(one, _)| style.add_modifier.contains(*one)).map(|(_, code)| (*code).to_owned()),
    );
    if looks.has_colour {
        codes.extend(style.fg.and_then(|colour| colour_code(colour, 30)));
        codes.extend(style.bg.and_then(|colour| colour_code(colour, 40)));
    }
    format!("\x1b[{}m", codes.join(";"))
}

/// The code of a colour of the palette; `None` for the terminal's own.
fn colour_code(colour: Color, base: u8) -> Option<String> {
    let index = match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        _ => return None,
    };
    Some((base + index).to_string())
}

#[cfg(test)]
mod tests {
    use ratatui::layout::{Position, Rect};
    use ratatui::text::Line;
    use ratatui::widgets::Widget;

    use super::super::text::Piece;
    use super::super::theme;
    use super::*;

    const LOOKS: Looks = Looks { has_colour: true, has_links: true };

    fn drawn(lines: &[&str], cursor: (u16, u16)) -> Drawn {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, u16::try_from(lines.len()).expect("few")));
        for (at, line) in (0..).zip(lines) {
            Line::raw(*line).render(Rect::new(0, at, 10, 1), &mut buffer);
        }
        Drawn { buffer, cursor: Some(Position::new(cursor.0, cursor.1)) }
    }

    fn written(surface: &mut Surface<Vec<u8>>, finished: &[Row], drawn: &Drawn) -> String {
        surface.out.clear();
        surface.draw(finished, drawn).expect("written");
        let text = String::from_utf8(std::mem::take(&mut surface.out)).expect("text");
        text.replace(BEGIN, "").replace(END, "").replace(SHOW_CURSOR, "")
    }

    #[test]
    fn only_what_has_changed_is_written() {
        let mut surface = Surface::new(Vec::new(), LOOKS);
        let first = written(&mut surface, &[], &drawn(&["one", "two"], (1, 1)));
        assert_eq!(first, "\rone\x1b[K\r\ntwo\x1b[K\r\x1b[1C");
        assert_eq!(written(&mut surface, &[], &drawn(&["one", "two"], (1, 1))), "");
        assert_eq!(written(&mut surface, &[], &drawn(&["one", "2"], (1, 1))), "\r\x1b[1A\r\n2\x1b[K\r\x1b[1C");
        // A finished row moves everything down.
        let more = written(&mut surface, &[Row::plain("done")], &drawn(&["one", "2"], (0, 0)));
        assert_eq!(more, "\r\x1b[1A\x1b[Jdone\r\none\x1b[K\r\n2\x1b[K\r\x1b[1A");
        // Fewer rows: the rest is erased.
        assert_eq!(written(&mut surface, &[], &drawn(&["one"], (0, 0))), "\r\r\n\x1b[J\x1b[A\r");
    }

    #[test]
    fn rows_that_a_narrow_terminal_wraps_are_found_again() {
        let mut surface = Surface::new(Vec::new(), LOOKS);
        written(&mut surface, &[], &drawn(&["0123456789", "two", "x"], (1, 2)));
        surface.resized(4);
        // Three rows of the first one, one of the second.
        assert_eq!(surface.cursor.1, 4);
        // They are erased, so that the terminal forgets that it has wrapped them.
        let again = written(&mut surface, &[], &drawn(&["0123", "two", "x"], (1, 2)));
        assert!(again.starts_with("\r\x1b[4A\x1b[J0123"), "{again:?}");
    }

    #[test]
    fn links_and_colours_are_the_only_sequences() {
        let link = Row(vec![Piece::new("x\x1b[2J", theme::link()).linked(Some("https://a/\x07b"))]);
        assert_eq!(encode_row(&link, LOOKS), "\x1b[0;4;34mx␛[2J\x1b[0m");
        let link = Row(vec![Piece::plain("x").linked(Some("https://a/b"))]);
        assert_eq!(encode_row(&link, LOOKS), "\x1b]8;;https://a/b\x1b\\x\x1b]8;;\x1b\\");
        let red = Row::new("x", theme::bad());
        assert_eq!(encode_row(&red, Looks { has_colour: false, has_links: false }), "\x1b[0mx\x1b[0m");
        let picture = Row::drawing(Drawing { sequence: "PICTURE".to_owned(), n_rows: 3 });
        assert_eq!(encode_row(&picture, LOOKS), "\r\n\r\n\x1b[2A\x1b7PICTURE\x1b8\x1b[2B");
        let file = Row(vec![Piece::plain("x").linked(Some("file:///etc/passwd"))]);
        assert_eq!(encode_row(&file, LOOKS), "x");
    }
}
