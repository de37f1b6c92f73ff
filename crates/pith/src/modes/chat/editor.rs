//! The editor: a text of several lines with undo, folded pastes and an optional history.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pith_visible::is_order;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::Widget;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};

use super::history::History;

/// Pasted text beyond this is folded.
const MAX_PASTED_LINES: usize = 10;
const MAX_PASTED_CHARS: usize = 2000;

/// A text that is being written.
pub struct Editor {
    area: TextArea<'static>,
    history: History,
    /// Folded pastes: what stands for them, and their text.
    pastes: Vec<(String, String)>,
}

impl Editor {
    pub fn new(history: History) -> Self {
        Editor { area: area(String::new()), history, pastes: Vec::new() }
    }

    /// Creates an editor of one text, without a history.
    pub fn of(text: &str) -> Self {
        let mut editor = Editor::new(History::default());
        editor.set(text);
        editor
    }

    /// The text as it is shown, with pastes folded.
    pub fn shown(&self) -> String {
        self.area.lines().join("\n")
    }

    /// The text with everything that was pasted.
    pub fn text(&self) -> String {
        let mut text = self.shown();
        for (mark, pasted) in &self.pastes {
            text = text.replacen(mark, pasted, 1);
        }
        text
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Replaces the text; the cursor is at its end. Can be undone.
    pub fn set(&mut self, text: &str) {
        self.area.select_all();
        self.area.cut();
        self.area.insert_str(typable(text));
    }

    /// Takes the text out, and keeps it in the history.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.history.add(&text);
        self.clear();
        text
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.area = area(String::new());
        self.pastes.clear();
        self.history.leave();
    }

    /// Puts a text before the one that is there.
    pub fn give_back(&mut self, text: &str) {
        let rest = self.shown();
        let separator = if rest.is_empty() { "" } else { "\n" };
        self.set(&format!("{text}{separator}{rest}"));
    }

    /// Returns the text before the cursor in its line, if there is only one line or the cursor is in it.
    pub fn before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        self.area.lines()[cursor.0].chars().take(cursor.1).collect()
    }

    /// Whether the cursor is in the first line.
    pub fn is_on_first_line(&self) -> bool {
        self.area.cursor().0 == 0
    }

    /// Replaces so many characters before the cursor.
    pub fn complete(&mut self, n_chars: usize, text: &str) {
        for _ in 0..n_chars {
            self.area.delete_char();
        }
        self.area.insert_str(typable(text));
    }

    pub fn newline(&mut self) {
        self.area.insert_newline();
    }

    /// Removes a final backslash, which asks for another line; returns whether there was one.
    pub fn continues(&mut self) -> bool {
        let is_asked = self.before_cursor().ends_with('\\');
        if is_asked {
            self.area.delete_char();
        }
        // Inside a fence a line is never the last one.
        let n_fences = self.area.lines().iter().filter(|line| line.trim_start().starts_with("```")).count();
        is_asked || n_fences % 2 == 1
    }

    /// Inserts pasted text; a long one is folded.
    pub fn paste(&mut self, pasted: &str) {
        let text = typable(&pasted.replace("\r\n", "\n").replace('\r', "\n"));
        let (n_lines, n_chars) = (text.lines().count(), text.chars().count());
        if n_lines <= MAX_PASTED_LINES && n_chars <= MAX_PASTED_CHARS {
            self.area.insert_str(text);
            return;
        }
        let what = if n_lines > 1 { format!("+{n_lines} lines") } else { format!("+{n_chars} characters") };
        let mark = (1..)
            .map(|number| if number == 1 { format!("[paste {what}]") } else { format!("[paste {number} {what}]") })
            .find(|mark| self.pastes.iter().all(|(other, _)| other != mark))
            .expect("numbers do not end");
        self.area.insert_str(&mark);
        self.pastes.push((mark, text));
    }

    /// Takes a key that changes the text or moves in it; returns whether it did.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let area = &mut self.area;
        let has = |modifier| key.modifiers.contains(modifier);
        let (is_control, is_alt) = (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char(char) if is_control => match char {
                'a' => area.move_cursor(CursorMove::Head),
                'e' => area.move_cursor(CursorMove::End),
                'b' => area.move_cursor(CursorMove::Back),
                'f' => area.move_cursor(CursorMove::Forward),
                'd' => drop(area.delete_next_char()),
                'h' => drop(area.delete_char()),
                'w' => drop(area.delete_word()),
                'u' => drop(area.delete_line_by_head()),
                'k' => drop(area.delete_line_by_end()),
                'y' => drop(area.paste()),
                // Terminals send the same byte for all of them.
                '_' | '-' | '/' | '7' => drop(area.undo()),
                'p' => self.earlier(),
                'n' => self.later(),
                _ => return false,
            },
            KeyCode::Char(char) if is_alt => match char {
                'b' => area.move_cursor(CursorMove::WordBack),
                'f' => area.move_cursor(CursorMove::WordForward),
                'd' => drop(area.delete_next_word()),
                '_' | '-' | '/' => drop(area.redo()),
                _ => return false,
            },
            KeyCode::Char(char) => area.insert_char(char),
            KeyCode::Backspace if is_alt || is_control => drop(area.delete_word()),
            KeyCode::Backspace => drop(area.delete_char()),
            KeyCode::Delete => drop(area.delete_next_char()),
            KeyCode::Left if is_alt || is_control => area.move_cursor(CursorMove::WordBack),
            KeyCode::Right if is_alt || is_control => area.move_cursor(CursorMove::WordForward),
            KeyCode::Left => area.move_cursor(CursorMove::Back),
            KeyCode::Right => area.move_cursor(CursorMove::Forward),
            KeyCode::Home => area.move_cursor(CursorMove::Head),
            KeyCode::End => area.move_cursor(CursorMove::End),
            KeyCode::Up | KeyCode::Down => self.move_by_row(key.code == KeyCode::Up),
            _ => return false,
        }
        true
    }

    /// Moves up or down in the text, and beyond it through the history.
    fn move_by_row(&mut self, is_up: bool) {
        let before = self.area.screen_cursor().row;
        self.area.move_cursor(if is_up { CursorMove::Up } else { CursorMove::Down });
        if self.area.screen_cursor().row == before {
            if is_up { self.earlier() } else { self.later() }
        }
    }

    fn earlier(&mut self) {
        let shown = self.shown();
        if let Some(line) = self.history.previous(&shown).map(str::to_owned) {
            self.set(&line);
        }
    }

    fn later(&mut self) {
        if let Some(line) = self.history.next().map(str::to_owned) {
            self.set(&line);
        }
    }

    /// The number of rows for a width, at most `max`.
    pub fn height(&self, width: u16, max: u16) -> u16 {
        // The rows are known after drawing in that width. Drawing scrolls, so a copy is drawn.
        let mut probe = self.area.clone();
        let space = Rect::new(0, 0, width, 1);
        (&probe).render(space, &mut Buffer::empty(space));
        probe.move_cursor(CursorMove::Bottom);
        probe.move_cursor(CursorMove::End);
        let n_rows = u16::try_from(probe.screen_cursor().row).unwrap_or(u16::MAX).saturating_add(1);
        n_rows.clamp(1, max.max(1))
    }

    /// Draws the text and returns where the cursor is.
    pub fn draw(&self, space: Rect, buffer: &mut Buffer) -> Position {
        (&self.area).render(space, buffer);
        let cursor = self.area.screen_cursor();
        let row = cursor.row.saturating_sub(usize::from(self.area.scroll_offset().0));
        let clamp = |value: usize, size: u16| u16::try_from(value).unwrap_or(u16::MAX).min(size.saturating_sub(1));
        Position::new(space.x + clamp(cursor.col, space.width), space.y + clamp(row, space.height))
    }
}

/// Text that can stand in an editor: control characters were never typed.
fn typable(text: &str) -> String {
    text.chars().filter(|char| !is_order(*char)).collect()
}

fn area(text: String) -> TextArea<'static> {
    let mut area = TextArea::new(text.lines().map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    // The terminal's own cursor is used, which input methods and screen readers know.
    area.set_cursor_style(Style::default());
    area.set_cursor_line_style(Style::default());
    area.set_selection_style(Style::default());
    area.set_max_histories(200);
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_drawn_where_there_is_room() {
        let editor = Editor::of("one\ntwo\nthree");
        let n_rows = editor.height(10, 5);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, n_rows));
        let cursor = editor.draw(buffer.area, &mut buffer);
        assert_eq!(buffer, Buffer::with_lines(["one       ", "two       ", "three     "]));
        assert_eq!((cursor.x, cursor.y), (5, 2));
    }

    fn press(editor: &mut Editor, keys: &str) {
        for char in keys.chars() {
            editor.key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE));
        }
    }

    fn control(char: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)
    }

    #[test]
    fn a_long_paste_is_folded_and_sent_whole() {
        let mut editor = Editor::new(History::default());
        let pasted = "line\r\n".repeat(5000);
        press(&mut editor, "see ");
        editor.paste(&pasted);
        press(&mut editor, " and ");
        editor.paste(&pasted);
        assert_eq!(editor.shown(), "see [paste +5000 lines] and [paste 2 +5000 lines]");
        let text = "line\n".repeat(5000);
        assert_eq!(editor.take(), format!("see {text} and {text}"));
        assert!(editor.is_empty() && editor.text().is_empty());
        editor.paste("two\rlines\u{1b}[2J");
        assert_eq!(editor.shown(), "two\nlines[2J");
    }

    #[test]
    fn changes_can_be_undone() {
        let mut editor = Editor::of("one two");
        editor.key(control('w'));
        assert_eq!(editor.shown(), "one ");
        editor.key(control('7'));
        assert_eq!(editor.shown(), "one two");
        editor.key(control('u'));
        editor.key(control('y'));
        assert_eq!(editor.shown(), "one two");
    }

    #[test]
    fn queued_text_is_put_before_what_is_being_written() {
        let mut editor = Editor::of("new");
        editor.give_back("first\nsecond");
        assert_eq!(editor.shown(), "first\nsecond\nnew");
        assert_eq!(editor.height(40, 10), 3);
        assert_eq!(editor.height(40, 2), 2);
        assert_eq!(Editor::of("one two three").height(5, 10), 3);
    }

    #[test]
    fn a_backslash_or_an_open_fence_asks_for_another_line() {
        let mut editor = Editor::of("first\\");
        assert!(editor.continues());
        assert_eq!(editor.shown(), "first");
        assert!(!editor.continues());
        assert!(Editor::of("```rs\nlet x;").continues());
        assert!(!Editor::of("```\nx\n```").continues());
    }
}
