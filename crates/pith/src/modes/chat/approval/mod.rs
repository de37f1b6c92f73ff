//! The question whether a tool call may run: what would happen, and one key for each answer.
//!
//! A key means the same in every question, and counts only while the question shows it; Enter allows nothing.

mod subject;

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pith_protocol::permissions::{OptionId, PermissionOption};
use serde_json::{Map, Value};

use self::subject::Subject;
use super::editor::Editor;
use super::text::{Break, Piece, Row, wrap};
use super::theme;

/// The right end of the title, from when on keys are answers.
const WAITING: &str = "waiting for you";

/// What the session asks.
#[derive(Clone, Debug)]
pub struct Asked {
    pub id: String,
    pub tool_call_id: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub cwd: String,
    /// Why it is asked.
    pub reason: String,
    pub options: Vec<PermissionOption>,
}

/// An open question.
pub struct Approval {
    asked: Asked,
    subject: Subject,
    /// When it came.
    pub since: Instant,
    /// Whether it stands on the screen. Until then no key is an answer.
    pub is_seen: bool,
    /// Whether all of it has been printed above.
    is_printed: bool,
    /// What the model is told of a refusal, while it is written.
    because: Option<Editor>,
    /// The body as it was wrapped last, with the columns: a file may have many lines.
    wrapped: RefCell<(usize, Vec<Row>)>,
}

/// What a key does.
#[derive(Debug, PartialEq, Eq)]
pub enum Pressed {
    Nothing,
    /// All of the question is to be printed.
    Everything,
    Decided(OptionId, Option<String>),
}

/// The keys of the answers, in the order in which they are shown.
const KEYS: [(char, OptionId); 6] = [
    ('y', OptionId::Once),
    ('s', OptionId::Session),
    ('p', OptionId::Project),
    ('a', OptionId::Similar),
    ('n', OptionId::Deny),
    ('x', OptionId::Stop),
];

impl Approval {
    pub fn new(asked: Asked, home: &Path, now: Instant) -> Approval {
        let subject = Subject::of(&asked, home);
        let wrapped = RefCell::new((0, Vec::new()));
        Approval { asked, subject, since: now, is_seen: false, is_printed: false, because: None, wrapped }
    }

    pub fn id(&self) -> &str {
        &self.asked.id
    }

    /// The call that waits. A connection is one of a call that already runs.
    pub fn tool_call(&self) -> &str {
        &self.asked.tool_call_id
    }

    pub fn is_connection(&self) -> bool {
        self.asked.tool == "network"
    }

    /// The reason that is being written, if one is.
    pub fn editor(&self) -> Option<&Editor> {
        self.because.as_ref()
    }

    /// Takes a key on a screen of this size.
    pub fn key(&mut self, key: KeyEvent, size: (u16, u16)) -> Pressed {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Char('c') && is_control {
            return Pressed::Decided(OptionId::Stop, None);
        }
        if let Some(editor) = &mut self.because {
            match key.code {
                KeyCode::Esc => self.because = None,
                KeyCode::Enter if key.modifiers.is_empty() => {
                    let said = Some(editor.text().trim().to_owned()).filter(|said| !said.is_empty());
                    return Pressed::Decided(OptionId::Deny, said);
                }
                KeyCode::Enter => editor.newline(),
                _ => drop(editor.key(key)),
            }
            return Pressed::Nothing;
        }
        match key.code {
            KeyCode::Esc => Pressed::Decided(OptionId::Deny, None),
            KeyCode::Char(letter) if key.modifiers.is_empty() => self.letter(letter, size),
            _ => Pressed::Nothing,
        }
    }

    fn letter(&mut self, letter: char, size: (u16, u16)) -> Pressed {
        match letter {
            'e' => {
                self.because = Some(Editor::of(""));
                Pressed::Nothing
            }
            'v' => {
                self.is_printed = true;
                Pressed::Everything
            }
            letter => match KEYS.iter().find(|(key, _)| *key == letter) {
                Some((_, option)) if self.is_offered(*option, size) => Pressed::Decided(*option, None),
                _ => Pressed::Nothing,
            },
        }
    }

    /// Takes a line of a terminal without keys: a letter, and after `e` the reason.
    pub fn line(&mut self, line: &str) -> Option<Pressed> {
        let line = line.trim();
        if let Some(reason) = line.strip_prefix("e ") {
            return Some(Pressed::Decided(OptionId::Deny, Some(reason.trim().to_owned())));
        }
        let mut letters = line.chars();
        let letter = letters.next().filter(|letter| letters.next().is_none() && *letter != 'e')?;
        // Such a terminal shows all of it.
        Some(self.letter(letter, (u16::MAX, u16::MAX))).filter(|pressed| *pressed != Pressed::Nothing)
    }

    /// Takes pasted text; `false` if nothing is being written.
    pub fn paste(&mut self, text: &str) -> bool {
        self.because.as_mut().map(|editor| editor.paste(text)).is_some()
    }

    /// Whether an answer can be given: it is one of the question's, and the rule that it makes can be read.
    fn is_offered(&self, id: OptionId, size: (u16, u16)) -> bool {
        let is_shown = || self.is_printed || !self.is_brief(usize::from(size.0), usize::from(size.1));
        let makes_rule = matches!(id, OptionId::Session | OptionId::Project | OptionId::Similar);
        self.asked.options.iter().any(|option| option.id == id) && (!makes_rule || is_shown())
    }

    /// Whether the rules have no room beside the call.
    fn is_brief(&self, width: usize, max_rows: usize) -> bool {
        self.choices(width).len() + 3 > max_rows.max(1)
    }

    /// The question in at most so many rows.
    pub fn rows(&self, width: usize, max_rows: usize) -> Vec<Row> {
        let keys = if self.because.is_some() {
            vec![Row::new("no, because … Enter refuses, Esc goes back", theme::dim()).cut(width)]
        } else if self.is_brief(width, max_rows) {
            wrap(
                &[Piece::plain("y once · n no · e no, because … · x no and stop · v everything")],
                width,
                Break::Words,
                &[],
                &[],
            )
        } else {
            self.choices(width)
        };
        let mut rows = vec![self.title_row(width)];
        let room = max_rows.saturating_sub(rows.len() + keys.len()).max(1);
        let reason = Row::new(&format!("  {}", self.asked.reason), theme::dim());
        let body = self.body(width, room);
        let has_room = body.len() < room;
        rows.extend(body);
        rows.extend(has_room.then(|| reason.cut(width)));
        rows.extend(keys);
        rows
    }

    /// All of the question, for the scrollback.
    pub fn everything(&self, width: usize) -> Vec<Row> {
        let mut rows = vec![Row::new(&format!("─ {}", self.subject.title), theme::bold()).cut(width)];
        rows.extend(self.subject.all.iter().flat_map(|(line, style)| wrapped(line, *style, width)));
        rows.extend(wrapped(&self.asked.reason, theme::dim(), width));
        rows.extend(self.choices(width));
        rows.push(Row::new("─", theme::bold()));
        rows
    }

    fn title_row(&self, width: usize) -> Row {
        let row = Row::new("? ", theme::accent()).with(&self.subject.title, theme::bold());
        let row = row.with(&format!("   {}", self.subject.remark), theme::dim());
        let room = width.saturating_sub(WAITING.len() + 2);
        let row = row.cut(room.max(width / 2));
        let gap = width.saturating_sub(row.width() + WAITING.len());
        let waiting = if self.is_seen { WAITING } else { "" };
        row.with(&" ".repeat(gap), Default::default()).with(waiting, theme::accent()).cut(width)
    }

    /// What is judged, in at most so many rows: its beginning and its end, and how much is between.
    fn body(&self, width: usize, max_rows: usize) -> Vec<Row> {
        let mut cached = self.wrapped.borrow_mut();
        if cached.0 != width || cached.1.is_empty() {
            let rows = self.subject.lines.iter().flat_map(|(line, style)| wrapped(line, *style, width)).collect();
            *cached = (width, rows);
        }
        let all = &cached.1;
        if all.len() <= max_rows {
            return all.clone();
        }
        let n_shown = max_rows.saturating_sub(1);
        let n_head = n_shown.div_ceil(2);
        let n_tail = n_shown - n_head;
        let left_out = format!("  … {} more lines, v shows everything", all.len() - n_shown);
        let mut rows = all[..n_head].to_vec();
        rows.push(Row::new(&left_out, theme::accent()).cut(width));
        rows.extend_from_slice(&all[all.len() - n_tail..]);
        rows
    }

    /// The keys and what they do.
    fn choices(&self, width: usize) -> Vec<Row> {
        let rule = |id| self.asked.options.iter().find(|option| option.id == id).map(|option| option.rule.as_deref());
        let allow = KEYS.iter().filter_map(|(key, id)| {
            let rule = rule(*id)?;
            let text = match id {
                OptionId::Once => "once".to_owned(),
                OptionId::Session => format!("{}, this session", rule.map_or("this very call".to_owned(), spoken)),
                OptionId::Project | OptionId::Similar => format!("always {}", rule.unwrap_or("this")),
                OptionId::Deny | OptionId::Stop => return None,
            };
            Some(format!("{key} {text}"))
        });
        let refuse = ["n no", "e no, because …", "x no and stop", "v everything"].map(str::to_owned);
        let mut rows = fitted(&allow.collect::<Vec<_>>(), width);
        rows.extend(fitted(&refuse, width));
        rows
    }
}

/// What a rule allows, in words where they are shorter.
fn spoken(rule: &str) -> String {
    let directory = rule.strip_prefix("edit(").and_then(|rule| rule.strip_suffix("**)"));
    directory.map_or_else(|| rule.to_owned(), |directory| format!("edits in {directory}"))
}

fn wrapped(line: &str, style: ratatui::style::Style, width: usize) -> Vec<Row> {
    let indent = [Piece::plain("  ")];
    wrap(&[Piece::new(line, style)], width, Break::Anywhere, &indent, &indent)
}

/// Choices in rows, none of them broken if it fits into one.
fn fitted(choices: &[String], width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for choice in choices {
        let piece = Row::plain(choice).width();
        match rows.last_mut() {
            Some(row) if row.width() + 3 + piece <= width => {
                *row = row.clone().with(&format!(" · {choice}"), Default::default());
            }
            _ => {
                let indent = [Piece::plain("  ")];
                rows.extend(wrap(&[Piece::plain(choice)], width, Break::Anywhere, &indent, &indent));
            }
        }
    }
    rows
}
