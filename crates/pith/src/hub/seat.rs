//! An open session, as those see it who talk to it.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use pith_config::Settings;
use pith_protocol::{Call, Command, CommandError, ErrorCode, Id, Inbound};
use pith_session::History;
use pith_store::StoredBranch;
use pith_tools::Workbench;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;

/// An open session.
pub struct Seat {
    pub id: String,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// As they were when it was opened.
    pub settings: Arc<Settings>,
    pub workbench: Arc<Workbench>,
    /// The models that the command line names, by provider and id; empty if all may be chosen.
    pub named_models: Vec<(String, String)>,
    /// To the session; it ends when all senders are gone.
    pub(super) inbox: mpsc::Sender<Inbound>,
    /// The conversation as it is stored.
    pub(super) history: History,
    /// Who waits for which answer.
    pub(super) answers: Arc<Answers>,
    /// Closes the session.
    pub(super) stop: CancellationToken,
    /// Fired when nothing of the session runs any more.
    pub(super) ended: CancellationToken,
    /// Whether its file is removed when it has ended.
    pub(super) is_unwanted: Rc<Cell<bool>>,
}

impl Seat {
    /// Sends a command and waits for its answer.
    pub async fn ask<C: Call>(&self, call: C) -> Result<C::Answer, CommandError> {
        let data = self.ask_text(call).await?;
        serde_json::from_str(&data).map_err(|error| unreadable(C::NAME, &error))
    }

    /// Sends any command and waits for the data of its answer, `null` if it has none.
    pub async fn ask_any(&self, command: Command) -> Result<Value, CommandError> {
        let name = command.name();
        let data = self.ask_text(command).await?;
        serde_json::from_str(&data).map_err(|error| unreadable(name, &error))
    }

    /// Asks for the conversation as it is stored.
    pub async fn branch(&self) -> Result<StoredBranch, CommandError> {
        self.history.branch().await.ok_or_else(closed)
    }

    /// Sends a command and waits for the data of its answer as JSON.
    async fn ask_text(&self, command: impl Into<Command>) -> Result<String, CommandError> {
        let (id, answered) = self.answers.expect();
        self.send(Inbound::Command(id, command.into())).await;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Sends a command whose answer only the outbox looks at. Returns its number, which is the id of that answer.
    pub async fn tell(&self, command: impl Into<Command>) -> u64 {
        let number = self.answers.unwanted();
        self.send(Inbound::Command(Id::from(number), command.into())).await;
        number
    }

    /// Sends anything else that a host may send.
    pub async fn send(&self, inbound: Inbound) {
        // A session that has ended answers nothing; those who wait are told by its outbox.
        let _ = self.inbox.send(inbound).await;
    }

    /// Closes the session, and returns when nothing of it is left.
    pub async fn close(&self) {
        self.begin_to_close();
        self.ended.cancelled().await;
    }

    /// Closes the session without waiting for its end.
    pub fn begin_to_close(&self) {
        self.stop.cancel();
    }

    /// Closes a session that nobody has been told of: nothing of it stays.
    pub fn discard(&self) {
        self.is_unwanted.set(true);
        self.begin_to_close();
    }

    /// Whether somebody has closed it.
    pub fn is_closing(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits for the end of the session, whoever closes it.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

fn unreadable(command: &str, error: &serde_json::Error) -> CommandError {
    CommandError::new(ErrorCode::Internal, format!("Internal error: the answer of {command}: {error}"))
}

fn closed() -> CommandError {
    CommandError::new(ErrorCode::Closing, "The session is closed")
}
