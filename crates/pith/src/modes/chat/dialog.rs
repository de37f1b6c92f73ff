//! A question of an extension: asked in the place of the editor, answered with keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};

use super::editor::Editor;
use super::picker::{Choice, Picked, Picker};
use super::text::{Break, Piece, Row, wrap};
use super::theme;

/// The rows that a choice takes beside what it is about: the question, five answers, the help and a margin.
const MIN_CHOICE_ROWS: usize = 8;

/// An open question.
pub struct Dialog {
    pub id: String,
    title: String,
    message: String,
    pub field: Field,
}

/// How it is answered.
pub enum Field {
    Choice(Picker<String>),
    /// `y` or `n` and Enter: a letter typed for something else is no consent.
    Confirm(Editor),
    Line(Editor),
    /// A longer text; also in the user's editor.
    Text(Editor),
}

impl Dialog {
    /// Creates the dialog of a question; `None` if it is none. While the user is writing something else, no choice is
    /// selected at first, so that an Enter meant for that text chooses nothing.
    pub fn new(request: UiRequest, is_writing: bool) -> Option<Dialog> {
        let id = request.id;
        let (title, message, field) = match request.method {
            UiMethod::Select { title, options, .. } => {
                let choice = |option: String| Choice { label: option.clone(), detail: String::new(), value: option };
                let choices: Vec<_> = options.into_iter().map(choice).collect();
                // The first line is the question; what it is about stands below it.
                let (title, message) = title.split_once('\n').unwrap_or((&title, ""));
                let picker = Picker::new(&format!("? {title}"), choices, (!is_writing).then_some(0));
                (title.to_owned(), message.trim_matches('\n').to_owned(), Field::Choice(picker))
            }
            UiMethod::Confirm { title, message, .. } => (title, message, Field::Confirm(Editor::of(""))),
            UiMethod::Input { title, placeholder, .. } => {
                (title, placeholder.unwrap_or_default(), Field::Line(Editor::of("")))
            }
            UiMethod::Editor { title, prefill } => {
                (title, String::new(), Field::Text(Editor::of(&prefill.unwrap_or_default())))
            }
            _ => return None,
        };
        Some(Dialog { id, title, message, field })
    }

    /// Takes a key; returns the answer if it is one.
    pub fn key(&mut self, key: KeyEvent) -> Option<UiAnswer> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc || key.code == KeyCode::Char('c') && is_control {
            return Some(UiAnswer::Cancelled);
        }
        let is_newline = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT)
            || key.code == KeyCode::Char('j') && is_control;
        match &mut self.field {
            Field::Choice(picker) => match picker.key(key) {
                Picked::Chosen(value) => Some(UiAnswer::Value(value)),
                Picked::Cancelled => Some(UiAnswer::Cancelled),
                Picked::Open => None,
            },
            Field::Confirm(editor) if key.code == KeyCode::Enter => {
                let answer = confirmed(&editor.text());
                if answer.is_none() {
                    editor.clear();
                }
                answer
            }
            Field::Text(editor) if is_newline && matches!(key.code, KeyCode::Enter | KeyCode::Char('j')) => {
                editor.newline();
                None
            }
            Field::Line(editor) | Field::Text(editor) if key.code == KeyCode::Enter => {
                Some(UiAnswer::Value(editor.text()))
            }
            Field::Confirm(editor) | Field::Line(editor) | Field::Text(editor) => {
                editor.key(key);
                None
            }
        }
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        match &mut self.field {
            Field::Choice(picker) => picker.paste(text),
            Field::Confirm(_) => {}
            Field::Line(editor) | Field::Text(editor) => editor.paste(text),
        }
    }

    /// Takes a line of a terminal without keys; `None` if it is no answer.
    pub fn line(&self, line: &str) -> Option<UiAnswer> {
        match &self.field {
            Field::Choice(picker) => picker.named(line).map(UiAnswer::Value),
            Field::Confirm(_) => confirmed(line),
            Field::Line(_) | Field::Text(_) => Some(UiAnswer::Value(line.to_owned())),
        }
    }

    /// The question, above the field.
    pub fn rows(&self, width: usize, max_rows: usize) -> Vec<Row> {
        if let Field::Choice(picker) = &self.field {
            let mut rows = self.subject(width, max_rows.saturating_sub(MIN_CHOICE_ROWS));
            rows.extend(picker.rows(width, max_rows.saturating_sub(2 + rows.len())));
            return rows;
        }
        let mut rows = wrap(
            &[Piece::new("? ", theme::accent()), Piece::new(&self.title, theme::bold())],
            width,
            Break::Words,
            &[],
            &[],
        );
        for line in self.message.lines() {
            rows.extend(wrap(&[Piece::plain(line)], width, Break::Words, &[], &[]));
        }
        rows.truncate(max_rows.saturating_sub(2).max(1));
        let help = match &self.field {
            Field::Confirm(_) => "[y/n] and Enter, Esc for no answer",
            Field::Text(_) => "Enter answers, Alt-Enter starts a new line, Esc for no answer",
            Field::Choice(_) | Field::Line(_) => "Enter answers, Esc for no answer",
        };
        rows.push(Row::new(help, theme::dim()).cut(width));
        rows
    }

    /// What a choice is about, in at most so many rows. What does not fit is not left out in silence.
    fn subject(&self, width: usize, max_rows: usize) -> Vec<Row> {
        let lines = self.message.lines();
        let mut rows: Vec<Row> =
            lines.flat_map(|line| wrap(&[Piece::plain(line)], width, Break::Anywhere, &[], &[])).collect();
        let n_rows = rows.len();
        if n_rows > max_rows.max(1) {
            rows.truncate(max_rows.saturating_sub(1));
            let left_out = format!("… and {} more lines", n_rows - rows.len());
            rows.push(Row::new(&left_out, theme::accent()).cut(width));
        }
        rows
    }

    /// The question in lines, for a terminal that cannot redraw.
    pub fn lines(&self) -> Vec<String> {
        if let Field::Choice(picker) = &self.field {
            return self.message.lines().map(str::to_owned).chain(picker.lines()).collect();
        }
        let help = if matches!(self.field, Field::Confirm(_)) { "[y/n]" } else { "" };
        let message = if self.message.is_empty() { Vec::new() } else { vec![self.message.clone()] };
        std::iter::once(format!("? {} {help}", self.title)).chain(message).collect()
    }

    /// What is being written, if anything is.
    pub fn editor(&self) -> Option<&Editor> {
        match &self.field {
            Field::Choice(_) => None,
            Field::Confirm(editor) | Field::Line(editor) | Field::Text(editor) => Some(editor),
        }
    }
}

fn confirmed(line: &str) -> Option<UiAnswer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(UiAnswer::Confirmed(true)),
        "n" | "no" => Some(UiAnswer::Confirmed(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(method: UiMethod) -> Dialog {
        Dialog::new(UiRequest::new("u1", method), false).expect("a question")
    }

    fn typed(dialog: &mut Dialog, keys: &str) -> Option<UiAnswer> {
        let code = |char| if char == '\n' { KeyCode::Enter } else { KeyCode::Char(char) };
        keys.chars().find_map(|char| dialog.key(KeyEvent::new(code(char), KeyModifiers::NONE)))
    }

    #[test]
    fn consent_is_given_with_a_whole_word() {
        let confirm = || {
            dialog(UiMethod::Confirm { title: "Sure?".to_owned(), message: String::new(), timeout: None, page: None })
        };
        assert_eq!(typed(&mut confirm(), "y\n"), Some(UiAnswer::Confirmed(true)));
        assert_eq!(typed(&mut confirm(), "No\n"), Some(UiAnswer::Confirmed(false)));
        // A sentence that was being typed is none, nor is its Enter.
        assert_eq!(typed(&mut confirm(), "my\n\n"), None);
        assert_eq!(typed(&mut confirm(), "what\ny\n"), Some(UiAnswer::Confirmed(true)));
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(confirm().key(escape), Some(UiAnswer::Cancelled));
    }

    #[test]
    fn a_text_is_typed() {
        let mut input = dialog(UiMethod::Input {
            title: "Who".to_owned(),
            placeholder: Some("somebody".to_owned()),
            timeout: None,
        });
        assert_eq!(typed(&mut input, "me\n"), Some(UiAnswer::Value("me".to_owned())));
        let mut text = dialog(UiMethod::Editor { title: "Write".to_owned(), prefill: Some("a".to_owned()) });
        text.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
        assert_eq!(typed(&mut text, "b\n"), Some(UiAnswer::Value("a\nb".to_owned())));
    }
}
