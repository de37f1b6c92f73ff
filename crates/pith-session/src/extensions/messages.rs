//! Messages, entries and small changes that extensions make.

use pith_ext::outgoing::{Answer, CustomDraft, UserDraft};
use serde_json::Value;

use crate::session::Session;

impl Session {
    pub(crate) fn send_custom_message(&mut self, _message: CustomDraft, _answer: Answer<()>) {}

    pub(crate) fn send_user_message(&mut self, _message: UserDraft, _answer: Answer<()>) {}

    pub(crate) fn append_custom_entry(&mut self, _custom_type: &str, _data: Option<Value>) {}

    pub(crate) fn rename_from_extension(&mut self, _name: &str) {}

    pub(crate) fn label_from_extension(&mut self, _entry_id: &str, _label: Option<&str>) {}

    pub(crate) fn abort_from_extension(&mut self) {}

    pub(crate) fn answer_when_idle(&mut self, _answer: Answer<()>) {}
}
