//! Questions of extensions and MCP servers to the user of the host.

use std::collections::HashMap;

use pith_ext::outgoing::Answer;
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use tokio::sync::oneshot;

use crate::log::log_line;
use crate::session::Session;

/// Unanswered dialogs, by id.
#[derive(Default)]
pub(crate) struct Dialogs(HashMap<String, Dialog>);

struct Dialog {
    answer: DialogAnswer,
    /// Whether an abort of the host cancels it: something abortable was going on when it was opened.
    is_abortable: bool,
}

/// Who gets the answer to a dialog.
pub(crate) enum DialogAnswer {
    Extension(Answer<UiAnswer>),
    Server(oneshot::Sender<UiAnswer>),
}

impl From<Answer<UiAnswer>> for DialogAnswer {
    fn from(answer: Answer<UiAnswer>) -> Self {
        DialogAnswer::Extension(answer)
    }
}

impl From<oneshot::Sender<UiAnswer>> for DialogAnswer {
    fn from(answer: oneshot::Sender<UiAnswer>) -> Self {
        DialogAnswer::Server(answer)
    }
}

impl DialogAnswer {
    fn send(self, given: UiAnswer) {
        match self {
            DialogAnswer::Extension(answer) => answer.send(given),
            // A server that no longer waits has withdrawn the dialog.
            DialogAnswer::Server(answer) => drop(answer.send(given)),
        }
    }
}

impl Dialogs {
    pub fn is_any_open(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Session {
    pub(crate) fn open_dialog(&mut self, request: UiRequest, answer: DialogAnswer) {
        if self.is_closing {
            return answer.send(UiAnswer::Cancelled);
        }
        self.out.ui_request(&request);
        let is_abortable =
            self.activity.is_busy() || !self.extensions.commands.is_empty() || self.admission.is_abortable();
        self.extensions.dialogs.0.insert(request.id, Dialog { answer, is_abortable });
        self.list_waiting_commands();
    }

    /// Called when the one who asked no longer waits. Cancels the dialog in the host.
    pub(crate) fn withdraw_dialog(&mut self, id: String) {
        if self.extensions.dialogs.0.remove(&id).is_some() {
            self.tell_withdrawn(id);
        }
    }

    /// Called when the host aborts. Cancels the dialogs of what is aborted; prompts whose slash commands waited for an
    /// answer fail.
    pub(crate) fn abort_dialogs(&mut self) {
        let dialogs = &mut self.extensions.dialogs.0;
        let mut aborted: Vec<_> = dialogs.extract_if(|_, dialog| dialog.is_abortable).collect();
        if aborted.is_empty() {
            return;
        }
        aborted.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (id, dialog) in aborted {
            self.tell_withdrawn(id);
            dialog.answer.send(UiAnswer::Cancelled);
        }
        self.fail_waiting_commands();
    }

    pub(crate) fn tell_withdrawn(&mut self, id: String) {
        let method = UiMethod::Cancel { target_id: id };
        self.out.ui_request(&UiRequest::new(uuid::Uuid::new_v4().to_string(), method));
    }

    /// Passes an answer to the one who asked. Unknown ids are ignored.
    pub(crate) fn answer_dialog(&mut self, id: &str, answer: &UiAnswer) {
        let Some(dialog) = self.extensions.dialogs.0.remove(id) else { return };
        if let UiAnswer::Malformed(why) = answer {
            log_line(&format!("the answer to dialog {id} counts as cancelled: {why}"));
        }
        dialog.answer.send(answer.clone());
    }

    /// Cancels all dialogs: the host can no longer answer.
    pub(crate) fn cancel_dialogs(&mut self) {
        self.extensions.dialogs.0.drain().for_each(|(_, dialog)| dialog.answer.send(UiAnswer::Cancelled));
    }
}
