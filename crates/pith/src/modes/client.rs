//! The client of a session: sends commands, receives answers and the ends of work.

use pith_ai::explain;
use pith_protocol::host::UiAnswer;
use pith_protocol::inbound::decode;
use pith_protocol::{self as protocol, ErrorKind, Inbound, Response, StopReason, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::debug;
use crate::transport::Line;

/// What the client is told of a session.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few of them")]
pub enum Notice {
    /// A command was answered.
    Answer { id: u64, result: Result<Value, String> },
    /// The session is idle until the next command.
    Settled(Settled),
}

/// How the work ended.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// Text of the last answer.
    pub text: String,
    /// Why the last answer ended; `None` if there is none.
    pub stop_reason: Option<StopReason>,
    /// Why there is no last answer.
    pub failure: Option<Failure>,
    /// Whether a limit of the session has ended the work.
    pub is_limited: bool,
    /// What everything so far has taken.
    pub totals: Totals,
}

/// What the answers of a session have taken.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub usage: Usage,
    /// Answers that did not fail.
    pub n_turns: u32,
    /// The first tool call that was not allowed, and why.
    pub refused: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What hosts are told.
    pub text: String,
    /// Who was asked.
    pub provider: String,
    /// Whether it was stopped on purpose: an extension aborted the run, or a limit of the user was reached.
    pub is_on_purpose: bool,
    /// What the provider said, or which kind of limit it was.
    pub cause: Option<protocol::Failure>,
}

impl Failure {
    /// A failure of which only the text is known.
    #[cfg(test)]
    pub fn failed(text: &str) -> Self {
        Failure { text: text.to_owned(), provider: String::new(), is_on_purpose: false, cause: None }
    }

    /// The text to show to people.
    pub fn into_text(self) -> String {
        explain(&self.provider, &self.text, self.cause.as_ref())
    }

    /// Whether a limit of the user was reached.
    pub fn is_limit(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.kind == ErrorKind::Limit)
    }
}

/// Sends commands and waits for their results.
pub struct Client {
    /// To the session; closing it ends the session.
    lines: mpsc::Sender<Inbound>,
    /// From the outbox; closed when the session has ended.
    notices: mpsc::UnboundedReceiver<Notice>,
    n_sent: u64,
}

impl Client {
    pub fn new(lines: mpsc::Sender<Inbound>, notices: mpsc::UnboundedReceiver<Notice>) -> Self {
        Client { lines, notices, n_sent: 0 }
    }

    /// Sends a command, an object as a host would write it. Returns its id.
    pub async fn send(&mut self, mut command: Value) -> u64 {
        self.n_sent += 1;
        command["id"] = self.n_sent.into();
        // A session that has ended closes the notices.
        let _ = self.lines.send(line_of(&command)).await;
        self.n_sent
    }

    /// Waits for the next notice; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }
}

/// The line of a command or an answer, as a host would write it.
pub fn line_of(frame: &Value) -> Inbound {
    let line = frame.to_string();
    debug::line_in(&Line::Whole(line.as_bytes()));
    decode(line.as_bytes()).expect("an object is no blank line")
}

/// The answer to a question of an extension.
pub fn answer_frame(id: &str, answer: &UiAnswer) -> Value {
    let mut frame = json!({"type": "extension_ui_response", "id": id});
    match answer {
        UiAnswer::Value(value) => frame["value"] = value.as_str().into(),
        UiAnswer::Confirmed(confirmed) => frame["confirmed"] = (*confirmed).into(),
        UiAnswer::Cancelled | UiAnswer::Malformed(_) => frame["cancelled"] = true.into(),
    }
    frame
}

/// Whether an extension handled the prompt, so that no run follows.
pub fn is_handled(placed: &Value) -> bool {
    placed["disposition"] == "handled"
}

/// Whether a run is going on.
pub fn is_busy(state: &Value) -> bool {
    state["isStreaming"] == true
}

/// Makes the notice of a response.
pub fn answered(response: &Response<'_>) -> Option<Notice> {
    let id = response.id.as_ref()?.get().parse().ok()?;
    let data = || response.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let result =
        if response.success { Ok(data()) } else { Err(response.error.as_deref().unwrap_or("failed").to_owned()) };
    Some(Notice::Answer { id, result })
}
