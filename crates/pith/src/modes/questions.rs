//! Questions of extensions to the user at the terminal before there is a session: asked one at a time, answered with a line, dropped when the
//! extension no longer waits.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use rustix::termios::QueueSelector;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Longer than any line a terminal delivers at once.
const MAX_LINE: usize = 8 << 10;

/// The open questions; the first one is on the screen.
pub struct Questions {
    waiting: VecDeque<UiRequest>,
    /// Shows a text on the screen.
    show: Box<dyn Fn(Shown) + Send>,
    is_shown: bool,
    /// While a question is open, Ctrl-C means no answer.
    interrupts: Option<Signal>,
    /// The editor in which a longer text is being written.
    editor: Option<EditorProcess>,
}

/// What the screen is told.
pub enum Shown {
    /// A question, with the cursor after it.
    Question(String),
    /// It was answered with a line.
    Done,
    /// It was not answered.
    Declined,
    /// The extension no longer waits.
    Withdrawn,
}

/// A text in the user's editor.
struct EditorProcess {
    file: PathBuf,
    /// Killed when dropped.
    program: Child,
}

impl Questions {
    /// Creates an empty list.
    pub fn new(show: impl Fn(Shown) + Send + 'static) -> Self {
        let (waiting, interrupts, editor) = Default::default();
        Questions { waiting, show: Box::new(show), is_shown: false, interrupts, editor }
    }

    /// Adds a question.
    pub fn ask(&mut self, request: UiRequest) {
        self.waiting.push_back(request);
    }

    /// Called when the extension has stopped waiting.
    pub fn withdraw(&mut self, id: &str) {
        let Some(at) = self.waiting.iter().position(|request| request.id == id) else { return };
        if at == 0 && self.is_shown {
            (self.show)(Shown::Withdrawn);
        }
        self.forget(at);
    }

    /// Waits for the next answer; for ever while there is no question. Cancel safe.
    pub async fn next(&mut self) -> (String, UiAnswer) {
        loop {
            self.show_first();
            let Some(request) = self.waiting.front() else { return std::future::pending().await };
            let is_long = matches!(request.method, UiMethod::Editor { .. });
            if is_long && self.editor.is_none() {
                self.editor = EditorProcess::start(&request.method).unwrap_or_default();
            }
            let interrupts = self
                .interrupts
                .get_or_insert_with(|| signal(SignalKind::interrupt()).expect("the process may watch its own signals"));
            let entered = tokio::select! {
                biased;
                _ = interrupts.recv() => Entered::Nothing,
                entered = entered(&mut self.editor) => entered,
            };
            if let Some(answered) = self.enter(entered) {
                return answered;
            }
        }
    }

    fn enter(&mut self, entered: Entered) -> Option<(String, UiAnswer)> {
        let request = self.waiting.front()?;
        let shown = if matches!(entered, Entered::Nothing) { Shown::Declined } else { Shown::Done };
        let answer = match entered {
            Entered::Nothing => UiAnswer::Cancelled,
            Entered::Text(text) => UiAnswer::Value(text),
            Entered::Line(line) => match read(&request.method, line.trim_end_matches(['\n', '\r'])) {
                Some(answer) => answer,
                None => {
                    // The question is shown again.
                    self.is_shown = false;
                    return None;
                }
            },
        };
        let id = request.id.clone();
        if self.is_shown {
            (self.show)(shown);
        }
        self.forget(0);
        Some((id, answer))
    }

    fn show_first(&mut self) {
        if let Some(request) = self.waiting.front()
            && !std::mem::replace(&mut self.is_shown, true)
        {
            let text = text(&request.method);
            // What was typed before the question appeared is no consent.
            let _ = rustix::termios::tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
            (self.show)(Shown::Question(text));
        }
    }

    fn forget(&mut self, at: usize) {
        self.waiting.remove(at);
        if at == 0 {
            self.is_shown = false;
            self.editor = None;
            self.interrupts = None;
        }
    }
}

enum Entered {
    Line(String),
    /// The whole text from an editor.
    Text(String),
    Nothing,
}

/// Waits for the user's input, from the editor or as a line.
async fn entered(editor: &mut Option<EditorProcess>) -> Entered {
    match editor {
        Some(editor) => match editor.program.wait().await {
            Ok(status) => editor.read(status).map_or(Entered::Nothing, Entered::Text),
            Err(_) => Entered::Nothing,
        },
        None => line().await.ok().flatten().map_or(Entered::Nothing, Entered::Line),
    }
}

/// Reads a line from the terminal; `None` at its end. The terminal delivers whole lines, so cancelling the read loses
/// nothing.
async fn line() -> io::Result<Option<String>> {
    // Opened separately, because standard input itself must stay blocking.
    let terminal = pipe::OpenOptions::new().unchecked(true).open_receiver("/dev/tty")?;
    let mut buffer = vec![0; MAX_LINE];
    loop {
        terminal.readable().await?;
        match terminal.try_read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n_bytes) => return Ok(Some(String::from_utf8_lossy(&buffer[..n_bytes]).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

impl EditorProcess {
    /// Opens the user's editor; `None` if none is configured.
    fn start(method: &UiMethod) -> io::Result<Option<EditorProcess>> {
        let UiMethod::Editor { prefill, .. } = method else { return Ok(None) };
        let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
        let Some(editor) = named.filter(|editor| !editor.trim().is_empty()) else { return Ok(None) };
        let file = std::env::temp_dir().join(format!("pith-{}.md", pith_store::new_session_id()));
        std::fs::write(&file, prefill.as_deref().unwrap_or_default())?;
        // The variable may hold a command with arguments.
        let script = format!("{editor} \"$1\"");
        let program = Command::new("sh").args(["-c", &script, "sh"]).arg(&file).kill_on_drop(true).spawn()?;
        Ok(Some(EditorProcess { file, program }))
    }

    fn read(&self, status: ExitStatus) -> Option<String> {
        status.success().then(|| std::fs::read_to_string(&self.file).ok()).flatten()
    }
}

impl Drop for EditorProcess {
    fn drop(&mut self) {
        // A file that cannot be removed is left to the system's clean-up.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// The question as the user reads it.
fn text(method: &UiMethod) -> String {
    match method {
        UiMethod::Select { title, options, .. } => {
            let lines = options.iter().enumerate().map(|(at, option)| format!("  {}  {option}\n", at + 1));
            format!("? {title}\n{}Number or text, Ctrl-C for none: ", lines.collect::<String>())
        }
        UiMethod::Confirm { title, message, .. } if message.is_empty() => format!("? {title} [y/n] "),
        UiMethod::Confirm { title, message, .. } => format!("? {title}\n{message}\n[y/n] "),
        UiMethod::Input { title, placeholder: Some(example), .. } => format!("? {title} ({example}): "),
        UiMethod::Input { title, .. } => format!("? {title}: "),
        UiMethod::Editor { title, prefill: Some(prefill) } if !prefill.is_empty() => {
            format!("? {title}\n{prefill}\n: ")
        }
        UiMethod::Editor { title, .. } => format!("? {title}: "),
        UiMethod::Cancel { .. }
        | UiMethod::Notify { .. }
        | UiMethod::SetStatus { .. }
        | UiMethod::SetWidget { .. }
        | UiMethod::SetTitle { .. }
        | UiMethod::SetEditorText { .. }
        | UiMethod::Form { .. } => String::new(),
    }
}

/// The answer a line gives; `None` if it gives none.
fn read(method: &UiMethod, line: &str) -> Option<UiAnswer> {
    let word = line.trim();
    match method {
        UiMethod::Select { options, .. } => {
            let numbered = word.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
            let equal = || options.iter().find(|option| option.trim().eq_ignore_ascii_case(word));
            let begins = |option: &&String| option.to_lowercase().starts_with(&word.to_lowercase());
            let mut beginning = options.iter().filter(begins);
            let only = || match (beginning.next(), beginning.next()) {
                (Some(option), None) if !word.is_empty() => Some(option),
                _ => None,
            };
            numbered.or_else(equal).or_else(only).cloned().map(UiAnswer::Value)
        }
        UiMethod::Confirm { .. } => match word.to_lowercase().as_str() {
            "y" | "yes" => Some(UiAnswer::Confirmed(true)),
            "n" | "no" => Some(UiAnswer::Confirmed(false)),
            _ => None,
        },
        _ => Some(UiAnswer::Value(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_an_answer() {
        let options = ["Allow", "Allow always", "Block"].map(str::to_owned).to_vec();
        let select = UiMethod::Select { title: "Run it?".to_owned(), options, timeout: None };
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(read(&select, line), expected.map(|value| UiAnswer::Value(value.to_owned())), "{line}");
        };
        check("2", Some("Allow always"));
        check("allow", Some("Allow"));
        check("b", Some("Block"));
        check("all", None);
        check("0", None);
        check("4", None);
        check("", None);
        let confirm =
            UiMethod::Confirm { title: "Sure?".to_owned(), message: String::new(), timeout: None, page: None };
        assert_eq!(read(&confirm, " Yes "), Some(UiAnswer::Confirmed(true)));
        assert_eq!(read(&confirm, "n"), Some(UiAnswer::Confirmed(false)));
        assert_eq!(read(&confirm, "perhaps"), None);
        let input = UiMethod::Input { title: "Name".to_owned(), placeholder: None, timeout: None };
        assert_eq!(read(&input, ""), Some(UiAnswer::Value(String::new())));
    }

    #[test]
    fn questions_are_answered_in_order_and_can_be_withdrawn() {
        let mut questions = Questions::new(|_| {});
        let line = |line: &str| Entered::Line(line.to_owned());
        for id in ["a", "b", "c"] {
            let method = UiMethod::Confirm { title: id.to_owned(), message: String::new(), timeout: None, page: None };
            questions.ask(UiRequest::new(id, method));
        }
        assert_eq!(questions.enter(line("what?")), None);
        assert_eq!(questions.enter(line("y")), Some(("a".to_owned(), UiAnswer::Confirmed(true))));
        questions.withdraw("b");
        assert_eq!(questions.enter(Entered::Nothing), Some(("c".to_owned(), UiAnswer::Cancelled)));
        assert_eq!(questions.enter(line("y")), None);
    }
}
