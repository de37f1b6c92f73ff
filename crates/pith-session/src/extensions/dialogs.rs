//! Questions of extensions to the person in front of the host.

use std::collections::HashMap;

use pith_ext::outgoing::Answer;
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};

use crate::session::Session;
use crate::state::log_line;

/// Questions without an answer.
#[derive(Default)]
pub(crate) struct Dialogs(HashMap<String, Answer<UiAnswer>>);

impl Session {
    pub(crate) fn open_dialog(&mut self, request: UiRequest, answer: Answer<UiAnswer>) {
        if self.is_closing {
            return answer.send(UiAnswer::Cancelled);
        }
        self.out.ui_request(&request);
        self.extensions.dialogs.0.insert(request.id, answer);
    }

    /// The extension no longer waits; hosts that want to know are told.
    pub(crate) fn withdraw_dialog(&mut self, id: String) {
        if self.extensions.dialogs.0.remove(&id).is_some() {
            let method = UiMethod::Cancel { target_id: id };
            self.out.ui_request(&UiRequest { id: uuid::Uuid::new_v4().to_string(), method });
        }
    }

    /// Hands an answer to whoever asked. An id nobody waits for is ignored.
    pub(crate) fn answer_dialog(&mut self, id: &str, answer: &UiAnswer) {
        let Some(waiting) = self.extensions.dialogs.0.remove(id) else { return };
        if let UiAnswer::Malformed(why) = answer {
            log_line(&format!("the answer to dialog {id} counts as cancelled: {why}"));
        }
        waiting.send(answer.clone());
    }

    /// Nobody is there to answer.
    pub(crate) fn cancel_dialogs(&mut self) {
        self.extensions.dialogs.0.drain().for_each(|(_, answer)| answer.send(UiAnswer::Cancelled));
    }
}
