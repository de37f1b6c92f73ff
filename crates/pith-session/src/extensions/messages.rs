//! Messages, entries and small changes that extensions make.

use std::sync::Arc;

use pith_agent::{Opening, Queue, now_ms};
use pith_ext::outgoing::{Answer, CustomDraft, Delivery, UserDraft};
use pith_ext::{ExtensionError, FromExtension};
use pith_protocol::answers::{Disposition, Placed};
use pith_protocol::commands::Prompt;
use pith_protocol::{CustomMessage, Event, Message, StreamingBehavior};
use serde_json::Value;
use tokio::sync::mpsc;

use super::intake::{Source, pictures};
use crate::intake::{COMPACTING, Wording};
use crate::reply::Reply;
use crate::session::Session;

/// Messages of extensions that wait for their moment, and who waits until nothing runs.
pub(crate) struct Errands {
    /// Go along with the next prompt.
    next_turn: Vec<CustomMessage>,
    /// Belong behind the turn that is under way.
    at_turn_end: Vec<CustomMessage>,
    /// Taken by whoever answers once nothing runs; lives as long as the session.
    when_idle: mpsc::UnboundedSender<Answer<()>>,
    idle: mpsc::UnboundedReceiver<Answer<()>>,
}

impl Default for Errands {
    fn default() -> Self {
        let (when_idle, idle) = mpsc::unbounded_channel();
        Errands { next_turn: Vec::new(), at_turn_end: Vec::new(), when_idle, idle }
    }
}

impl Errands {
    /// What goes along with a prompt that starts now.
    pub fn for_next_turn(&mut self) -> impl Iterator<Item = Arc<Message>> {
        std::mem::take(&mut self.next_turn).into_iter().map(|message| Arc::new(Message::Custom(message)))
    }

    /// What will be appended when the turn has ended.
    pub fn at_turn_end(&self) -> impl Iterator<Item = &CustomMessage> {
        self.at_turn_end.iter()
    }

    /// The session they were meant for is gone.
    pub fn forget(&mut self) {
        self.next_turn.clear();
        self.at_turn_end.clear();
    }
}

impl Session {
    pub(crate) fn send_custom_message(&mut self, draft: CustomDraft, answer: Answer<()>) {
        let is_running = self.is_streaming();
        let starts = !is_running && draft.trigger_turn == Some(true) && draft.deliver_as != Some(Delivery::NextTurn);
        if starts && self.must_hold() {
            return self.hold(FromExtension::SendMessage { message: draft, answer });
        }
        let (trigger_turn, deliver_as) = (draft.trigger_turn, draft.deliver_as);
        let message = message(draft);
        match (deliver_as, is_running, trigger_turn) {
            (Some(Delivery::NextTurn), _, _) => self.extensions.errands.next_turn.push(message),
            (Some(Delivery::FollowUp), true, None | Some(true)) => self.queues.push_custom(Queue::FollowUp, message),
            (Some(Delivery::Steer) | None, true, None | Some(true)) => {
                self.queues.push_custom(Queue::Steering, message);
            }
            (_, false, Some(true)) => return self.start_with(message, answer),
            // Between a call and its result there is no place for it.
            _ if self.activity.is_busy() => self.extensions.errands.at_turn_end.push(message),
            _ => self.append_message_now(message),
        }
        answer.send(());
    }

    /// Starts a run with a message of an extension. Nothing runs.
    fn start_with(&mut self, message: CustomMessage, answer: Answer<()>) {
        if self.is_compacting_only() {
            return answer.fail(COMPACTING);
        }
        if let Err(problem) = self.models.usable() {
            return answer.fail(problem);
        }
        self.flush_deferred();
        self.answer_when_idle(answer);
        let opening = Opening::Prompts(vec![Arc::new(Message::Custom(message))]);
        if let Some(opening) = self.compact_before_prompt(opening) {
            self.start_run(opening);
        }
    }

    /// The turn has ended: what waited for that takes its place in the history.
    pub(crate) fn append_waiting_messages(&mut self) {
        for message in std::mem::take(&mut self.extensions.errands.at_turn_end) {
            self.append_message_now(message);
        }
    }

    fn append_message_now(&mut self, message: CustomMessage) {
        let message = Arc::new(Message::Custom(message));
        self.store.append_message(&message);
        self.report_store();
        self.out.event(&Event::MessageStart { message: &message });
        self.out.event(&Event::MessageEnd { message: &message });
    }

    /// A prompt of an extension: as if a host had sent it, except that its text means what it says.
    pub(crate) fn send_user_message(&mut self, draft: UserDraft, answer: Answer<()>) {
        if self.must_hold() {
            return self.hold(FromExtension::SendUserMessage { message: draft, answer });
        }
        let when_idle = self.extensions.errands.when_idle.clone();
        let reply = Reply::<Prompt>::to_extension(move |placed| match placed {
            // An extension that waits for its own prompt waits until the model is done with it.
            Ok(Placed { disposition: Disposition::Started }) => drop(when_idle.send(answer)),
            Ok(_) => answer.send(()),
            Err(why) => answer.fail(why),
        });
        let (wording, reply) = match draft.expand {
            true => (Wording::Expanded, self.run_slash_command(&draft.text, reply)),
            false => (Wording::Literal, Some(reply)),
        };
        let Some(reply) = reply else { return };
        let streaming_behavior = draft.deliver_as.and_then(|delivery| match delivery {
            Delivery::Steer => Some(StreamingBehavior::Steer),
            Delivery::FollowUp => Some(StreamingBehavior::FollowUp),
            Delivery::NextTurn => None,
        });
        let images = pictures(draft.images);
        let call = Prompt { message: draft.text, images, streaming_behavior, locale: None };
        self.pass_prompt(call, Source::Extension, wording, reply);
    }

    pub(crate) fn append_custom_entry(&mut self, custom_type: &str, data: Option<Value>) {
        let id = self.store.append_custom(custom_type, data.as_ref());
        self.report_store();
        if let Some(entry) = self.store.tree().entry(&id) {
            self.out.event(&Event::EntryAppended { entry: &Value::Object(entry) });
        }
    }

    pub(crate) fn rename_from_extension(&mut self, name: &str) {
        self.rename(name);
    }

    pub(crate) fn label_from_extension(&mut self, entry_id: &str, label: Option<&str>) {
        let label = label.map(str::trim).filter(|label| !label.is_empty());
        let appended = self.store.append_label(entry_id, label);
        self.report_store();
        if let Err(error) = appended {
            self.tell_extension_error(&ExtensionError {
                path: "<runtime>".to_owned(),
                event: "set_label".to_owned(),
                error: error.to_string(),
                stack: None,
            });
        }
    }

    /// Stops the run. A prompt that handlers are looking at stays: one of them may be asking for this.
    pub(crate) fn abort_from_extension(&mut self) {
        if self.activity.is_busy() {
            self.cancel_run();
        }
    }

    pub(crate) fn answer_when_idle(&mut self, answer: Answer<()>) {
        // The receiver is beside the sender, so it is there.
        drop(self.extensions.errands.when_idle.send(answer));
    }

    /// Answers those who waited until nothing runs, if that is so.
    pub(crate) fn answer_idle(&mut self) {
        if self.extensions.errands.idle.is_empty() || !self.is_still() {
            return;
        }
        while let Ok(answer) = self.extensions.errands.idle.try_recv() {
            answer.send(());
        }
    }
}

fn message(draft: CustomDraft) -> CustomMessage {
    CustomMessage {
        custom_type: draft.custom_type,
        content: draft.content,
        display: draft.display,
        details: draft.details,
        timestamp: now_ms(),
        ..CustomMessage::default()
    }
}
