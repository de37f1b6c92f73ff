//! What extensions may do to a run, on the session's side: see requests, and propose entries at the end of a turn and of
//! the work.

use pith_protocol::Entry;
use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::Queue;
use pith_ext::{Boundary, EventName, ExtensionError, ExtensionHandle};
use pith_protocol::{Block, Event, Message, RequestHooks, RequestPart};
use serde_json::{Value, json};

use super::drafts::{Draft, Preview};
use crate::admission::{Queued, UserInput};
use crate::session::Session;

/// The extensions as hooks of a model request, if one of them handles requests.
pub(crate) fn request_hooks(handle: &ExtensionHandle) -> Option<Arc<dyn RequestHooks>> {
    let parts = [RequestPart::Headers, RequestPart::Payload, RequestPart::Response];
    parts.into_iter().any(|part| handle.sees(part)).then(|| Arc::new(handle.clone()) as Arc<dyn RequestHooks>)
}

impl Session {
    /// Stores the entries that extensions propose. `true` if the run is to continue.
    pub(crate) fn apply_boundary(&mut self, event: EventName, boundary: Boundary) -> bool {
        let drafts = match Draft::read_all(&boundary.entries, &self.store) {
            Ok(drafts) => drafts,
            Err(why) => {
                let path = boundary.proposer.unwrap_or_else(|| "<boundary>".to_owned());
                self.report_boundary_error(path, event, format!("Invalid boundary entries: {why}"));
                return false;
            }
        };
        for draft in drafts {
            let tokens_before = self.context().tokens();
            let entry = draft.store(&mut self.store, tokens_before);
            self.report_store();
            if let Some(entry) = self.store.tree().entry(&entry) {
                self.out.event(&Event::EntryAppended { entry: Cow::Owned(Entry::from_object(entry)) });
            }
        }
        if boundary.continues && !self.can_continue(event, self.store.messages()) {
            self.report_boundary_error(
                "<boundary>".to_owned(),
                event,
                format!("{} requested continuation without runnable model context", event.as_str()),
            );
            return false;
        }
        boundary.continues
    }

    /// The context as it would be with the drafts applied; without them if they are not valid.
    pub(crate) fn boundary_preview(&mut self, event: &str, entries: &[Value]) -> Value {
        let mut preview = Preview::of(&self.store);
        if let Ok(drafts) = Draft::read_all(entries, &self.store) {
            drafts.into_iter().zip(entries).for_each(|(draft, shown)| preview.apply(draft, shown));
        }
        let event = if event == "turn_end" { EventName::TurnEnd } else { EventName::AgentBeforeSettle };
        let messages = preview.messages();
        json!({
            "contextEntries": preview.entries(&self.store),
            "contextMessages": messages,
            "llmMessages": preview.llm_messages(),
            "pendingMessages": self.pending_messages(),
            "canContinue": self.can_continue(event, &messages),
        })
    }

    /// Whether the model could be called with these messages, or with those that are queued.
    fn can_continue(&self, event: EventName, messages: &[Arc<Message>]) -> bool {
        let seen = messages.iter().rev().find(|message| is_seen(message));
        let ends_in_answer = seen.is_some_and(|message| message.as_assistant().is_some());
        let has_queued = self.queues.has(Queue::Steering) || self.queues.has(Queue::FollowUp);
        let is_runnable = seen.is_some() && !ends_in_answer;
        let has_waiting = !self.queues.deferred.at_turn_end.is_empty();
        is_runnable || has_waiting || has_queued && (event == EventName::TurnEnd || ends_in_answer)
    }

    fn pending_messages(&self) -> Vec<Value> {
        let user = |input: &UserInput| {
            let images = input.images.iter().cloned().map(Block::Image);
            let content: Vec<Block> = std::iter::once(Block::text(&input.text)).chain(images).collect();
            json!({ "role": "user", "content": content })
        };
        let queued = self.queues.items().map(|item| match item {
            Queued::User(input, _) => user(input),
            Queued::Custom(message) => json!(message),
        });
        queued.chain(self.queues.deferred.at_turn_end.iter().map(|message| json!(message))).collect()
    }

    fn report_boundary_error(&mut self, path: String, event: EventName, error: String) {
        let event = event.as_str().to_owned();
        self.tell_extension_error(&ExtensionError { path, event, error, stack: None });
    }
}

/// Whether the model sees a message.
fn is_seen(message: &Message) -> bool {
    !matches!(message, Message::BashExecution(bash) if bash.exclude_from_context == Some(true))
}
