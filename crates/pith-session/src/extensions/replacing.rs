//! Other sessions, other places in the tree, and compaction, with the extensions' consent and at their wish.

use pith_ext::outgoing::{Answer, ForkPosition, Navigation, Replaced};
use serde_json::Value;

use crate::session::Session;

impl Session {
    pub(crate) fn new_session_for_extension(
        &mut self,
        _parent_session: Option<String>,
        _entries: Vec<Value>,
        _answer: Answer<Replaced>,
    ) {
    }

    pub(crate) fn fork_for_extension(&mut self, _entry_id: String, _at: ForkPosition, _answer: Answer<Replaced>) {}

    pub(crate) fn switch_for_extension(&mut self, _path: String, _answer: Answer<Replaced>) {}

    pub(crate) fn navigate_for_extension(&mut self, _navigation: Navigation, _answer: Answer<Replaced>) {}

    pub(crate) fn reload_for_extension(&mut self, _answer: Answer<()>) {}

    pub(crate) fn compact_for_extension(&mut self, _custom_instructions: Option<String>, _answer: Answer<Value>) {}
}
