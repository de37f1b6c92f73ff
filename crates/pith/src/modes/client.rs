//! The client of a session: sends commands, receives answers and the ends of work.

use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_protocol::inbound::decode;
use pith_protocol::{Inbound, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::panel::Panel;
use super::questions::Questions;

/// What the client is told of a session.
#[derive(Debug)]
pub enum Notice {
    /// A command was answered.
    Answer { id: u64, result: Result<Value, String> },
    /// The session is idle until the next command.
    Settled(Settled),
    /// An extension asks or shows something.
    Ui(UiRequest),
}

/// How the work ended.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// Text of the last answer.
    pub text: String,
    /// Why there is no last answer.
    pub failure: Option<Failure>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// It was stopped on purpose: an extension aborted the run, or a limit of the user was reached.
    Stopped(String),
    /// Something went wrong.
    Failed(String),
}

impl Failure {
    /// The text to show.
    pub fn into_text(self) -> String {
        match self {
            Failure::Stopped(text) | Failure::Failed(text) => text,
        }
    }
}

/// Sends commands and waits for their results.
pub struct Client {
    /// To the session; closing it ends the session.
    lines: mpsc::Sender<Inbound>,
    /// From the outbox; closed when the session has ended.
    notices: mpsc::UnboundedReceiver<Notice>,
    n_sent: u64,
    /// How extensions reach the user; `None` if there is none.
    extension_ui: Option<ExtensionUi>,
}

/// What extensions ask and show.
pub struct ExtensionUi {
    pub questions: Questions,
    pub panel: Panel,
}

impl Client {
    pub fn new(
        lines: mpsc::Sender<Inbound>,
        notices: mpsc::UnboundedReceiver<Notice>,
        questions: Option<Questions>,
    ) -> Self {
        let extension_ui = questions.map(|questions| ExtensionUi { questions, panel: Panel::default() });
        Client { lines, notices, n_sent: 0, extension_ui }
    }

    /// Sends a command, an object as a host would write it. Returns its id.
    pub async fn send(&mut self, mut command: Value) -> u64 {
        self.n_sent += 1;
        command["id"] = self.n_sent.into();
        let line = decode(command.to_string().as_bytes()).expect("an object is no blank line");
        // A session that has ended closes the notices.
        let _ = self.lines.send(line).await;
        self.n_sent
    }

    /// Waits for the next notice; `None` when the session has ended. Meanwhile the user answers questions of
    /// extensions.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            let Some(extension_ui) = &mut self.extension_ui else { return self.notices.recv().await };
            let (id, answer) = tokio::select! {
                biased;
                notice = self.notices.recv() => match notice {
                    Some(Notice::Ui(request)) => {
                        extension_ui.take(request);
                        continue;
                    }
                    other => return other,
                },
                answered = extension_ui.questions.next() => answered,
            };
            self.answer(&id, &answer).await;
        }
    }

    /// How extensions reach the user.
    pub fn extension_ui(&mut self) -> Option<&mut ExtensionUi> {
        self.extension_ui.as_mut()
    }

    /// Answers a question of an extension.
    pub async fn answer(&self, id: &str, answer: &UiAnswer) {
        let mut frame = json!({"type": "extension_ui_response", "id": id});
        match answer {
            UiAnswer::Value(value) => frame["value"] = value.as_str().into(),
            UiAnswer::Confirmed(confirmed) => frame["confirmed"] = (*confirmed).into(),
            UiAnswer::Cancelled | UiAnswer::Malformed(_) => frame["cancelled"] = true.into(),
        }
        let line = decode(frame.to_string().as_bytes()).expect("an object is no blank line");
        // A session that has ended closes the notices.
        let _ = self.lines.send(line).await;
    }

    /// Sends a command and waits for its answer. Other notices in between are dropped.
    pub async fn call(&mut self, command: Value) -> Result<Value, String> {
        let sent = self.send(command).await;
        while let Some(notice) = self.next().await {
            match notice {
                Notice::Answer { id, result } if id == sent => return result,
                Notice::Answer { .. } | Notice::Settled(_) | Notice::Ui(_) => {}
            }
        }
        Err("the session has ended".to_owned())
    }
}

impl ExtensionUi {
    fn take(&mut self, request: UiRequest) {
        match request.method {
            UiMethod::Select { .. } | UiMethod::Confirm { .. } | UiMethod::Input { .. } | UiMethod::Editor { .. } => {
                self.questions.ask(request);
            }
            UiMethod::Cancel { target_id } => self.questions.withdraw(&target_id),
            shown => self.panel.set(shown),
        }
    }
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
