//! What the user allows: turns, tokens, money and time, for one prompt ([`WorkLimits`]) and for the whole session
//! ([`Governor`]). This module counts and decides; `run/request.rs` asks it before each answer, and the session's loop
//! watches the deadline.
//!
//! Work that reaches a limit ends with an answer of kind `limit`. The conversation stays valid, so a further prompt can
//! continue it; a limit of the session refuses prompts until it is raised.

mod clock;
mod counters;
mod disk;
mod governor;
mod loops;
mod pause;

use std::sync::Arc;
use std::time::Duration;

use pith_agent::Opening;
use pith_ai::failure;
use pith_protocol::{AssistantMessage, ErrorKind, LimitName, LimitUse, Message, Model, StopReason, Usage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::parts::SessionOptions;
use crate::run::RunStart;
use crate::session::Session;
pub(crate) use governor::Governor;
pub(crate) use loops::RepeatAnswer;

/// The limits of a prompt, from flags and settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkLimits {
    /// How many answers of the model.
    pub turns: Option<u32>,
    /// US dollars. Checked before each answer, so the last one may pass it.
    pub cost: Option<f64>,
    pub time: Option<Duration>,
    pub scope: LimitScope,
}

impl WorkLimits {
    /// Why the limit of money cannot be watched for this model.
    fn unwatched(&self, model: &Model) -> Option<String> {
        (self.cost.is_some() && !model.has_prices()).then(|| no_price("--max-cost", &model.id))
    }
}

impl SessionOptions {
    /// Why limits of money cannot be watched for this model.
    pub fn unwatched_costs(&self, model: &Model) -> impl Iterator<Item = String> {
        let is_limited = self.session_limits.max(LimitName::CostUsd).is_some();
        let of_session = (is_limited && !model.has_prices()).then(|| no_price(COST_LIMIT, &model.id));
        of_session.into_iter().chain(self.limits.unwatched(model))
    }
}

const COST_LIMIT: &str = "limits.costUsd";

fn no_price(limit: &str, model: &str) -> String {
    format!("{limit} cannot be watched: no price for {model}")
}

/// What the limits apply to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitScope {
    /// Each prompt has the full allowance.
    #[default]
    Prompt,
    /// All prompts of the session share one, for commands that ask several things.
    Session,
}

/// What has been used since the allowance began.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    n_turns: u32,
    cost: f64,
    /// `None` before the first work, without a limit of time, and when it has passed.
    deadline: Option<Instant>,
    has_begun: bool,
    /// Whether the deadline stopped the work.
    is_time_up: bool,
}

/// A limit that allows no further answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    pub name: &'static str,
    /// What the host reads.
    pub text: String,
}

/// Why no answer is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// A limit of the session is reached.
    Reached(LimitUse),
    /// A limit was meant that cannot be read or watched.
    Unwatched(String),
}

impl Refusal {
    pub fn text(&self) -> String {
        match self {
            Refusal::Reached(reached) => reached.text(),
            Refusal::Unwatched(why) => why.clone(),
        }
    }
}

impl Spending {
    /// Called when an input starts a run.
    fn begin(&mut self, limits: &WorkLimits) {
        if self.has_begun && limits.scope == LimitScope::Session {
            return;
        }
        let deadline = limits.time.map(|time| Instant::now() + time);
        *self = Spending { deadline, has_begun: true, ..Spending::default() };
    }

    /// Counts a message. Answers that failed are not turns, so that retries do not use them up.
    fn note(&mut self, message: &Message) {
        match message {
            Message::Assistant(answer) => {
                self.n_turns += u32::from(!answer.failed());
                self.add(&answer.usage);
            }
            Message::ToolResult(result) => result.usage.iter().for_each(|usage| self.add(usage)),
            _ => {}
        }
    }

    fn add(&mut self, usage: &Usage) {
        self.cost += usage.cost.total.max(0.0);
    }

    /// Called after a pause, which does not count.
    fn postpone(&mut self, pause: Duration) {
        self.deadline = self.deadline.map(|deadline| deadline + pause);
    }

    /// Whether the time is up. Noted, so that it is up only once.
    fn is_due(&mut self) -> bool {
        let is_due = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_due {
            self.deadline = None;
            self.is_time_up = true;
        }
        is_due
    }

    /// Says which limit allows no further answer.
    fn reached(&self, limits: &WorkLimits) -> Option<ReachedLimit> {
        let reached = |name, text| Some(ReachedLimit { name, text });
        if let Some(time) = limits.time.filter(|_| self.is_time_up) {
            return reached("time", format!("The run was stopped: it reached the time limit of {time:?} (--timeout)."));
        }
        if let Some(turns) = limits.turns.filter(|turns| self.n_turns >= *turns) {
            return reached("turns", format!("The run was stopped: it reached the limit of {turns} turns (maxTurns)."));
        }
        let cost = limits.cost.filter(|limit| self.cost >= *limit)?;
        let spent = self.cost;
        reached("cost", format!("The run was stopped: it has cost ${spent:.4}, and the limit is ${cost} (--max-cost)."))
    }
}

impl Session {
    /// Called when an input starts a run: a prompt, or one that was queued.
    pub(crate) fn begin_allowance(&mut self) {
        self.governor.prompt.begin(&self.options.limits);
        self.governor.begin_work();
        self.begin_samples();
    }

    /// Counts a message of the work.
    pub(crate) fn note_spending(&mut self, message: &Message) {
        self.governor.prompt.note(message);
    }

    /// Counts the tokens of a summary.
    pub(crate) fn note_summary(&mut self, usage: &Usage) {
        self.governor.prompt.add(usage);
    }

    /// Says why no further answer is allowed.
    pub(crate) fn limit_reached(&self) -> Option<String> {
        let ended = self.governor.ended.map(|ended| ended.text());
        ended
            .or_else(|| self.governor.prompt.reached(&self.options.limits).map(|reached| reached.text))
            .or_else(|| self.session_refusal().map(|refusal| refusal.text()))
    }

    /// Like `limit_reached`, when the work ends for it: whoever watches is told, and a limit of the session is recorded.
    pub(crate) fn end_work_at_limit(&mut self) -> Option<String> {
        if let Some(reached) = self.governor.prompt.reached(&self.options.limits) {
            self.trace_limit(reached.name);
        } else if let Some(Refusal::Reached(reached)) = self.session_refusal() {
            self.end_at_limit(reached);
        }
        self.limit_reached()
    }

    /// Whether the last answer is one that says which limit was reached.
    pub(crate) fn ended_at_limit(&self) -> bool {
        let last = self.store.messages().iter().rev().find_map(|message| message.as_assistant());
        last.and_then(|answer| answer.error.as_ref()).is_some_and(|failure| failure.kind == ErrorKind::Limit)
    }

    /// Whether a limit has stopped what ran: its time is up, or an answer became too long.
    pub(crate) fn is_time_up(&self) -> bool {
        self.governor.prompt.is_time_up || self.governor.has_stopped
    }

    /// Whether somebody stopped what the token belongs to; limits do not count.
    pub(crate) fn was_aborted(&self, cancel: &CancellationToken) -> bool {
        cancel.is_cancelled() && !self.is_time_up()
    }

    /// When a limit of time has to be looked at; `None` while the work is ending.
    fn deadline(&self) -> Option<Instant> {
        let is_running = self.activity.is_working() && !self.activity.is_stopping();
        let moments = [self.governor.prompt.deadline, self.governor.next_moment()];
        moments.into_iter().flatten().min().filter(|_| is_running && !self.is_paused())
    }

    /// Called when a limit of time has to be looked at. If it is used up, stops what runs; its last answer says why.
    pub(crate) fn on_deadline(&mut self) {
        if self.governor.prompt.is_due() {
            info!(target: "pith::run", "time is up");
        } else if let Some(reached) = self.governor.time_up() {
            self.governor.has_stopped = true;
            self.end_at_limit(reached);
            if let Some(run) = self.activity.run() {
                // Only the first limit ends a run.
                let _ = run.ended_by.set(reached.name);
            }
        } else {
            // The host is told that a limit is near before the next event.
            return;
        }
        match self.activity.end_retry_wait() {
            Some((work, wait)) => {
                wait.abort();
                // The model is not asked: the run ends at once with an answer that says why.
                self.start_run(work, RunStart::with(Opening::Continue));
            }
            None => self.stop_activity(),
        }
    }

    /// Why an answer that was cut off was stopped, if a limit did it.
    pub(crate) fn stopped_by(&self) -> Option<String> {
        self.limit_reached().filter(|_| self.is_time_up())
    }
}

/// Turns an answer that the deadline has cut off into one that says so.
pub(crate) fn limited(answer: &AssistantMessage, why: String) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        stop_reason: StopReason::Error,
        raw_stop_reason: None,
        error_message: Some(why),
        error: Some(failure(ErrorKind::Limit)),
        ..answer.clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(cost: f64, stop_reason: StopReason) -> Message {
        let mut answer = AssistantMessage { stop_reason, ..AssistantMessage::default() };
        answer.usage.cost.total = cost;
        Message::Assistant(answer)
    }

    #[test]
    fn money_is_never_given_back() {
        let limits = WorkLimits { cost: Some(1.0), ..WorkLimits::default() };
        let mut spending = Spending::default();
        spending.begin(&limits);
        spending.note(&answer(-1_000_000.0, StopReason::Stop));
        spending.note(&answer(1.0, StopReason::Stop));
        assert_eq!(spending.reached(&limits).map(|reached| reached.name), Some("cost"));
    }

    #[test]
    fn answers_use_up_turns_and_money_and_failed_ones_only_money() {
        let limits = WorkLimits { turns: Some(2), cost: Some(1.0), ..WorkLimits::default() };
        let mut spending = Spending::default();
        spending.begin(&limits);
        spending.note(&answer(0.25, StopReason::ToolUse));
        spending.note(&answer(0.25, StopReason::Error));
        assert_eq!(spending.reached(&limits), None);
        spending.note(&answer(0.25, StopReason::ToolUse));
        let text = spending.reached(&limits).expect("two turns").text;
        assert_eq!(text, "The run was stopped: it reached the limit of 2 turns (maxTurns).");
        let limits = WorkLimits { turns: None, ..limits };
        assert_eq!(spending.reached(&limits), None);
        spending.note(&answer(0.5, StopReason::Aborted));
        let text = spending.reached(&limits).expect("too much").text;
        assert_eq!(text, "The run was stopped: it has cost $1.2500, and the limit is $1 (--max-cost).");
    }

    #[test]
    fn an_allowance_is_for_a_prompt_or_for_all_of_them() {
        let reached_by_the_second = |scope| {
            let limits = WorkLimits { turns: Some(2), scope, ..WorkLimits::default() };
            let mut spending = Spending::default();
            for _ in 0..2 {
                spending.begin(&limits);
                spending.note(&answer(0.0, StopReason::Stop));
            }
            spending.reached(&limits).is_some()
        };
        assert!(!reached_by_the_second(LimitScope::Prompt));
        assert!(reached_by_the_second(LimitScope::Session));
    }
}
