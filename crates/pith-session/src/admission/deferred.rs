//! Messages of extensions that wait for the end of the turn or for the next prompt.

use std::borrow::Cow;
use std::sync::Arc;

use pith_protocol::{CustomMessage, Event, Message};

use crate::session::Session;

#[derive(Default)]
pub(crate) struct DeferredMessages {
    /// Sent together with the next prompt.
    pub next_turn: Vec<CustomMessage>,
    /// Appended after the turn that is under way.
    pub at_turn_end: Vec<CustomMessage>,
}

impl DeferredMessages {
    /// Takes the messages to send together with a prompt that starts now.
    pub fn take_for_prompt(&mut self) -> impl Iterator<Item = Arc<Message>> {
        std::mem::take(&mut self.next_turn).into_iter().map(|message| Arc::new(Message::Custom(message)))
    }

    /// Called when another session takes the place of the one they were meant for.
    pub fn forget(&mut self) {
        self.next_turn.clear();
        self.at_turn_end.clear();
    }
}

impl Session {
    /// Called when a turn has ended. Appends the messages that waited for that.
    pub(crate) fn append_deferred_messages(&mut self) {
        for message in std::mem::take(&mut self.queues.deferred.at_turn_end) {
            self.append_custom_message(message);
        }
    }

    pub(crate) fn append_custom_message(&mut self, message: CustomMessage) {
        let message = Arc::new(Message::Custom(message));
        let entry = self.store.append_message(&message);
        self.report_store();
        self.out.entry(&entry);
        self.out.event(&Event::MessageStart { message: Cow::Borrowed(&message) });
        self.out.event(&Event::MessageEnd { message: Cow::Borrowed(&message) });
    }
}
