//! The line a person types: history, several lines, completion. The editor
//! blocks, so it lives on a thread of its own and is asked for one line at a time.

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

/// What came of asking for a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Asks the editor's thread.
pub struct Lines {
    /// Each message asks for one line, which begins with it; closing it ends the thread.
    wanted: blocking::Sender<String>,
    typed: mpsc::UnboundedReceiver<Typed>,
    words: Words,
}

/// Names that can be completed after a slash; the chat fills them in.
#[derive(Clone, Default)]
pub struct Words(Arc<RwLock<Vec<String>>>);

impl Words {
    pub fn set(&self, words: Vec<String>) {
        // A name that a terminal would obey cannot be typed either.
        let typable = words.into_iter().filter(|word| !word.contains(is_order)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = typable;
    }

    fn starting_with(&self, start: &str) -> Vec<String> {
        let words = self.0.read().unwrap_or_else(PoisonError::into_inner);
        words.iter().filter(|word| word.starts_with(start)).cloned().collect()
    }
}

impl Lines {
    /// Starts the thread. History is kept in a file the person's own.
    pub fn start(history: PathBuf, has_colour: bool) -> anyhow::Result<Lines> {
        let words = Words::default();
        let mut editor = editor(words.clone(), has_colour)?;
        let (wanted, requests) = blocking::channel::<String>();
        let (sender, typed) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("editor".to_owned()).spawn(move || {
            // A history that cannot be read or written is only a history less.
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
        Ok(Lines { wanted, typed, words })
    }

    /// The next line, which begins with `draft`. Asking again after giving up on an answer gets that answer.
    pub async fn next(&mut self, draft: String) -> Typed {
        if self.wanted.send(visible(&draft).into_owned()).is_err() {
            return Typed::End;
        }
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// The names to complete.
    pub fn words(&self) -> &Words {
        &self.words
    }
}

fn editor(words: Words, has_colour: bool) -> anyhow::Result<Editor<Typist, FileHistory>> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_space(true)
        .auto_add_history(true)
        .bracketed_paste(true)
        .completion_type(rustyline::CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Typist { words, has_colour }));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    // Ctrl-J stays Enter: that is how the terminal hands over a line typed while the agent worked.
    Ok(editor)
}

fn read(editor: &mut Editor<Typist, FileHistory>, draft: &str) -> Typed {
    match editor.readline_with_initial(PROMPT, (draft, "")) {
        Ok(line) => Typed::Line(joined(&line)),
        Err(ReadlineError::Interrupted) => Typed::Interrupted,
        Err(_) => Typed::End,
    }
}

/// Lines that were continued with a backslash, without it.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Whether more lines are to come: after a backslash, and inside a fence.
fn is_open(text: &str) -> bool {
    let n_fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
    text.ends_with('\\') || n_fences % 2 == 1
}

struct Typist {
    words: Words,
    has_colour: bool,
}

impl Helper for Typist {}

impl Hinter for Typist {
    type Hint = String;
}

impl Validator for Typist {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_open(context.input()) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Highlighter for Typist {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.has_colour { COLOURED_PROMPT.into() } else { prompt.into() }
    }
}

impl Completer for Typist {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
            return Ok((at, Vec::new()));
        }
        let pair = |word: String| Pair { display: format!("/{word}"), replacement: format!("/{word} ") };
        Ok((0, self.words.starting_with(&typed[1..]).into_iter().map(pair).collect()))
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
