//! Messages, entries and small changes that extensions make.

use pith_protocol::Entry;
use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::{Opening, Queue, now_ms};
use pith_ext::outgoing::{Answer, CustomDraft, Delivery, UserDraft};
use pith_ext::{EventName, ExtensionError, FromExtension};
use pith_protocol::answers::{Disposition, PromptDisposition};
use pith_protocol::commands::Prompt;
use pith_protocol::{CustomMessage, Event, Message, StreamingBehavior};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::activity::Work;
use crate::admission::{COMPACTING, InputSource, SlashNames, pictures};
use crate::reply::{InputReply, Reply};
use crate::run::{RunStart, StartedBy};
use crate::session::Session;

/// Extensions that wait until nothing runs.
pub(crate) struct IdleWaiters {
    /// Cloned into the replies of prompts; open as long as the session.
    sender: mpsc::UnboundedSender<Answer<()>>,
    waiting: mpsc::UnboundedReceiver<Answer<()>>,
}

impl Default for IdleWaiters {
    fn default() -> Self {
        let (sender, waiting) = mpsc::unbounded_channel();
        IdleWaiters { sender, waiting }
    }
}

impl Session {
    pub(crate) fn send_custom_message(&mut self, draft: CustomDraft, answer: Answer<()>) {
        let is_running = self.activity.is_working();
        let starts = !is_running && draft.trigger_turn == Some(true) && draft.deliver_as != Some(Delivery::NextTurn);
        if starts && self.is_held() {
            return self.hold_request(FromExtension::SendMessage { message: draft, answer });
        }
        let (trigger_turn, deliver_as) = (draft.trigger_turn, draft.deliver_as);
        let message = message(draft);
        match (deliver_as, is_running, trigger_turn) {
            (Some(Delivery::NextTurn), _, _) => self.queues.deferred.next_turn.push(message),
            (Some(Delivery::FollowUp), true, None | Some(true)) => self.queues.push_custom(Queue::FollowUp, message),
            (Some(Delivery::Steer) | None, true, None | Some(true)) => {
                self.queues.push_custom(Queue::Steering, message);
            }
            (_, false, Some(true)) => return self.start_with(message, answer),
            // A message cannot stand between a call and its result.
            _ if self.activity.is_busy() => self.queues.deferred.at_turn_end.push(message),
            _ => self.append_custom_message(message),
        }
        answer.send(());
    }

    /// Starts a run with a message of an extension. Nothing runs.
    fn start_with(&mut self, message: CustomMessage, answer: Answer<()>) {
        if self.is_only_summarising() {
            return answer.fail(COMPACTING);
        }
        if let Err(problem) = self.models.usable() {
            return answer.fail(problem);
        }
        self.flush_deferred();
        self.record_level_of_branch();
        self.record_tools();
        self.answer_when_idle(answer);
        let is_shown = self.listeners(EventName::BeforeAgentStart).is_some();
        let prompted = is_shown.then(|| StartedBy::Message(message.clone()));
        let mut prompts = vec![Arc::new(Message::Custom(message))];
        prompts.extend(self.queues.deferred.take_for_prompt());
        let start = RunStart { prompted, ..RunStart::with(Opening::Prompts(prompts)) };
        self.begin_allowance();
        self.compact_or_start(self.begin_work(Work::default(), None), start);
    }

    /// Serves a prompt of an extension like one of the host, but without expanding its text unless asked to.
    pub(crate) fn send_user_message(&mut self, draft: UserDraft, answer: Answer<()>) {
        if self.is_held() {
            return self.hold_request(FromExtension::SendUserMessage { message: draft, answer });
        }
        let when_idle = self.extensions.idle_waiters.sender.clone();
        let reply = Reply::<Prompt>::to_extension(move |placed| match placed {
            // An extension that awaits its own prompt waits until the work is done.
            Ok(PromptDisposition { disposition: Disposition::Started }) => drop(when_idle.send(answer)),
            Ok(_) => answer.send(()),
            Err(why) => answer.fail(why),
        });
        let slash_names = if draft.expand { SlashNames::Expanded } else { SlashNames::Literal };
        if let Some(command) = self.extension_command(&draft.text).filter(|_| draft.expand) {
            return self.run_extension_command(command, InputReply::Prompt(reply));
        }
        let streaming_behavior = draft.deliver_as.and_then(|delivery| match delivery {
            Delivery::Steer => Some(StreamingBehavior::Steer),
            Delivery::FollowUp => Some(StreamingBehavior::FollowUp),
            Delivery::NextTurn => None,
        });
        let images = pictures(draft.images);
        let call = Prompt { message: draft.text, images, streaming_behavior, locale: None, traceparent: None };
        self.submit_prompt(call, InputSource::Extension, slash_names, reply);
    }

    pub(crate) fn append_custom_entry(&mut self, custom_type: &str, data: Option<Value>) {
        let id = self.store.append_custom(custom_type, data.as_ref());
        self.report_store();
        if let Some(entry) = self.store.tree().entry(&id) {
            self.out.event(&Event::EntryAppended { entry: Cow::Owned(Entry::from_object(entry)) });
        }
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

    /// Stops the run. A prompt that `input` handlers are deciding about stays: one of them may be asking for this.
    pub(crate) fn abort_from_extension(&mut self) {
        if self.activity.is_busy() {
            self.stop_activity();
        }
    }

    pub(crate) fn answer_when_idle(&mut self, answer: Answer<()>) {
        // The receiver lives beside the sender, so sending cannot fail.
        drop(self.extensions.idle_waiters.sender.send(answer));
        self.check_fully_idle();
    }

    /// Answers the extensions that waited until nothing runs.
    pub(crate) fn answer_idle(&mut self) {
        while let Ok(answer) = self.extensions.idle_waiters.waiting.try_recv() {
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
