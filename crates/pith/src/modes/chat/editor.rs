//! The line editor: history, several lines, completion. It blocks, so it runs on a thread of its own and is asked for
//! one line at a time.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::mpsc as blocking;
use std::sync::{Arc, PoisonError, RwLock};

use pith_visible::{is_order, visible};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Config, Context, Editor, Helper, KeyCode, KeyEvent, Modifiers};
use tokio::sync::mpsc;

const PROMPT: &str = "› ";
const COLOURED_PROMPT: &str = "\x1b[1;36m› \x1b[0m";
const MAX_HISTORY: usize = 1000;

/// The result of asking for a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Asks the editor thread for lines.
pub struct LineEditor {
    /// Each message asks for one line that begins with it; closing the channel ends the thread.
    wanted: blocking::Sender<String>,
    typed: mpsc::UnboundedReceiver<Typed>,
    names: CompletionNames,
}

/// Names that can be completed after a slash; the chat sets them.
#[derive(Clone, Default)]
pub struct CompletionNames(Arc<RwLock<Vec<String>>>);

impl CompletionNames {
    pub fn set(&self, names: Vec<String>) {
        // A name with control characters cannot be typed.
        let typable = names.into_iter().filter(|word| !word.contains(is_order)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = typable;
    }

    fn starting_with(&self, start: &str) -> Vec<String> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter(|word| word.starts_with(start)).cloned().collect()
    }
}

impl LineEditor {
    /// Starts the thread. The history is stored in a file of the user.
    pub fn start(history: PathBuf, has_colour: bool) -> anyhow::Result<LineEditor> {
        let names = CompletionNames::default();
        let mut editor = editor(names.clone(), has_colour)?;
        let (wanted, requests) = blocking::channel::<String>();
        let (sender, typed) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("editor".to_owned()).spawn(move || {
            // Without a readable history the editor works as well.
            let _ = editor.load_history(&history);
            while let Ok(draft) = requests.recv() {
                let typed = read(&mut editor, &draft);
                if matches!(&typed, Typed::Line(line) if !line.trim().is_empty()) {
                    let _ = editor.append_history(&history);
                }
                if sender.send(typed).is_err() {
                    break;
                }
            }
        })?;
        Ok(LineEditor { wanted, typed, names })
    }

    /// Waits for the next line, which begins with `draft`. After a cancelled wait, the next call returns the line of
    /// the earlier one.
    pub async fn next(&mut self, draft: String) -> Typed {
        if self.wanted.send(visible(&draft).into_owned()).is_err() {
            return Typed::End;
        }
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// The names to complete.
    pub fn names(&self) -> &CompletionNames {
        &self.names
    }
}

fn editor(names: CompletionNames, has_colour: bool) -> anyhow::Result<Editor<EditorHelper, FileHistory>> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_space(true)
        .auto_add_history(true)
        .bracketed_paste(true)
        .completion_type(rustyline::CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(EditorHelper { names, has_colour }));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    // Ctrl-J stays Enter: the terminal sends it for a line typed while the agent worked.
    Ok(editor)
}

fn read(editor: &mut Editor<EditorHelper, FileHistory>, draft: &str) -> Typed {
    match editor.readline_with_initial(PROMPT, (draft, "")) {
        Ok(line) => Typed::Line(joined(&line)),
        Err(ReadlineError::Interrupted) => Typed::Interrupted,
        Err(_) => Typed::End,
    }
}

/// Removes the backslashes that continued lines.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Whether more lines follow: after a backslash, and inside a fence.
fn is_open(text: &str) -> bool {
    let n_fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
    text.ends_with('\\') || n_fences % 2 == 1
}

struct EditorHelper {
    names: CompletionNames,
    has_colour: bool,
}

impl Helper for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_open(context.input()) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Highlighter for EditorHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.has_colour { COLOURED_PROMPT.into() } else { prompt.into() }
    }
}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
            return Ok((at, Vec::new()));
        }
        let pair = |word: String| Pair { display: format!("/{word}"), replacement: format!("/{word} ") };
        Ok((0, self.names.starting_with(&typed[1..]).into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_have_several_lines() {
        assert!(is_open("first\\") && is_open("```rs\nlet x;") && !is_open("```\nx\n```") && !is_open("plain"));
        assert_eq!(joined("one\\\ntwo"), "one\ntwo");
    }
}
