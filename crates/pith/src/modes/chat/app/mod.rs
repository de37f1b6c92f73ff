//! What the chat shows and knows. Frames and keys change it; rows for the scrollback and actions come out of it. It
//! touches no terminal, so tests need none.

mod answers;
#[cfg(test)]
mod approval_tests;
mod approvals;
mod commands;
mod conversation;
mod folds;
mod footer;
mod keys;
mod places;
mod session;
#[cfg(test)]
mod tests;
mod tools;
mod undo;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Instant;

use pith_protocol::host::UiAnswer;
use pith_protocol::permissions::OptionId;
use pith_tools::image::Rules;
use serde_json::{Value, json};

use self::answers::Expected;
pub use self::approvals::decision;
use self::folds::Folds;
pub use self::footer::Footer;
use self::tools::RunningTool;
use super::approval::Approval;
use super::dialog::Dialog;
use super::editor::Editor;
use super::menu::Menu;
use super::picker::Picker;
use super::picture::Protocol;
use super::stream::AnswerStream;
use super::text::{Break, Piece, Row, wrap};
use super::theme;
use crate::modes::client::Failure;
use crate::sessions::in_use_advice;

/// What the loop does for the chat.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Sends a command; it has an id.
    Send(Value),
    /// Answers a question of an extension.
    Answer {
        id: String,
        answer: UiAnswer,
    },
    /// Answers the question whether a call may run.
    Decide {
        id: String,
        option: OptionId,
        /// What the model is told of a refusal.
        message: Option<String>,
    },
    /// Opens a text in the user's editor; the result answers the question.
    Edit {
        id: String,
        text: String,
    },
    Title(String),
    /// Stops the process until the shell continues it.
    Suspend,
    /// Draws everything again.
    Redraw,
    Leave,
}

/// What the chat is started with.
pub struct Setup {
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub rules: Rules,
    pub editor: Editor,
    /// The columns and rows of the screen.
    pub size: (u16, u16),
    /// Whether keys are read; otherwise lines are.
    pub has_keys: bool,
    /// Whether a longer text is written in an editor of the user's.
    pub has_editor: bool,
    /// How the terminal draws pictures, if it can.
    pub pictures: Option<Protocol>,
    pub opening: Opening,
}

/// What happens first.
#[derive(Default)]
pub struct Opening {
    /// The first prompt.
    pub prompt: Option<Value>,
    /// Texts to show.
    pub problems: Vec<String>,
    /// Whether earlier sessions are offered.
    pub wants_list: bool,
    /// Sent as steering when the first tool is called; then the chat ends with the work.
    pub tour: Option<String>,
}

/// What takes the place of the editor.
pub enum Overlay {
    Picker(Picker<places::Place>),
    Dialog(Box<Dialog>),
    Approval(Box<Approval>),
}

/// Lines of an extension.
pub struct WidgetLines {
    pub lines: Vec<String>,
    /// Whether they stand below the input line, not above it.
    pub is_below: bool,
}

/// What the session is doing.
pub struct Work {
    pub since: Instant,
    pub doing: String,
}

/// A pause before another try.
pub struct Retry {
    pub until: Instant,
    /// Why, in a few words.
    pub cause: String,
    pub attempt: u32,
    pub max_attempts: u32,
}

impl Retry {
    /// What is going on.
    pub fn text(&self, now: Instant) -> String {
        let left = self.until.saturating_duration_since(now).as_secs_f64().ceil();
        format!("{}, trying again in {left} s ({}/{})", self.cause, self.attempt, self.max_attempts)
    }
}

/// The state of the chat.
pub struct App {
    pub setup: Setup,
    pub editor: Editor,
    pub menu: Option<Menu>,
    pub overlay: Option<Overlay>,
    /// Questions that wait for the one that is shown.
    questions: VecDeque<Overlay>,
    pub footer: Footer,
    pub work: Option<Work>,
    pub retry: Option<Retry>,
    /// Why and how often the request was sent again, until that is over.
    tried_again: Option<(String, u32)>,
    pub stream: AnswerStream,
    /// What the model thinks.
    pub thinking: String,
    pub tools: Vec<RunningTool>,
    folds: Folds,
    pub steering: Vec<String>,
    pub follow_up: Vec<String>,
    pub statuses: BTreeMap<String, String>,
    pub widgets: BTreeMap<String, WidgetLines>,
    /// Commands to complete, with their explanations.
    commands: Vec<(String, String)>,
    /// Commands of the session, known after the first answer.
    session_commands: Vec<(String, String)>,
    /// Why there is no last answer; told when the work is over.
    failure: Option<Failure>,
    /// What was sent and is not answered.
    expected: HashMap<u64, Expected>,
    n_sent: u64,
    /// Finished rows, for the scrollback.
    rows: Vec<Row>,
    actions: Vec<Action>,
    /// Whether the user was told how to leave.
    has_hinted: bool,
    /// Whether the last rows are of a tool call, from which an answer keeps a distance.
    is_after_tool: bool,
    /// When a key was pressed last that was for the text.
    wrote_at: Option<Instant>,
    pub now: Instant,
}

impl App {
    pub fn new(mut setup: Setup) -> Self {
        let editor = std::mem::replace(&mut setup.editor, Editor::of(""));
        let mut app = App {
            footer: Footer::new(&setup.cwd, &setup.home),
            setup,
            editor,
            menu: None,
            overlay: None,
            questions: VecDeque::new(),
            work: None,
            retry: None,
            tried_again: None,
            stream: AnswerStream::default(),
            thinking: String::new(),
            tools: Vec::new(),
            folds: Folds::default(),
            steering: Vec::new(),
            follow_up: Vec::new(),
            statuses: BTreeMap::new(),
            widgets: BTreeMap::new(),
            commands: commands::own(),
            session_commands: Vec::new(),
            failure: None,
            expected: HashMap::new(),
            n_sent: 0,
            rows: Vec::new(),
            actions: Vec::new(),
            has_hinted: false,
            is_after_tool: false,
            wrote_at: None,
            now: Instant::now(),
        };
        app.send(json!({"type": "get_state"}), Expected::Greeting);
        app
    }

    /// The columns of the screen.
    pub fn width(&self) -> usize {
        usize::from(self.setup.size.0).max(1)
    }

    /// The columns and rows that can be drawn: one row less than the screen has, or the terminal would scroll meanwhile.
    pub fn room(&self) -> (u16, u16) {
        (self.setup.size.0.max(1), self.setup.size.1.saturating_sub(1).max(4))
    }

    /// Takes the rows that are finished.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Takes the first of the rows that are finished.
    pub fn take_first_rows(&mut self, most: usize) -> Vec<Row> {
        let rest = self.rows.split_off(most.min(self.rows.len()));
        std::mem::replace(&mut self.rows, rest)
    }

    /// How many finished rows wait.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Takes what is to be done.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Whether something on the screen changes with time.
    pub fn is_moving(&self) -> bool {
        self.work.is_some() || self.retry.is_some() || !self.tools.is_empty()
    }

    /// Takes a line that something else in the process wrote to stderr.
    pub fn printed(&mut self, line: &str) {
        self.say_styled(line, theme::dim());
    }

    /// Sends a command and remembers what to do with its answer.
    fn send(&mut self, mut command: Value, expected: Expected) {
        self.n_sent += 1;
        command["id"] = self.n_sent.into();
        self.expected.insert(self.n_sent, expected);
        self.actions.push(Action::Send(command));
    }

    /// Shows a text in the scrollback.
    fn say(&mut self, text: &str) {
        self.say_styled(text, Default::default());
    }

    fn say_styled(&mut self, text: &str, style: ratatui::style::Style) {
        self.end_answer();
        for line in text.trim_end_matches('\n').split('\n') {
            let indent = " ".repeat(line.len() - line.trim_start_matches(' ').len());
            let piece = Piece::new(&line[indent.len()..], style);
            let indent = [Piece::plain(&indent)];
            self.rows.extend(wrap(&[piece], self.width(), Break::Words, &indent, &indent));
        }
    }

    /// Shows a name and, beside it, what it means.
    fn say_term(&mut self, name: &str, meaning: &str) {
        const COLUMN: usize = 26;
        self.end_answer();
        let column = COLUMN.min(self.width() / 2);
        let name = format!("  {name:<column$} ");
        let rest = [Piece::plain(&" ".repeat(column + 3))];
        self.rows.extend(wrap(&[Piece::plain(meaning)], self.width(), Break::Words, &[Piece::plain(&name)], &rest));
    }

    fn note(&mut self, text: &str) {
        self.say_styled(&format!("· {text}"), theme::dim());
    }

    fn complain(&mut self, text: &str) {
        self.say_styled(&format!("✗ {}", in_use_advice(text)), theme::bad());
    }

    /// What the user is told when the chat is over.
    pub fn farewell(&mut self) -> Vec<Row> {
        self.end_answer();
        if let Some(text) = self.footer.farewell() {
            self.rows.push(Row::default());
            self.say_styled(&text, theme::dim());
        }
        self.take_rows()
    }
}
