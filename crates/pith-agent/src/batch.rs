//! The tool calls of one answer.
//!
//! Calls run in parallel and their ends are reported as they come, but the result messages wait and follow the order of
//! the calls: the next request must not depend on timing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use pith_protocol::audit::{PermissionBy, PermissionDecision};
use pith_protocol::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};
use serde_json::Map;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span};

use crate::link::{Call, Limits, Link, RunEvent, Turn};
use crate::prepare::{ABORTED, NotRun, Prepared, Stop, prepare};
use crate::progress::Progress;
use crate::trace::{ToolEnd, ToolSpan, ToolStart, TurnTrace};
use crate::{CallControl, ToolOutput, ToolUpdate, now_ms};

/// Programs that end within this time of each other are reported in the order of their calls.
const TIE_WINDOW: Duration = Duration::from_millis(15);

/// A tool that ignores cancellation is abandoned after this long.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// The results of the calls.
#[derive(Default)]
pub(crate) struct Batch {
    /// In call order.
    pub results: Vec<Arc<Message>>,
    ends_run: bool,
}

impl Batch {
    /// Returns whether the model has yet to see the results.
    pub fn has_unread(&self) -> bool {
        !self.results.is_empty() && !self.ends_run
    }

    /// Runs the calls of an answer, if it has any.
    pub async fn run(
        turn: &Turn,
        answer: &AssistantMessage,
        link: &mut impl Link,
        cancel: &CancellationToken,
        repeats: &mut Repeats,
    ) -> Batch {
        let calls: Vec<&ToolCall> = answer.tool_calls().collect();
        let is_sequential = turn.limits.is_sequential
            || calls.iter().any(|call| turn.tools.get(&call.name).is_some_and(|(tool, _)| tool.is_sequential()));
        let mut batch = Batch { results: Vec::with_capacity(calls.len()), ends_run: !calls.is_empty() };
        // Sequential calls are groups of one.
        let size = if is_sequential { 1 } else { calls.len().max(1) };
        let interrupt = cancel.child_token();
        for (index, group) in calls.chunks(size).enumerate() {
            if index > 0 && !interrupt.is_cancelled() && link.is_interrupted().await {
                interrupt.cancel();
            }
            let stop = Stop { cancel: cancel.clone(), interrupt: interrupt.clone() };
            let mut group = Group::start(turn, answer, group, link, &stop, repeats).await;
            group.execute(turn, link, &stop).await;
            for (call, output) in group.finished() {
                batch.ends_run &= output.terminate;
                batch.results.push(report(&call, output, link).await);
            }
        }
        batch
    }

    /// Ends the calls of an aborted answer: as failed where hosts expect a result for every call, otherwise without a
    /// result.
    pub async fn refuse(turn: &Turn, answer: &AssistantMessage, link: &mut impl Link) -> Vec<Arc<Message>> {
        let mut results = Vec::new();
        if answer.stop_reason != StopReason::Aborted || !turn.limits.reports_aborted_calls {
            return results;
        }
        let why = answer.error_message.as_deref().unwrap_or("the answer was stopped");
        for call in answer.tool_calls() {
            let call = announce(call, link).await;
            let output = ToolOutput::error(format!("Tool execution was aborted: {why}"));
            link.emit(RunEvent::ToolEnd { call: call.clone(), output: output.clone() }).await;
            results.push(report(&call, output, link).await);
        }
        results
    }
}

/// Reports the start of a call.
async fn announce(call: &ToolCall, link: &mut impl Link) -> Arc<Call> {
    let shown = Call { id: call.id.as_str().into(), name: call.name.clone(), arguments: call.arguments.clone() };
    let shown = Arc::new(shown);
    link.emit(RunEvent::ToolStart { call: shown.clone() }).await;
    shown
}

/// Calls that run in parallel.
struct Group<'r> {
    calls: Vec<Arc<Call>>,
    /// Filled as calls finish; `None` while a call runs.
    outputs: Vec<Option<ToolOutput>>,
    /// Calls that passed preparation and wait to run.
    ready: Vec<(usize, Prepared)>,
    /// Which of them run programs.
    programs: Vec<bool>,
    repeats: &'r mut Repeats,
    control: CallControl,
}

/// A call that has ended and waits for earlier ones to be reported first.
struct EndedCall {
    output: ToolOutput,
    permit: Option<OwnedSemaphorePermit>,
    until: Instant,
}

impl<'r> Group<'r> {
    /// Announces and prepares every call; calls that cannot run end here.
    async fn start(
        turn: &Turn,
        answer: &AssistantMessage,
        calls: &[&ToolCall],
        link: &mut impl Link,
        stop: &Stop,
        repeats: &'r mut Repeats,
    ) -> Group<'r> {
        let (outputs, ready, programs) = Default::default();
        let control = turn.limits.control.clone();
        let mut group = Group { calls: Vec::new(), outputs, ready, programs, repeats, control };
        for call in calls {
            let shown = announce(call, link).await;
            group.calls.push(shown.clone());
            group.outputs.push(None);
            group.programs.push(false);
            let index = group.calls.len() - 1;
            match prepare(turn, answer, call, &shown, stop).await {
                Ok(prepared) => {
                    group.programs[index] = prepared.runs_programs();
                    group.ready.push((index, prepared));
                }
                Err(NotRun { output, by }) => {
                    debug!(target: "pith::tool", name = %call.name, id = %call.id, "not run");
                    if let Some(mut watched) = begin_span(turn.trace.as_ref(), &shown, false) {
                        tell_decision(&mut *watched, PermissionDecision::Deny, by, Duration::ZERO);
                        let why_not = if by.is_some() { ToolEnd::Refused } else { ToolEnd::Unfit };
                        watched.end(if stop.text().is_some() { ToolEnd::Stopped } else { why_not }, &output);
                    }
                    group.end(index, output, link).await;
                }
            }
        }
        group
    }

    async fn end(&mut self, index: usize, output: ToolOutput, link: &mut impl Link) {
        let output = self.control.explain(&self.calls[index].name, output);
        let output = self.repeats.watch(&self.calls[index], output);
        link.emit(RunEvent::ToolEnd { call: self.calls[index].clone(), output: output.clone() }).await;
        self.outputs[index] = Some(output);
    }

    async fn execute(&mut self, turn: &Turn, link: &mut impl Link, stop: &Stop) {
        let interrupt = &stop.interrupt;
        let permits = Arc::new(Semaphore::new(turn.limits.max_parallel.max(1)));
        let shared = Shared { permits, stop: stop.clone(), limits: turn.limits.clone() };
        let mut progress = Progress::new(self.calls.len());
        let mut running: FuturesUnordered<_> = std::mem::take(&mut self.ready)
            .into_iter()
            .map(|(index, prepared)| {
                let call = self.calls[index].clone();
                let watched = begin_span(turn.trace.as_ref(), &call, prepared.is_remote());
                spawn(index, call, prepared, shared.clone(), progress.reporter(index), watched)
            })
            .collect();
        let mut deadline = None;
        let mut ended: BTreeMap<usize, EndedCall> = BTreeMap::new();
        while !running.is_empty() || !ended.is_empty() {
            let tie = async {
                match ended.values().map(|ended| ended.until).min() {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let grace = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => {
                        interrupt.cancelled().await;
                        tokio::time::sleep(ABORT_GRACE).await;
                    }
                }
            };
            tokio::select! {
                biased;
                (index, output) = progress.next() => self.update(index, output, link).await,
                Some((index, joined)) = running.next() => {
                    // What the tool reported before it returned comes first; later reports are dropped.
                    if let Some(output) = progress.close(index) {
                        self.update(index, output, link).await;
                    }
                    let (output, permit) = match joined {
                        Ok((output, permit)) => (output, permit),
                        Err(error) => (panicked(&self.calls[index].name, &error), None),
                    };
                    ended.insert(index, EndedCall { output, permit, until: Instant::now() + TIE_WINDOW });
                }
                () = tie => {}
                () = grace => break,
            }
            while let Some((index, EndedCall { output, permit, .. })) = self.next_to_end(&mut ended) {
                self.end(index, output, link).await;
                if !running.is_empty() && !interrupt.is_cancelled() && link.is_interrupted().await {
                    interrupt.cancel();
                }
                // Only now may a waiting call begin: if there is an interruption, it must not have started.
                drop(permit);
            }
            if deadline.is_none() && interrupt.is_cancelled() {
                deadline = Some(tokio::time::Instant::now() + ABORT_GRACE);
            }
        }
        for index in 0..self.outputs.len() {
            if self.outputs[index].is_none() {
                let output = ended.remove(&index).map_or_else(|| ToolOutput::error(ABORTED), |ended| ended.output);
                self.end(index, output, link).await;
            }
        }
    }

    /// The next call whose end can be reported: earlier programs have ended, or have had time to.
    fn next_to_end(&self, ended: &mut BTreeMap<usize, EndedCall>) -> Option<(usize, EndedCall)> {
        let now = Instant::now();
        let is_open = |index: usize| self.programs[index] && self.outputs[index].is_none();
        let can_end =
            |index: usize, ended: &EndedCall| !is_open(index) || ended.until <= now || !(0..index).any(is_open);
        let (&index, _) = ended.iter().find(|(index, ended)| can_end(**index, ended))?;
        ended.remove_entry(&index)
    }

    async fn update(&self, index: usize, output: ToolOutput, link: &mut impl Link) {
        link.emit(RunEvent::ToolUpdate { call: self.calls[index].clone(), output }).await;
    }

    fn finished(self) -> impl Iterator<Item = (Arc<Call>, ToolOutput)> {
        self.calls.into_iter().zip(self.outputs.into_iter().map(|output| output.expect("every call has ended")))
    }
}

fn begin_span(trace: Option<&TurnTrace>, call: &Call, is_remote: bool) -> Option<Box<dyn ToolSpan>> {
    trace.map(|TurnTrace { work, sandbox }| work.tool(ToolStart { call, is_remote, sandbox: *sandbox }))
}

/// Tells whoever watches what was decided, if somebody has decided.
fn tell_decision(span: &mut dyn ToolSpan, decision: PermissionDecision, by: Option<PermissionBy>, wait: Duration) {
    if let Some(by) = by {
        span.decided(decision, by, wait);
    }
}

/// What the calls of a batch have in common.
#[derive(Clone)]
struct Shared {
    permits: Arc<Semaphore>,
    stop: Stop,
    limits: Limits,
}

/// Runs a call in a task of its own, so that a panic ends only that call.
async fn spawn(
    index: usize,
    call: Arc<Call>,
    prepared: Prepared,
    Shared { permits, stop, limits }: Shared,
    update: ToolUpdate,
    mut watched: Option<Box<dyn ToolSpan>>,
) -> (usize, Result<(ToolOutput, Option<OwnedSemaphorePermit>), JoinError>) {
    let span = debug_span!(target: "pith::tool", "tool", name = %call.name, id = %call.id);
    let task = async move {
        let asked = Instant::now();
        let decided = prepared.decided(&stop).await;
        if let Some(watched) = &mut watched {
            let (decision, by) = match &decided {
                Ok(allowed) => (PermissionDecision::Allow, allowed.by),
                Err(not_run) => (PermissionDecision::Deny, not_run.by),
            };
            tell_decision(&mut **watched, decision, by, asked.elapsed());
        }
        let can_start = match decided {
            Ok(allowed) => allowed.can_start(&call, &stop, &limits.control).await.map(|()| allowed),
            Err(NotRun { output, .. }) => Err(output),
        };
        let allowed = match can_start {
            Ok(allowed) => allowed,
            Err(output) => {
                debug!(target: "pith::tool", "not permitted");
                if let Some(watched) = watched {
                    watched.end(if stop.text().is_some() { ToolEnd::Stopped } else { ToolEnd::Refused }, &output);
                }
                return (output, None);
            }
        };
        let permit = permits.acquire_owned().await.ok();
        debug!(target: "pith::tool", "starts");
        let start = Instant::now();
        let output = match stop.text() {
            Some(text) => ToolOutput::error(text),
            None => {
                let context = watched.as_ref().map(|watched| watched.context());
                match limits.call_time {
                    None => allowed.run(&call, update, context, &stop).await,
                    Some(time) => {
                        let stop = stop.of_one_call();
                        let run = allowed.run(&call, update, context, &stop);
                        limits.control.limit(&call.name, run, time, &stop.interrupt).await
                    }
                }
            }
        };
        debug!(target: "pith::tool", is_error = output.is_error, took = ?start.elapsed(), "ended");
        if let Some(watched) = watched {
            let was_stopped = output.is_error && stop.text().is_some();
            watched.end(if was_stopped { ToolEnd::Stopped } else { ToolEnd::Ran }, &output);
        }
        (output, permit)
    };
    // Dropping the handle with an abandoned batch must also abort the task.
    struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);
    impl<T> Drop for AbortOnDrop<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut handle = AbortOnDrop(tokio::spawn(task.instrument(span)));
    (index, (&mut handle.0).await)
}

fn panicked(name: &str, error: &JoinError) -> ToolOutput {
    if error.is_cancelled() {
        ToolOutput::error(ABORTED)
    } else {
        ToolOutput::error(format!("Tool {name} failed: internal error"))
    }
}

/// Makes the message that enters the history from an output.
async fn report(call: &Call, output: ToolOutput, link: &mut impl Link) -> Arc<Message> {
    let message = Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        content: output.content,
        details: output.details,
        is_error: output.is_error,
        timestamp: now_ms(),
        usage: output.usage,
        extra: Map::new(),
    }));
    link.emit(RunEvent::MessageStart(message.clone())).await;
    link.conclude(message).await
}

/// Notices a model that repeats one failing call, and tells it.
#[derive(Default)]
pub(crate) struct Repeats {
    last: Option<Arc<Call>>,
    count: u32,
}

impl Repeats {
    const LIMIT: u32 = 5;

    fn watch(&mut self, call: &Arc<Call>, mut output: ToolOutput) -> ToolOutput {
        let is_same = self.last.as_ref().is_some_and(|last| last.name == call.name && last.arguments == call.arguments);
        self.count = match (output.is_error, is_same) {
            (false, _) => 0,
            (true, true) => self.count + 1,
            (true, false) => 1,
        };
        self.last = Some(call.clone());
        if self.count >= Self::LIMIT {
            let warning =
                format!("[This exact call has now failed {} times in a row. Try something else.]", self.count);
            output.content.push(Block::text(warning));
        }
        output
    }
}
