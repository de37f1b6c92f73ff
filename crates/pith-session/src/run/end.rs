//! What follows a run: another attempt, a compaction, the next run, or the end of the work.

use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::{Opening, Queue, ToolOutput};
use pith_ext::Boundary;
use pith_ext::EventName;
use pith_protocol::{AssistantMessage, Event, Message, StopReason};
use serde_json::json;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::RetryDecision;
use crate::activity::{Stage, Work};
use crate::extensions::{AbortGrace, outcome};
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::run::RunStart;
use crate::session::Session;

impl Session {
    pub(super) fn on_agent_end(&mut self, messages: &[Arc<Message>]) {
        let Some((mut work, run)) = self.activity.end_run() else { return };
        let was_aborted = self.was_aborted(&run.cancel) || self.is_closing;
        let answer = messages.iter().rev().find_map(|message| message.as_assistant());
        let next = if was_aborted { RetryDecision::Settle } else { work.retry.after(answer, &self.options.retry) };
        let error = answer.and_then(|answer| answer.error_message.as_deref()).unwrap_or_default();
        self.out.event(&Event::AgentEnd {
            messages: Cow::Borrowed(messages),
            will_retry: matches!(next, RetryDecision::Wait { .. }),
        });
        match next {
            RetryDecision::Wait { attempt, delay } => return self.wait_to_retry(work, attempt, delay, error),
            RetryDecision::GiveUp { attempt } => {
                self.out.event(&Event::AutoRetryEnd { success: false, attempt, final_error: Some(error.into()) });
            }
            RetryDecision::Settle => {}
        }
        if let Some(opening) = self.rule_opening() {
            return self.start_run(work, RunStart::with(opening));
        }
        if was_aborted {
            // An abort right after a failed attempt also ends the retries.
            self.cancel_attempts(&mut work);
            return self.settle(work, true);
        }
        self.compact_after_run(work, answer);
    }

    /// Starts the next run if something is queued or left to do; ends the work otherwise.
    pub(crate) fn go_on(&mut self, work: Box<Work>) {
        if let Some(opening) = self.continuation() {
            self.begin_allowance();
            return self.start_run(work, RunStart::with(opening));
        }
        let reminder = if self.governor.ended.is_some() { None } else { self.reminder() };
        match reminder {
            Some(opening) => self.start_run(work, RunStart::with(opening)),
            None => self.settle(work, false),
        }
    }

    /// How to continue if a message was queued while the run was ending.
    fn continuation(&self) -> Option<Opening> {
        // What is queued waits until a limit of the session is raised.
        if self.is_closing || self.governor.ended.is_some() {
            None
        } else if self.queues.has(Queue::Steering) {
            Some(Opening::Steering)
        } else if self.queues.has(Queue::FollowUp) {
            Some(Opening::FollowUps)
        } else {
            None
        }
    }

    /// Ends the work, unless extensions continue it. They are not asked about aborted work, nor if there is no time.
    pub(crate) fn settle(&mut self, work: Box<Work>, was_aborted: bool) {
        let is_asked = !was_aborted && !self.is_closing && !self.is_time_up();
        let handle = self.listeners(EventName::AgentBeforeSettle).filter(|_| is_asked);
        let Some(handle) = handle else { return self.end_work(work, was_aborted) };
        let last = self.store.messages().iter().rev().find_map(|message| message.as_assistant());
        let payload = json!({ "outcome": outcome(last.map(|answer| answer.stop_reason)) });
        let cancel = CancellationToken::new();
        self.activity.enter(work, Stage::BeforeSettling { cancel: cancel.clone() });
        self.jobs.spawn(Job::Announcement, async move {
            let mut grace = AbortGrace::new(cancel);
            let boundary = grace.wait(handle.boundary(EventName::AgentBeforeSettle, payload)).await;
            JobEnd::Announced(boundary.flatten())
        });
    }

    /// Called when extensions have been told what the activity waited for.
    pub(crate) fn on_announced(&mut self, boundary: Option<Boundary>) {
        match self.activity.stage() {
            Some(Stage::BeforeSettling { .. }) => self.on_before_settle_handled(boundary.unwrap_or_default()),
            Some(Stage::Settling { .. }) => self.tell_settled(),
            _ => self.on_compaction_announced(),
        }
    }

    fn on_before_settle_handled(&mut self, boundary: Boundary) {
        let is_continued = self.apply_boundary(EventName::AgentBeforeSettle, boundary);
        let Some((work, cancel)) = self.activity.end_before_settling() else { return };
        let was_aborted = self.was_aborted(&cancel);
        let opening = match self.continuation() {
            _ if was_aborted || self.is_closing => None,
            Some(opening) => {
                self.begin_allowance();
                Some(opening)
            }
            // Otherwise an extension that always goes on would do so for ever.
            None => (is_continued && !self.ended_at_limit()).then_some(Opening::Continue),
        };
        match opening {
            Some(opening) => self.start_run(work, RunStart::with(opening)),
            None => self.end_work(work, was_aborted),
        }
    }

    /// Tells extensions, then the host, that the work is over.
    fn end_work(&mut self, work: Box<Work>, was_aborted: bool) {
        self.flush_deferred();
        self.record_usage();
        self.trace_end(&work, was_aborted);
        let cancel = CancellationToken::new();
        if was_aborted || self.is_time_up() {
            // Somebody waits for this, so handlers get little time.
            cancel.cancel();
        }
        self.activity.enter(work, Stage::Settling { cancel: cancel.clone(), was_aborted });
        let Some(handle) = self.listeners(EventName::AgentSettled) else { return self.tell_settled() };
        self.jobs.spawn(Job::Announcement, async move {
            AbortGrace::new(cancel).wait(handle.notify(EventName::AgentSettled, json!({}))).await;
            JobEnd::Announced(None)
        });
    }

    fn tell_settled(&mut self) {
        let Some(aborted) = self.activity.end_settling() else { return };
        self.store.unlock();
        info!(target: "pith::run", is_aborted = aborted, "settled");
        let limit = self.governor.ended.take();
        self.out.event(&Event::AgentSettled { aborted, limit });
        self.schedule_rest();
        self.after_activity();
    }

    /// Called when the run's task panicked. Closes what it left open, so that no host waits for ever.
    pub(crate) fn on_run_panic(&mut self, error: &JoinError) {
        let Some(run) = self.activity.run_mut() else { return };
        log_line(&format!("the run ended unexpectedly: {error}"));
        let open = std::mem::take(&mut run.open);
        // The run that waited for the compaction is gone.
        if let Some((compaction, _)) = run.compaction.take() {
            self.abandon_compaction(&compaction);
        }
        let mut messages = open.messages;
        if !open.is_started {
            self.out.event(&Event::AgentStart);
        }
        for call in &open.calls {
            self.on_tool_end(call, &ToolOutput::error("Internal error"));
        }
        let failed = Arc::new(Message::Assistant(AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("Internal error: the run ended unexpectedly".to_owned()),
            ..self.blank_answer()
        }));
        if !open.turn {
            self.out.event(&Event::TurnStart);
        }
        if !open.has_message {
            self.out.event(&Event::MessageStart { message: Cow::Borrowed(&failed) });
        }
        self.on_message_end(&failed, None);
        messages.push(failed.clone());
        self.out.event(&Event::TurnEnd { message: Cow::Borrowed(&failed), tool_results: Cow::Borrowed(&[]) });
        self.on_agent_end(&messages);
    }
}
