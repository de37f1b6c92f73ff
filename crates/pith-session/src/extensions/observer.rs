//! Shows a run to extensions and lets them change it. Lives in the run's task, so that waiting for a handler delays
//! that run and nothing else.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{RunEvent, ToolOutput, now_ms};
use pith_ext::{AgentStart, Boundary, EventName, ExtensionHandle};
use pith_protocol::{AssistantEvent, Block, LiveMessage, LlmCall, Message, StopReason, StreamUpdates, ToolResult};
use pith_store::EntryId;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::admission::UserInput;
use crate::run::StartedBy;

/// How long handlers are waited for, all together, once the run is being stopped.
const ABORT_GRACE: Duration = Duration::from_millis(500);

/// What starts a run, and the system prompt it would have, as `before_agent_start` shows them.
pub(crate) struct Prompted {
    pub by: StartedBy,
    pub system_prompt: Arc<str>,
    pub options: Value,
}

/// The connection between one run and the extensions.
pub(crate) struct Observer {
    handle: ExtensionHandle,
    grace: AbortGrace,
    /// Turns begun so far.
    n_turns: u32,
    /// The answer being streamed, if an extension listens for `message_update`.
    live: Option<LiveMessage>,
    /// Entries of the messages of this turn.
    entries: Vec<(Arc<Message>, EntryId)>,
    /// The session of the run, for whoever compares this run with the one before.
    session_id: String,
    /// What the first request of the run told the model about itself, if an extension listens for `agent_end`.
    system: Option<Value>,
    /// Whether extensions were told that the run is over.
    is_over: bool,
}

/// Waits for handlers; once the run is being stopped, only for a moment.
pub(crate) struct AbortGrace {
    cancel: CancellationToken,
    /// Set when the stop is first noticed.
    deadline: Option<Instant>,
}

impl AbortGrace {
    pub fn new(cancel: CancellationToken) -> Self {
        AbortGrace { cancel, deadline: None }
    }

    /// Waits for a hook; `None` if it takes too long. The hook is polled at least once.
    pub async fn wait<T>(&mut self, hook: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(hook);
        tokio::select! {
            biased;
            done = &mut hook => return Some(done),
            () = self.cancel.cancelled() => {}
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + ABORT_GRACE);
        timeout_at(deadline, hook).await.ok()
    }
}

impl Observer {
    /// Called when a run begins.
    pub fn new(handle: ExtensionHandle, session_id: String, cancel: CancellationToken) -> Self {
        handle.begin_run();
        let grace = AbortGrace::new(cancel);
        Observer {
            handle,
            grace,
            n_turns: 0,
            live: None,
            entries: Vec::new(),
            session_id,
            system: None,
            is_over: false,
        }
    }

    pub async fn before_agent_start(&mut self, prompted: Prompted) -> Option<AgentStart> {
        let mut payload = json!({
            "systemPrompt": &*prompted.system_prompt,
            "systemPromptOptions": prompted.options,
        });
        match prompted.by {
            StartedBy::Prompt(UserInput { text, images }) => {
                payload["messageType"] = json!("user");
                payload["prompt"] = json!(text);
                if !images.is_empty() {
                    payload["images"] = json!(images.into_iter().map(Block::Image).collect::<Vec<_>>());
                }
            }
            StartedBy::Message(message) => {
                payload["messageType"] = json!("custom");
                payload["message"] = json!(Message::Custom(message));
            }
        }
        self.grace.wait(self.handle.before_agent_start(payload)).await
    }

    /// Shows an event to extensions, before the host sees it.
    pub async fn see(&mut self, event: &RunEvent) {
        match event {
            RunEvent::AgentStart => self.notify(EventName::AgentStart, || json!({})).await,
            RunEvent::TurnStart => self.turn_start().await,
            RunEvent::MessageStart(message) => {
                self.notify(EventName::MessageStart, || json!({ "message": message })).await;
            }
            RunEvent::AnswerStart(start) => {
                self.notify(EventName::MessageStart, || json!({ "message": start })).await;
                let is_watched = self.handle.listens(EventName::MessageUpdate);
                self.live = is_watched.then(|| LiveMessage::new(StreamUpdates::Full, start));
            }
            RunEvent::Stream(event) => self.message_update(event),
            RunEvent::ToolStart { call } => {
                let payload = || json!({ "toolCallId": call.id, "toolName": call.name, "args": call.arguments });
                self.notify(EventName::ToolExecutionStart, payload).await;
            }
            RunEvent::ToolUpdate { call, output } => {
                self.handle.observe_update(EventName::ToolExecutionUpdate, &call.id, || {
                    json!({
                        "toolCallId": call.id,
                        "toolName": call.name,
                        "args": call.arguments,
                        "partialResult": shown(output),
                    })
                });
            }
            RunEvent::ToolEnd { call, output } => {
                let payload = || {
                    json!({
                        "toolCallId": call.id,
                        "toolName": call.name,
                        "result": shown(output),
                        "isError": output.is_error,
                    })
                };
                self.notify(EventName::ToolExecutionEnd, payload).await;
            }
            RunEvent::AgentEnd { messages } => {
                let (system, session_id) = (self.system.take(), std::mem::take(&mut self.session_id));
                let payload = || json!({ "messages": messages, "system": system, "sessionId": session_id });
                self.notify(EventName::AgentEnd, payload).await;
                self.is_over = true;
                self.handle.end_run();
            }
            // Handlers can change these two: see `message_end` and `turn_end`.
            RunEvent::MessageEnd(_) | RunEvent::TurnEnd { .. } => {}
        }
    }

    /// Returns the message to store and show, which handlers may replace.
    pub async fn message_end(&mut self, message: Arc<Message>) -> Arc<Message> {
        self.live = None;
        if !self.handle.listens(EventName::MessageEnd) {
            return message;
        }
        let replaced = self.grace.wait(self.handle.message_end(&*message)).await.flatten();
        let Some(replaced) = replaced else { return message };
        match serde_json::from_value::<Message>(replaced) {
            Ok(replacement) if replacement.role() == message.role() => Arc::new(replacement),
            Ok(_) => {
                let why = "message_end handlers must return a message with the same role";
                self.handle.report("<runtime>", EventName::MessageEnd, why);
                message
            }
            Err(error) => {
                let why = format!("The replaced message cannot be used: {error}");
                self.handle.report("<runtime>", EventName::MessageEnd, why);
                message
            }
        }
    }

    /// Remembers the entry of a message of this turn.
    pub fn note_entry(&mut self, message: &Arc<Message>, entry: EntryId) {
        self.entries.push((message.clone(), entry));
    }

    /// Returns what extensions propose at the end of a turn.
    pub async fn turn_end(&mut self, message: &Arc<Message>, results: &[Arc<Message>]) -> Option<Boundary> {
        if !self.handle.listens(EventName::TurnEnd) {
            return None;
        }
        let entry_of = |message: &Arc<Message>| {
            let found = self.entries.iter().find(|(known, _)| Arc::ptr_eq(known, message));
            found.map(|(_, entry)| &**entry)
        };
        let payload = json!({
            "turnIndex": self.n_turns.saturating_sub(1),
            "message": message,
            "toolResults": results,
            "messageEntryId": entry_of(message),
            "toolResultEntryIds": results.iter().filter_map(entry_of).collect::<Vec<_>>(),
            "outcome": outcome(message.as_assistant().map(|answer| answer.stop_reason)),
        });
        self.grace.wait(self.handle.boundary(EventName::TurnEnd, payload)).await.flatten()
    }

    /// Lets extensions change what the model is about to read.
    pub async fn context(&mut self, call: &mut LlmCall) {
        if self.system.is_none() && self.handle.listens(EventName::AgentEnd) {
            self.system = Some(super::transcript::system_message(call));
        }
        if self.handle.listens(EventName::Context) || self.handle.listens(EventName::ContextWithSystem) {
            super::transcript::apply_context_handlers(&self.handle, &mut self.grace, call).await;
        }
    }

    async fn turn_start(&mut self) {
        let index = self.n_turns;
        self.n_turns += 1;
        self.entries.clear();
        self.notify(EventName::TurnStart, || json!({ "turnIndex": index, "timestamp": now_ms() })).await;
    }

    /// Never waits: extensions that are too slow see fewer updates.
    fn message_update(&mut self, event: &AssistantEvent) {
        let Some(live) = &mut self.live else { return };
        let delta = live.fold(event);
        let mut frame = Vec::new();
        match delta {
            Some(delta) => live.append_delta_frame(&delta, &mut frame),
            None => live.append_event_frame(event, &mut frame),
        }
        if let (Ok(text), false) = (String::from_utf8(frame), matches!(event, AssistantEvent::Meta { .. })) {
            self.handle.observe_text(EventName::MessageUpdate, "answer", || text);
        }
    }

    async fn notify(&mut self, event: EventName, payload: impl FnOnce() -> Value) {
        if self.handle.listens(event) {
            self.grace.wait(self.handle.notify(event, payload())).await;
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // The run died before its `agent_end`.
        if !self.is_over {
            self.handle.end_run();
        }
    }
}

/// How a turn or the work ended, as the extension API names it.
pub(crate) fn outcome(stop_reason: Option<StopReason>) -> &'static str {
    match stop_reason {
        Some(StopReason::Aborted) => "aborted",
        Some(StopReason::Error) => "error",
        Some(StopReason::Stop | StopReason::Length | StopReason::ToolUse) | None => "completed",
    }
}

fn shown(output: &ToolOutput) -> ToolResult<'_> {
    ToolResult {
        content: Cow::Borrowed(&output.content),
        details: output.details.as_ref().map(Cow::Borrowed),
        terminate: output.terminate.then_some(true),
        usage: output.usage.as_ref().map(Cow::Borrowed),
    }
}
