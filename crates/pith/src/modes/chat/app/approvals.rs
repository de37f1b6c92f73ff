//! Questions whether tool calls may run: asked one after the other, answered with keys, and the time they take.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pith_protocol::permissions::OptionId;

use super::{Action, App, Overlay};
use crate::modes::chat::approval::{Approval, Asked, Pressed};
use crate::modes::chat::text::Row;

/// Keys of one text follow each other faster. A letter in the middle of a word is no answer.
const PAUSE: Duration = Duration::from_millis(400);

impl Overlay {
    /// The id of a question.
    pub fn id(&self) -> Option<&str> {
        match self {
            Overlay::Picker(_) => None,
            Overlay::Dialog(dialog) => Some(&dialog.id),
            Overlay::Approval(approval) => Some(approval.id()),
        }
    }
}

impl App {
    /// Takes a question about a call.
    pub(super) fn asked(&mut self, asked: Asked) {
        self.end_answer();
        let approval = Approval::new(asked, &self.setup.home, self.now);
        self.questions.push_back(Overlay::Approval(Box::new(approval)));
        self.ask_next();
    }

    /// The question about a call that is open.
    pub fn approval(&self) -> Option<&Approval> {
        match &self.overlay {
            Some(Overlay::Approval(approval)) => Some(approval),
            _ => None,
        }
    }

    /// Whether a question stands on the screen for the first time.
    pub fn has_new_question(&self) -> bool {
        self.approval().is_some_and(|approval| !approval.is_seen)
    }

    /// Called when the question is on the screen and every key from before has been taken.
    pub fn question_seen(&mut self) {
        if let Some(Overlay::Approval(approval)) = &mut self.overlay {
            approval.is_seen = true;
        }
    }

    /// Whether a key belongs to the text that was being written when the question came.
    pub(super) fn is_writing(&self, key: KeyEvent) -> bool {
        let is_refusal = key.code == KeyCode::Esc || key.modifiers.contains(KeyModifiers::CONTROL);
        !is_refusal && self.wrote_at.is_some_and(|at| self.now.saturating_duration_since(at) < PAUSE)
    }

    pub(super) fn approval_key(&mut self, key: KeyEvent) {
        let size = self.room();
        if let Some(Overlay::Approval(approval)) = &mut self.overlay {
            let pressed = approval.key(key, size);
            self.pressed(pressed);
        }
    }

    /// Does what a key of the question says.
    pub(super) fn pressed(&mut self, pressed: Pressed) {
        match pressed {
            Pressed::Nothing => {}
            Pressed::Everything => {
                if let Some(rows) = self.approval().map(|approval| approval.everything(self.width())) {
                    self.print(rows);
                }
            }
            Pressed::Decided(option, message) => {
                self.end_wait();
                if let Some(Overlay::Approval(approval)) = self.overlay.take() {
                    let id = approval.id().to_owned();
                    self.actions.push(Action::Decide { id, option, message });
                }
                self.ask_next();
            }
        }
    }

    /// Leaves the time that the user took out of that of the call and of the run.
    pub(super) fn end_wait(&mut self) {
        let Some(approval) = self.approval() else { return };
        let waited = self.now.saturating_duration_since(approval.since);
        let (call, has_begun) = (approval.tool_call().to_owned(), approval.is_connection());
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.id == call) {
            tool.began = if has_begun { tool.began + waited } else { self.now };
        }
        if let Some(work) = &mut self.work {
            work.since += waited;
        }
    }

    pub(super) fn print(&mut self, rows: Vec<Row>) {
        self.end_answer();
        self.rows.extend(rows);
    }
}

/// The word of an answer in a frame.
pub fn decision(id: &str, option: OptionId, message: Option<&str>) -> serde_json::Value {
    let mut frame = serde_json::json!({"type": "permission_response", "id": id, "optionId": option.as_str()});
    if let Some(message) = message {
        frame["message"] = message.into();
    }
    frame
}
