//! The events of a run: stored where they belong, then sent to the host.

use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::link::Call;
use pith_agent::{RunEvent, ToolOutput};
use pith_config::settings::Fsync;
use pith_protocol::{Event, Message, ToolResult};
use pith_store::{EntryId, SyncTask};
use tokio::sync::oneshot;

use super::ignore;
use crate::jobs::{Job, JobEnd};
use crate::session::Session;
use crate::todos;

impl Session {
    pub(super) fn on_run_event(&mut self, event: RunEvent, written: Option<oneshot::Sender<EntryId>>) {
        if let Some(run) = self.activity.run_mut() {
            run.open.note(&event);
        }
        match event {
            RunEvent::AgentStart => self.out.event(&Event::AgentStart),
            RunEvent::TurnStart => self.out.event(&Event::TurnStart),
            RunEvent::MessageStart(message) => {
                if matches!(*message, Message::User(_)) {
                    self.queues.delivered(&mut *self.out);
                }
                if !matches!(*message, Message::ToolResult(_)) {
                    self.name_entry();
                }
                self.out.event(&Event::MessageStart { message: Cow::Borrowed(&message) });
            }
            RunEvent::AnswerStart(start) => {
                self.name_entry();
                self.begin_output();
                self.out.open_answer(self.options.stream_updates, &start);
            }
            RunEvent::Stream(event) => {
                self.out.stream(&event);
                self.meter_output(&event);
            }
            RunEvent::MessageEnd(message) => self.on_message_end(&message, written),
            RunEvent::ToolStart { call } => self.out.event(&Event::ToolExecutionStart {
                tool_call_id: Cow::Borrowed(&call.id),
                tool_name: Cow::Borrowed(&call.name),
                args: Cow::Borrowed(&call.arguments),
            }),
            RunEvent::ToolUpdate { call, output } => self.on_tool_update(&call, &output),
            RunEvent::ToolEnd { call, output } => self.on_tool_end(&call, &output),
            RunEvent::TurnEnd { message, results } => {
                self.out
                    .event(&Event::TurnEnd { message: Cow::Borrowed(&message), tool_results: Cow::Borrowed(&results) });
                self.append_deferred_messages();
                self.record_usage();
            }
            RunEvent::AgentEnd { messages } => self.on_agent_end(&messages),
        }
    }

    /// Chooses the id of the message that begins, so that it can be told by it while it grows.
    fn name_entry(&mut self) {
        let id = self.store.new_entry_id();
        self.out.entry(&id);
        if let Some(run) = self.activity.run_mut() {
            run.entry = Some(id);
        }
    }

    /// Stores the message, then announces it: a host that sees the event may rely on the file.
    pub(super) fn on_message_end(&mut self, message: &Arc<Message>, written: Option<oneshot::Sender<EntryId>>) {
        let is_user = matches!(**message, Message::User(_));
        let input = self.activity.run_mut().filter(|_| is_user).and_then(|run| run.inputs.pop_front());
        let named = self.activity.run_mut().and_then(|run| run.entry.take());
        let entry = match input {
            Some(input) => self.store.append_input_as(input, named, message),
            None => self.store.append_message_as(named, &todos::stored_form(message)),
        };
        self.report_store();
        self.out.event(&Event::MessageEnd { message: Cow::Borrowed(message) });
        self.note_retry_success(message);
        self.note_progress(message);
        self.note_spending(message);
        if let Some(answer) = message.as_assistant() {
            self.note_checkpoint_place(&entry);
            self.report_late_failure(answer);
        }
        let must_wait = is_user || self.options.fsync == Fsync::Always;
        match self.sync_task() {
            Some(task) if must_wait => self.jobs.spawn_blocking(Job::Background, move || {
                let end = sync(task);
                tell(written, entry);
                end
            }),
            Some(task) => {
                tell(written, entry);
                self.jobs.spawn_blocking(Job::Background, move || sync(task));
            }
            None => tell(written, entry),
        }
    }

    fn sync_task(&mut self) -> Option<SyncTask> {
        if self.options.fsync == Fsync::Never {
            return None;
        }
        self.store.sync_handle()
    }

    fn on_tool_update(&mut self, call: &Call, output: &ToolOutput) {
        self.out.event(&Event::ToolExecutionUpdate {
            tool_call_id: Cow::Borrowed(&call.id),
            tool_name: Cow::Borrowed(&call.name),
            args: Cow::Borrowed(&call.arguments),
            partial_result: ToolResult {
                content: Cow::Borrowed(&output.content),
                details: output.details.as_ref().map(Cow::Borrowed),
                terminate: None,
                usage: None,
            },
        });
    }

    pub(super) fn on_tool_end(&mut self, call: &Call, output: &ToolOutput) {
        self.tell_denied(call, output);
        self.out.event(&Event::ToolExecutionEnd {
            tool_call_id: Cow::Borrowed(&call.id),
            tool_name: Cow::Borrowed(&call.name),
            result: ToolResult {
                content: Cow::Borrowed(&output.content),
                details: output.details.as_ref().map(Cow::Borrowed),
                terminate: output.terminate.then_some(true),
                usage: output.usage.as_ref().map(Cow::Borrowed),
            },
            is_error: output.is_error,
        });
        self.tell_limited_call(call, output);
        self.note_call(call, output);
        self.end_checkpoint(&call.id);
    }
}

fn sync(task: SyncTask) -> JobEnd {
    task.run().map_or_else(JobEnd::Report, |()| JobEnd::Done)
}

/// Tells the run that its message is stored.
fn tell(written: Option<oneshot::Sender<EntryId>>, entry: EntryId) {
    if let Some(written) = written {
        ignore(written.send(entry));
    }
}
