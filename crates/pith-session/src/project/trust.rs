//! Asks the host whether a project may be trusted: once, if the host has announced that it can show dialogs. No answer
//! in the time that the options allow means no. Sessions of one directory and process ask one after the other, until
//! one of them is answered, which decides for all.

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_resources::Question;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::task::AbortHandle;

use super::ReloadReason;
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::session::Session;

/// A question about trust that has not been answered.
#[derive(Clone, Debug)]
pub struct OpenQuestion {
    question: Question,
    /// Held by the session that asks; closed by the answer.
    turn: Arc<Semaphore>,
}

impl OpenQuestion {
    pub fn new(question: Question) -> Self {
        OpenQuestion { question, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Whether a session was answered.
    pub fn is_answered(&self) -> bool {
        self.turn.is_closed()
    }
}

/// The end of the wait for another session that asks.
pub(crate) struct TrustTurn {
    question: Question,
    /// Fails if the other session was answered.
    turn: Result<OwnedSemaphorePermit, AcquireError>,
}

/// The state of the question.
#[derive(Default)]
pub(crate) enum TrustQuestion {
    /// There is no question, or it has been answered.
    #[default]
    None,
    /// The host has not announced yet that it can show dialogs.
    Open(OpenQuestion),
    /// Another session asks.
    Waiting(AbortHandle),
    /// The host has been asked. `limit` ends the wait, if anything does.
    Asked { id: String, limit: Option<AbortHandle>, turn: OwnedSemaphorePermit },
}

impl TrustQuestion {
    /// The question about a directory; `None` if trust is decided.
    pub fn of(question: Option<OpenQuestion>) -> Self {
        question.map_or(TrustQuestion::None, TrustQuestion::Open)
    }

    /// Stops waiting for an answer; another session may ask.
    pub fn give_up(&mut self) {
        if let TrustQuestion::Asked { limit: Some(wait), .. } | TrustQuestion::Waiting(wait) = std::mem::take(self) {
            wait.abort();
        }
    }
}

impl Session {
    /// Called when the host announces that it can show dialogs.
    pub(crate) fn on_ui_announced(&mut self) {
        let TrustQuestion::Open(open) = &self.project.trust else { return };
        let OpenQuestion { question, turn } = open.clone();
        match turn.clone().try_acquire_owned() {
            Ok(turn) => self.ask_about_trust(question, turn),
            Err(TryAcquireError::Closed) => self.adopt_trust(),
            Err(TryAcquireError::NoPermits) => {
                let wait =
                    async { JobEnd::TrustTurn(Box::new(TrustTurn { question, turn: turn.acquire_owned().await })) };
                self.project.trust = TrustQuestion::Waiting(self.jobs.spawn(Job::Background, wait));
            }
        }
    }

    /// Called when the session that asked before has been answered, or has ended.
    pub(crate) fn on_trust_turn(&mut self, TrustTurn { question, turn }: TrustTurn) {
        // A session that is closing asks nothing.
        if !matches!(self.project.trust, TrustQuestion::Waiting(_)) {
            return;
        }
        match turn {
            Ok(turn) => self.ask_about_trust(question, turn),
            Err(_) => self.adopt_trust(),
        }
    }

    /// Takes over what another session was answered.
    fn adopt_trust(&mut self) {
        self.project.trust = TrustQuestion::None;
        self.reload_project(ReloadReason::Decided);
        if self.project.is_trusted {
            self.load_trusted_in_turn();
            self.out.commands_changed();
        }
    }

    fn ask_about_trust(&mut self, question: Question, turn: OwnedSemaphorePermit) {
        let id = uuid::Uuid::new_v4().to_string();
        let limit = self.options.trust_answer_limit;
        let timeout = limit.and_then(|limit| u64::try_from(limit.as_millis()).ok());
        let method = UiMethod::Confirm { title: question.title, message: question.message, timeout, page: None };
        self.out.ui_request(&UiRequest::new(id.clone(), method));
        let limit = limit.map(|limit| self.jobs.spawn(Job::Background, unanswered(limit)));
        self.project.trust = TrustQuestion::Asked { id, limit, turn };
    }

    /// Takes an answer of the host, to this question, to one about a tool call or to a dialog of an extension.
    pub(crate) fn on_ui_answer(&mut self, id: Option<&str>, answer: &UiAnswer) {
        let Some(id) = id else { return };
        if self.take_permission_dialog(id, answer) {
            return;
        }
        let turn = match &self.project.trust {
            TrustQuestion::Asked { id: asked, turn, .. } if asked == id => turn.semaphore().clone(),
            _ => return self.answer_dialog(id, answer),
        };
        match answer {
            UiAnswer::Confirmed(true) => {
                self.reload_project(ReloadReason::Trusted);
                turn.close();
                self.load_trusted_in_turn();
            }
            UiAnswer::Confirmed(false) | UiAnswer::Cancelled => {
                turn.close();
                self.tell_distrust();
            }
            UiAnswer::Value(value) => log_line(&format!("\"{value}\" is no answer to a yes-or-no question")),
            UiAnswer::Malformed(why) => log_line(&format!("the answer about trust is not understood: {why}")),
        }
        self.project.trust.give_up();
    }

    /// Tells the user what a no means.
    fn tell_distrust(&mut self) {
        let message = "This project is not trusted: its settings, extensions, skills and MCP servers are not used";
        let method = UiMethod::Notify { message: message.to_owned(), notify_type: Some("warning".to_owned()) };
        self.out.ui_request(&UiRequest::new(uuid::Uuid::new_v4().to_string(), method));
    }

    pub(crate) fn on_trust_unanswered(&mut self) {
        self.project.trust = TrustQuestion::None;
    }
}

async fn unanswered(limit: Duration) -> JobEnd {
    tokio::time::sleep(limit).await;
    JobEnd::TrustUnanswered
}
