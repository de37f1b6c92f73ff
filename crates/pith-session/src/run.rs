//! Starting a run, following it, and what comes after it; the session's side.

use std::sync::Arc;

use pith_agent::link::{Call, Limits};
use pith_agent::{Opening, Queue, RunEvent, Turn, now_ms};
use pith_ai::registry::NO_MODEL;
use pith_ai::settings::Fsync;
use pith_ext::EventName;
use pith_protocol::{AssistantMessage, ErrorKind, Event, LlmCall, Message, StopReason, ToolResult};
use pith_store::EntryId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::activity::{ActiveRun, Activity, JobEnd, Open};
use crate::extensions::Observer;
use crate::retry::Next;
use crate::run_link::{FromRun, SessionLink};
use crate::session::Session;

/// A question whose asker is gone needs no answer.
fn ignore<T>(_sent: Result<(), T>) {}

fn tell(taken: Option<oneshot::Sender<EntryId>>, entry: EntryId) {
    if let Some(taken) = taken {
        ignore(taken.send(entry));
    }
}

/// Messages a run may be ahead of the session.
const BACKLOG: usize = 256;

impl Session {
    /// Starts a run. The caller has checked that there is a model and nothing runs.
    pub(crate) fn start_run(&mut self, opening: Opening) {
        let cancel = CancellationToken::new();
        let (to_session, run_events) = mpsc::channel(BACKLOG);
        let prompted = self.take_prompted();
        let mut link = SessionLink {
            to_session,
            room: self.out.room(),
            cancel: cancel.clone(),
            images: self.workbench.image_rules(),
            n_turns: 0,
            observer: self.extensions.handle().map(|handle| Observer::new(handle.clone(), cancel.clone())),
            sentinel: self.ttsr.sentinel(),
        };
        let token = cancel.clone();
        let task = self.jobs.spawn(async move {
            let opening = link.open(opening, prompted).await;
            pith_agent::run(opening, &mut link, &token).await;
            JobEnd::Done
        });
        self.run_events = Some(run_events);
        self.activity = Activity::Running(ActiveRun { task: task.id(), cancel, n_turns: 0, open: Open::default() });
    }

    /// Stops whatever talks to the model, or waits to.
    pub(crate) fn cancel_run(&mut self) {
        if let Some(summary) = &self.summary {
            summary.cancel.cancel();
        }
        match &self.activity {
            Activity::Idle | Activity::Summarising => {}
            Activity::Running(run) => {
                run.cancel.cancel();
                if let Some(handle) = self.extensions.handle() {
                    handle.abort_run();
                }
                self.ttsr.forget_pending();
            }
            Activity::Settling { cancel } => cancel.cancel(),
            Activity::Retrying { .. } => {
                self.cancel_retry();
                self.settle(true);
            }
        }
    }

    pub(crate) fn on_run(&mut self, message: FromRun) {
        // An answer nobody waits for any more belongs to a run that is ending.
        match message {
            FromRun::Event(event, taken) => self.on_run_event(event, taken),
            FromRun::Has(queue, answer) => ignore(answer.send(!self.is_closing && self.queues.has(queue))),
            FromRun::Take(queue, answer) => ignore(answer.send(self.take_queued(queue))),
            FromRun::Turn(answer) => ignore(answer.send(self.next_turn())),
            FromRun::BeforeTurn(go) => self.before_turn(go),
            FromRun::Prompted(start, answer) => {
                self.take_run_prompt(start);
                ignore(answer.send(()));
            }
            FromRun::RulesBroken(rules) => self.on_rules_broken(rules),
            FromRun::Boundary(boundary, answer) => {
                ignore(answer.send(self.apply_boundary(EventName::TurnEnd, boundary)));
            }
            FromRun::IsInterrupted(answer) => {
                let is_immediate = self.options.interrupt_mode == pith_protocol::InterruptMode::Immediate;
                ignore(answer.send(is_immediate && self.queues.has(Queue::Steering)));
            }
        }
    }

    fn on_run_event(&mut self, event: RunEvent, taken: Option<oneshot::Sender<EntryId>>) {
        if let Activity::Running(run) = &mut self.activity {
            run.open.follow(&event);
        }
        match event {
            RunEvent::AgentStart => self.out.event(&Event::AgentStart),
            RunEvent::TurnStart => self.on_turn_start(),
            RunEvent::MessageStart(message) => {
                if matches!(*message, Message::User(_)) {
                    self.queues.delivered(&mut *self.out);
                }
                self.out.event(&Event::MessageStart { message: &message });
            }
            RunEvent::AnswerStart(start) => {
                self.out.open_answer(self.options.stream_updates, &start);
            }
            RunEvent::Stream(event) => self.out.stream(&event),
            RunEvent::MessageEnd(message) => self.on_message_end(&message, taken),
            RunEvent::ToolStart { call } => self.out.event(&Event::ToolExecutionStart {
                tool_call_id: &call.id,
                tool_name: &call.name,
                args: &call.arguments,
            }),
            RunEvent::ToolUpdate { call, output } => self.on_tool_update(&call, &output),
            RunEvent::ToolEnd { call, output } => self.on_tool_end(&call, &output),
            RunEvent::TurnEnd { message, results } => {
                self.out.event(&Event::TurnEnd { message: &message, tool_results: &results });
                self.append_waiting_messages();
            }
            RunEvent::AgentEnd { messages } => self.on_agent_end(&messages),
        }
    }

    fn on_turn_start(&mut self) {
        if let Activity::Running(run) = &mut self.activity {
            run.n_turns += 1;
        }
        self.out.event(&Event::TurnStart);
    }

    /// Writes the message down, then says so: a host that saw the event may rely on the file.
    fn on_message_end(&mut self, message: &Arc<Message>, taken: Option<oneshot::Sender<EntryId>>) {
        let entry = self.store.append_message(message);
        self.report_store();
        self.out.event(&Event::MessageEnd { message });
        self.note_success(message);
        self.note_progress(message);
        if let Some(answer) = message.as_assistant() {
            self.judge_accepted(answer);
        }
        let must_wait = matches!(**message, Message::User(_)) || self.options.fsync == Fsync::Always;
        match self.sync_task() {
            Some(task) if must_wait => {
                self.jobs.spawn_blocking(move || {
                    let end = task.run().map_or_else(JobEnd::Report, |()| JobEnd::Done);
                    tell(taken, entry);
                    end
                });
            }
            Some(task) => {
                tell(taken, entry);
                self.jobs.spawn_blocking(move || task.run().map_or_else(JobEnd::Report, |()| JobEnd::Done));
            }
            None => tell(taken, entry),
        }
    }

    fn sync_task(&mut self) -> Option<pith_store::SyncTask> {
        if self.options.fsync == Fsync::Never {
            return None;
        }
        self.store.sync_handle()
    }

    fn on_tool_update(&mut self, call: &Call, output: &pith_agent::ToolOutput) {
        let details = output.details.as_ref();
        self.out.event(&Event::ToolExecutionUpdate {
            tool_call_id: &call.id,
            tool_name: &call.name,
            args: &call.arguments,
            partial_result: ToolResult { content: &output.content, details, terminate: None, usage: None },
        });
    }

    fn on_tool_end(&mut self, call: &Call, output: &pith_agent::ToolOutput) {
        self.out.event(&Event::ToolExecutionEnd {
            tool_call_id: &call.id,
            tool_name: &call.name,
            result: ToolResult {
                content: &output.content,
                details: output.details.as_ref(),
                terminate: output.terminate.then_some(true),
                usage: output.usage.as_ref(),
            },
            is_error: output.is_error,
        });
    }

    fn on_agent_end(&mut self, messages: &[Arc<Message>]) {
        self.run_events = None;
        let Activity::Running(run) = std::mem::replace(&mut self.activity, Activity::Idle) else { return };
        let was_aborted = run.cancel.is_cancelled() || self.is_closing;
        let answer = messages.iter().rev().find_map(|message| message.as_assistant());
        let next = if was_aborted { Next::Settle } else { self.retry.after(answer, &self.options.retry) };
        let error = answer.and_then(|answer| answer.error_message.as_deref()).unwrap_or_default();
        self.out.event(&Event::AgentEnd { messages, will_retry: matches!(next, Next::Wait { .. }) });
        match next {
            Next::Wait { attempt, delay } => return self.wait_to_retry(attempt, delay, error),
            Next::GiveUp { attempt } => {
                self.out.event(&Event::AutoRetryEnd { success: false, attempt, final_error: Some(error) });
            }
            Next::Settle => {}
        }
        if let Some(opening) = self.rule_opening() {
            return self.start_run(opening);
        }
        if was_aborted || !self.compact_after_run(answer) {
            self.go_on(was_aborted);
        }
    }

    /// The next run, if something is queued or left to do; the end of the activity otherwise.
    pub(crate) fn go_on(&mut self, was_aborted: bool) {
        let opening = if was_aborted { None } else { self.continuation().or_else(|| self.reminder()) };
        match opening {
            Some(opening) => self.start_run(opening),
            None => self.settle(was_aborted),
        }
    }

    /// A message that was queued while the run was ending keeps the activity alive.
    pub(crate) fn continuation(&self) -> Option<Opening> {
        if self.queues.has(Queue::Steering) {
            Some(Opening::Steering)
        } else if self.queues.has(Queue::FollowUp) {
            Some(Opening::FollowUps)
        } else {
            None
        }
    }

    /// Nothing will happen any more without a new command, unless extensions want more.
    pub(crate) fn settle(&mut self, was_aborted: bool) {
        if was_aborted || !self.ask_before_settling() {
            self.end_activity(was_aborted);
        }
    }

    /// The activity is over; whoever waited for that is served.
    pub(crate) fn tell_settled(&mut self, was_aborted: bool) {
        self.activity = Activity::Idle;
        self.out.event(&Event::AgentSettled { aborted: was_aborted });
        self.rest_soon();
        self.serve_waiters();
    }

    fn take_queued(&mut self, queue: Queue) -> Vec<Arc<Message>> {
        let attribution = self.options.attribution;
        self.queues.take(queue).into_iter().map(|item| item.into_message(attribution)).collect()
    }

    /// The request for the next answer, from the state of this moment.
    fn next_turn(&mut self) -> Turn {
        let model = self.models.current().cloned();
        let mut blank = model.as_ref().map_or_else(AssistantMessage::default, |model| AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        });
        let call = match (model, self.turn_limit()) {
            (_, Some(limit)) => {
                blank.error = Some(pith_ai::failure::failure(ErrorKind::Limit));
                Err(format!("The run was stopped: it reached the limit of {limit} turns (maxTurns)."))
            }
            (None, None) => Err(NO_MODEL.to_owned()),
            (Some(model), None) => Ok((self.client.clone(), self.request(model))),
        };
        let guard = self.extensions.handle().map(|handle| self.guard(handle));
        Turn { blank, call, tools: self.tools.active().clone(), guard, limits: self.limits() }
    }

    fn limits(&self) -> Limits {
        Limits { reports_aborted_calls: self.options.reports_aborted_calls, ..Limits::default() }
    }

    fn request(&self, model: Arc<pith_protocol::Model>) -> LlmCall {
        LlmCall {
            thinking: self.models.level(),
            model,
            system_prompt: self.prompt_in_force(),
            messages: self.store.messages().to_vec(),
            tools: self.tools.active().specs().clone(),
            max_tokens: None,
            session_id: Some(self.store.id().into()),
            cache: self.options.cache,
            block_images: self.options.block_images,
            hooks: self.request_hooks(),
        }
    }

    fn turn_limit(&self) -> Option<u32> {
        let Activity::Running(run) = &self.activity else { return None };
        self.options.max_turns.filter(|limit| run.n_turns > *limit)
    }

    /// A bug ended the run's task: close what it left open, so that no host waits for ever.
    pub(crate) fn on_run_panic(&mut self, error: &JoinError) {
        let Activity::Running(run) = &mut self.activity else { return };
        crate::state::log_line(&format!("the run ended unexpectedly: {error}"));
        let open = std::mem::take(&mut run.open);
        let mut messages = open.messages;
        if !open.is_started {
            self.out.event(&Event::AgentStart);
        }
        for call in &open.calls {
            self.on_tool_end(call, &pith_agent::ToolOutput::error("Internal error"));
        }
        let failed = Arc::new(Message::Assistant(AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("Internal error: the run ended unexpectedly".to_owned()),
            ..self.next_turn().blank
        }));
        if !open.turn {
            self.out.event(&Event::TurnStart);
        }
        if !open.has_message {
            self.out.event(&Event::MessageStart { message: &failed });
        }
        self.on_message_end(&failed, None);
        messages.push(failed.clone());
        self.out.event(&Event::TurnEnd { message: &failed, tool_results: &[] });
        self.on_agent_end(&messages);
    }
}

impl Open {
    fn follow(&mut self, event: &RunEvent) {
        match event {
            RunEvent::AgentStart => self.is_started = true,
            RunEvent::TurnStart => self.turn = true,
            RunEvent::MessageStart(_) | RunEvent::AnswerStart(_) => self.has_message = true,
            RunEvent::MessageEnd(message) => {
                self.has_message = false;
                self.messages.push(message.clone());
            }
            RunEvent::ToolStart { call } => self.calls.push(call.clone()),
            RunEvent::ToolEnd { call, .. } => self.calls.retain(|open| open.id != call.id),
            RunEvent::TurnEnd { .. } => self.turn = false,
            RunEvent::Stream(_) | RunEvent::ToolUpdate { .. } | RunEvent::AgentEnd { .. } => {}
        }
    }
}
