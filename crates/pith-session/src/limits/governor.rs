//! The governor: what a session may use, what it has used, and what happens when that is all.

use std::collections::BTreeSet;
use std::time::Duration;

use pith_agent::control::limit_of;
use pith_agent::link::Call;
use pith_agent::{CallControl, Hold, ToolOutput};
use pith_config::Diagnostic;
use pith_config::settings::Limits;
use pith_protocol::audit::{AuditRecord, LimitRecord};
use pith_protocol::commands::SetLimits;
use pith_protocol::limits::LimitUses;
use pith_protocol::{Amount, AssistantEvent, CommandError, ErrorCode, Event, LimitName, LimitPhase, LimitUse, Model};
use pith_tools::CommandLimits;
use pith_tools::process::ProcessLimits;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::clock::{OutputMeter, Stopwatch, seconds, shown_seconds};
use super::counters::{Counters, RECORD, Record};
use super::disk::Disk;
use super::loops::Loops;
use super::pause::Paused;
use super::{COST_LIMIT, Refusal, Spending, no_price};
use crate::reply::Reply;
use crate::session::Session;

/// The limits of a session and what was used of them. Without limits nothing is counted.
pub(crate) struct Governor {
    /// What one prompt has used of its allowance.
    pub prompt: Spending,
    /// What `set_limits` has set and taken away.
    set: Limits,
    removed: Vec<LimitName>,
    /// What holds: settings, flags and commands together.
    limits: Limits,
    counters: Counters,
    /// Time since the last record of it.
    wall: Stopwatch,
    tool: Stopwatch,
    meter: OutputMeter,
    pub(super) disk: Disk,
    /// Limits of which the host was told that they are near.
    told: BTreeSet<LimitName>,
    /// The limit that has ended the work.
    pub ended: Option<LimitUse>,
    /// Whether something that ran was stopped for it.
    pub has_stopped: bool,
    pub(super) loops: Loops,
    pub(super) paused: Option<Paused>,
    /// Tells running calls what stands still. The calls of a run have the receivers.
    pub hold: watch::Sender<Hold>,
}

impl Governor {
    pub fn new(limits: Limits) -> Self {
        Governor {
            prompt: Spending::default(),
            set: Limits::default(),
            removed: Vec::new(),
            limits,
            counters: Counters::default(),
            wall: Stopwatch::default(),
            tool: Stopwatch::default(),
            meter: OutputMeter::default(),
            disk: Disk::default(),
            told: BTreeSet::new(),
            ended: None,
            has_stopped: false,
            loops: Loops::default(),
            paused: None,
            hold: watch::Sender::default(),
        }
    }

    /// Called when an input starts a run.
    pub fn begin_work(&mut self) {
        self.ended = None;
        self.has_stopped = false;
        self.loops.clear();
    }

    /// Called when the session moves to another directory.
    pub fn leave_directory(&mut self) {
        self.disk = Disk::default();
    }

    /// Whether nothing is limited.
    pub fn is_off(&self) -> bool {
        self.limits.is_empty()
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Applies limits of settings and flags below those of commands.
    pub fn apply(&mut self, configured: &Limits) {
        let mut limits = configured.clone().without(&self.removed);
        limits.override_with(&self.set);
        self.limits = limits;
        self.told.clear();
    }

    /// Takes the limits of a command; nothing if one of them cannot be read.
    fn set(&mut self, mut limits: serde_json::Map<String, Value>) -> Result<(), String> {
        let is_removed = |name: &LimitName| limits.get(name.as_str()).is_some_and(Value::is_null);
        let removed: Vec<LimitName> = LimitName::ALL.iter().copied().filter(is_removed).collect();
        removed.iter().for_each(|name| _ = limits.remove(name.as_str()));
        let new = Limits::read(&Value::Object(limits));
        if let Some(problem) = new.problems.first() {
            return Err(problem.clone());
        }
        self.removed.retain(|name| new.max(*name).is_none());
        self.set = std::mem::take(&mut self.set).without(&removed);
        self.set.override_with(&new);
        self.removed.extend(removed);
        Ok(())
    }

    /// What was used of every limit.
    pub fn uses(&self) -> Vec<LimitUse> {
        self.limits.iter().map(|(name, max)| LimitUse { name, used: self.used(name), max }).collect()
    }

    fn used(&self, name: LimitName) -> Amount {
        match name {
            LimitName::Turns => self.counters.turns.into(),
            LimitName::Tokens => self.counters.tokens.into(),
            LimitName::OutputTokens => self.counters.output_tokens.into(),
            LimitName::CostUsd => Amount(self.counters.cost),
            LimitName::WallSeconds => shown_seconds(self.wall_time()),
            LimitName::ToolSeconds => shown_seconds(self.tool_time()),
            LimitName::DiskMb => self.disk.growth(self.counters.record.disk),
            // These begin anew with every call.
            LimitName::ToolCallSeconds
            | LimitName::Processes
            | LimitName::MemoryMb
            | LimitName::FileMb
            | LimitName::OutputMb
            | LimitName::Repeats => Amount(0.0),
        }
    }

    fn wall_time(&self) -> Duration {
        self.counters.record.wall() + self.wall.elapsed()
    }

    fn tool_time(&self) -> Duration {
        self.counters.record.tool() + self.tool.elapsed()
    }

    /// Which limits are used up.
    fn reached(&self) -> impl Iterator<Item = LimitUse> {
        let is_used_up = move |reached: &LimitUse| match reached.name {
            LimitName::WallSeconds => seconds(reached.max).is_some_and(|max| self.wall_time() >= max),
            LimitName::ToolSeconds => seconds(reached.max).is_some_and(|max| self.tool_time() >= max),
            _ => reached.used >= reached.max,
        };
        self.uses().into_iter().filter(is_used_up)
    }

    /// Which limit of time is used up.
    pub fn time_up(&self) -> Option<LimitUse> {
        let is_of_time = |reached: &LimitUse| matches!(reached.name, LimitName::WallSeconds | LimitName::ToolSeconds);
        self.reached().find(is_of_time)
    }

    /// Why no answer is asked for. `model` is the one that would be asked.
    pub fn refusal(&self, model: Option<&Model>) -> Option<Refusal> {
        if let Some(problem) = self.limits.problems.first() {
            return Some(Refusal::Unwatched(problem.clone()));
        }
        let unwatched = self.unwatched(model).next().filter(|_| self.limits.is_strict);
        self.ended.or_else(|| self.reached().next()).map(Refusal::Reached).or(unwatched.map(Refusal::Unwatched))
    }

    /// Why limits cannot be watched that are set.
    pub fn unwatched(&self, model: Option<&Model>) -> impl Iterator<Item = String> {
        let disk = self.limits.max(LimitName::DiskMb).and_then(|_| self.disk.unwatched());
        self.unpriced(model).into_iter().chain(disk)
    }

    fn unpriced(&self, model: Option<&Model>) -> Option<String> {
        self.limits.max(LimitName::CostUsd)?;
        let unpriced = model.filter(|model| !model.has_prices()).map(|model| model.id.as_str());
        Some(no_price(COST_LIMIT, unpriced.or(self.counters.unpriced.as_deref())?))
    }

    /// The next moment at which a clock reaches a limit, or the share of it that hosts are told of.
    pub fn next_moment(&self) -> Option<Instant> {
        let clocks = [
            (LimitName::WallSeconds, self.wall_time(), self.wall.is_running()),
            (LimitName::ToolSeconds, self.tool_time(), self.tool.is_running()),
        ];
        let moment = |(name, elapsed, is_running): (LimitName, Duration, bool)| {
            let max = self.limits.max(name).filter(|_| is_running)?;
            let soft = self.limits.soft(max).filter(|_| !self.told.contains(&name));
            // A limit beyond what a clock can hold is never reached.
            Instant::now().checked_add(seconds(soft.unwrap_or(max))?.saturating_sub(elapsed))
        };
        clocks.into_iter().filter_map(moment).min()
    }

    /// Lets clocks run or stand still.
    fn run_clocks(&mut self, is_working: bool, has_calls: bool, is_held: bool) {
        self.wall.set_running(is_working && !is_held);
        self.tool.set_running(has_calls && !is_held);
        self.hold.send_if_modified(|hold| std::mem::replace(&mut hold.is_time_held, is_held) != is_held);
    }

    /// What is to be recorded of the branch. `None` if none of it is limited, or it is recorded already.
    fn take_record(&mut self) -> Option<Record> {
        let is_limited = |name| self.limits.max(name).is_some();
        let has_times = is_limited(LimitName::WallSeconds) || is_limited(LimitName::ToolSeconds);
        let mut record = self.counters.record;
        if has_times {
            record.wall_ms = self.wall_time().as_millis() as u64;
            record.tool_ms = self.tool_time().as_millis() as u64;
        }
        if is_limited(LimitName::DiskMb) {
            record.disk = self.disk.record(record.disk);
        }
        if record == self.counters.record {
            return None;
        }
        if has_times {
            self.wall.restart();
            self.tool.restart();
        }
        Some(record)
    }

    /// Limits that have become near since the host was told.
    fn newly_near(&mut self) -> Vec<LimitUse> {
        let is_near = |near: &LimitUse| self.limits.soft(near.max).is_some_and(|soft| near.used >= soft);
        let mut near: Vec<LimitUse> = self.uses().into_iter().filter(is_near).collect();
        // Another branch, or a raised limit, may be far from it again.
        self.told.retain(|name| near.iter().any(|near| near.name == *name));
        near.retain(|near| self.told.insert(near.name) && near.used < near.max);
        near
    }

    /// What one command of the model may use.
    pub fn command_limits(&self) -> CommandLimits {
        let max = |name| self.limits.max(name).map(|max| max.0 as u64);
        let processes = ProcessLimits {
            processes: max(LimitName::Processes),
            memory_mb: max(LimitName::MemoryMb),
            file_mb: max(LimitName::FileMb),
        };
        CommandLimits { processes, output_mb: max(LimitName::OutputMb) }
    }

    /// What the calls of a run are limited by.
    pub fn call_time(&self) -> Option<Duration> {
        self.limits.max(LimitName::ToolCallSeconds).and_then(seconds)
    }
}

impl Session {
    /// Called before the session waits for its next event: counts, lets clocks run or stand still, and returns when a
    /// limit of time has to be looked at.
    pub(crate) fn tend_limits(&mut self) -> Option<Instant> {
        if !self.governor.is_off() {
            self.count_usage();
            let has_calls = self.activity.run().is_some_and(|run| run.has_open_calls());
            let is_held = self.is_paused() || self.extensions.dialogs.is_any_open() || self.permissions.is_waiting();
            self.governor.run_clocks(self.activity.is_working(), has_calls, is_held);
        }
        self.deadline()
    }

    /// Counts what is new on the branch, and tells the host of limits that are near.
    pub(crate) fn count_usage(&mut self) {
        self.governor.counters.catch_up(&self.store);
        for near in self.governor.newly_near() {
            self.tell_limit(&near, LimitPhase::Soft);
        }
    }

    fn tell_limit(&mut self, reached: &LimitUse, phase: LimitPhase) {
        let LimitUse { name, used, max } = *reached;
        self.out.event(&Event::LimitReached { limit: name, used, max, phase });
    }

    fn record_limit(&mut self, reached: &LimitUse, tool_call_id: Option<String>) {
        let LimitUse { name: limit, used, max } = *reached;
        info!(target: "pith::limits", %limit, "reached");
        self.trace_limit(limit.as_str());
        self.tell_limit(reached, LimitPhase::Hard);
        self.audit(&AuditRecord::Limit(LimitRecord { limit, used, max, tool_call_id }));
    }

    /// Notes that a limit ends the work, and says so; once.
    pub(crate) fn end_at_limit(&mut self, reached: LimitUse) {
        if self.governor.ended.is_none() {
            self.governor.ended = Some(reached);
            self.record_limit(&reached, None);
        }
    }

    /// Says which limit has ended a call.
    pub(crate) fn tell_limited_call(&mut self, call: &Call, output: &ToolOutput) {
        if self.governor.is_off() {
            return;
        }
        if let Some(reached) = limit_of(output) {
            self.record_limit(&reached, Some(call.id.to_string()));
        }
    }

    /// Why a limit of the session allows no answer.
    pub(crate) fn session_refusal(&self) -> Option<Refusal> {
        if self.governor.is_off() {
            return None;
        }
        self.governor.refusal(self.models.current().map(|model| &**model))
    }

    /// Why a prompt, or a summary, is refused.
    pub(crate) fn check_limits(&self) -> Result<(), CommandError> {
        match self.session_refusal() {
            Some(refusal) => Err(CommandError::new(ErrorCode::Limit, refusal.text())),
            None => Ok(()),
        }
    }

    /// Writes down what was measured, if it is limited.
    pub(crate) fn record_usage(&mut self) {
        if let Some(record) = self.governor.take_record() {
            let data = serde_json::to_value(record).expect("numbers are JSON");
            self.append_custom_entry(RECORD, Some(data));
            self.governor.counters.catch_up(&self.store);
        }
    }

    /// Called when an answer begins.
    pub(crate) fn begin_output(&mut self) {
        self.governor.meter = OutputMeter::default();
    }

    /// Called for each piece of an answer. Stops an answer that passes the limit.
    pub(crate) fn meter_output(&mut self, event: &AssistantEvent) {
        let Some(max) = self.governor.limits.max(LimitName::OutputTokens) else { return };
        let governor = &mut self.governor;
        governor.meter.note(event);
        let used = Amount::from(governor.counters.output_tokens + governor.meter.tokens());
        if used <= max || governor.ended.is_some() {
            return;
        }
        governor.has_stopped = true;
        self.end_at_limit(LimitUse { name: LimitName::OutputTokens, used, max });
        if let Some(run) = self.activity.run() {
            run.cancel.cancel();
        }
    }

    /// How the session reaches the calls of the run.
    pub(crate) fn call_control(&self) -> CallControl {
        let ended_by = self.activity.run().map(|run| run.ended_by.clone()).unwrap_or_default();
        CallControl { hold: Some(self.governor.hold.subscribe()), ended_by }
    }

    /// Called when settings, flags or a command have changed limits.
    pub(crate) fn apply_limits(&mut self) {
        self.governor.apply(&self.options.session_limits);
        if !self.governor.is_off() {
            self.count_usage();
        }
        self.update_call_options();
    }

    pub(crate) fn set_limits(&mut self, call: SetLimits, reply: Reply<SetLimits>) {
        if let Err(problem) = self.governor.set(call.limits) {
            return self.answer(reply, Err(CommandError::new(ErrorCode::InvalidField, problem)));
        }
        self.apply_limits();
        self.answer(reply, Ok(LimitUses { limits: self.governor.uses() }));
    }

    /// What is wrong with limits that were read without a mistake.
    pub(crate) fn limit_diagnostics(&self) -> Vec<Diagnostic> {
        let model = self.models.current().map(|model| &**model);
        let of_prompt = model.and_then(|model| self.options.limits.unwatched(model));
        let unwatched = self.governor.unwatched(model).chain(of_prompt);
        unwatched.map(|why| Diagnostic::without_path("limits", why)).collect()
    }
}
