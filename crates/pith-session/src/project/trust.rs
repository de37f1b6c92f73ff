//! Asks the host whether a project may be trusted: once, if the host has announced that it can show dialogs. No answer
//! in the time that the options allow means no.

use std::time::Duration;

use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_resources::Question;
use tokio::task::AbortHandle;

use super::ReloadReason;
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::session::Session;

/// The state of the question.
#[derive(Default)]
pub(crate) enum TrustQuestion {
    /// There is no question, or it has been answered.
    #[default]
    None,
    /// The host has not announced yet that it can show dialogs.
    Open(Question),
    /// The host has been asked. `limit` ends the wait, if anything does.
    Asked { id: String, limit: Option<AbortHandle> },
}

impl TrustQuestion {
    /// The question about a directory; `None` if trust is decided.
    pub fn of(question: Option<Question>) -> Self {
        question.map_or(TrustQuestion::None, TrustQuestion::Open)
    }

    /// Stops waiting for an answer.
    pub fn give_up(&mut self) {
        if let TrustQuestion::Asked { limit: Some(limit), .. } = std::mem::take(self) {
            limit.abort();
        }
    }
}

impl Session {
    /// Called when the host announces that it can show dialogs.
    pub(crate) fn on_ui_announced(&mut self) {
        let TrustQuestion::Open(question) = std::mem::take(&mut self.project.trust) else { return };
        let id = uuid::Uuid::new_v4().to_string();
        let limit = self.options.trust_answer_limit;
        let timeout = limit.and_then(|limit| u64::try_from(limit.as_millis()).ok());
        let method = UiMethod::Confirm { title: question.title, message: question.message, timeout, page: None };
        self.out.ui_request(&UiRequest::new(id.clone(), method));
        let limit = limit.map(|limit| self.jobs.spawn(Job::Background, unanswered(limit)));
        self.project.trust = TrustQuestion::Asked { id, limit };
    }

    /// Takes an answer of the host, to this question, to one about a tool call or to a dialog of an extension.
    pub(crate) fn on_ui_answer(&mut self, id: Option<&str>, answer: &UiAnswer) {
        let Some(id) = id else { return };
        if self.take_permission_dialog(id, answer) {
            return;
        }
        if !matches!(&self.project.trust, TrustQuestion::Asked { id: asked, .. } if asked == id) {
            return self.answer_dialog(id, answer);
        }
        self.project.trust.give_up();
        match answer {
            UiAnswer::Confirmed(true) => {
                self.reload_project(ReloadReason::Trusted);
                self.load_trusted_in_turn();
            }
            UiAnswer::Confirmed(false) | UiAnswer::Cancelled => self.tell_distrust(),
            UiAnswer::Value(value) => log_line(&format!("\"{value}\" is no answer to a yes-or-no question")),
            UiAnswer::Malformed(why) => log_line(&format!("the answer about trust is not understood: {why}")),
        }
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
