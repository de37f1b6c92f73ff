//! The tool calls of one answer.
//!
//! Calls run side by side, ends are reported as they come, but the result
//! messages wait and follow the order of the calls: the next request must not
//! depend on timing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use pith_protocol::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::link::{Call, Link, RunEvent, Turn};
use crate::{Tool, ToolContext, ToolOutput, now_ms};

/// A tool that ignores cancellation is left behind after this long.
const ABORT_GRACE: Duration = Duration::from_secs(5);
const ABORTED: &str = "Operation aborted";
const SKIPPED: &str = "Skipped due to queued user message.";
const CUT_OFF: &str = "This tool call was not executed: the answer hit the output limit, so its arguments may be \
                       incomplete. Issue the call again with complete arguments, in smaller pieces if necessary.";

/// What became of the calls.
#[derive(Default)]
pub(crate) struct Batch {
    /// In call order.
    pub results: Vec<Arc<Message>>,
    ends_run: bool,
}

impl Batch {
    /// Whether the model has yet to see the results.
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
        // One call at a time is a batch of one, again and again.
        let size = if is_sequential { 1 } else { calls.len().max(1) };
        let interrupt = cancel.child_token();
        for (index, group) in calls.chunks(size).enumerate() {
            if index > 0 && !interrupt.is_cancelled() && link.is_interrupted().await {
                interrupt.cancel();
            }
            let mut group = Group::start(turn, answer, group, link, cancel, &interrupt).await;
            group.execute(turn, link, cancel, &interrupt).await;
            for (call, output) in group.finished() {
                let output = repeats.watch(&call, output);
                batch.ends_run &= output.terminate;
                batch.results.push(report(&call, output, link).await);
            }
        }
        batch
    }

    /// The calls of an answer that was aborted: reported as failed where hosts
    /// expect a result for every call, left alone elsewhere.
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

/// Tells that a call is taken up.
async fn announce(call: &ToolCall, link: &mut impl Link) -> Arc<Call> {
    let shown = Call { id: call.id.as_str().into(), name: call.name.clone(), arguments: call.arguments.clone() };
    let shown = Arc::new(shown);
    link.emit(RunEvent::ToolStart { call: shown.clone() }).await;
    shown
}

/// Calls that run side by side.
struct Group {
    calls: Vec<Arc<Call>>,
    /// Filled as calls finish; `None` while one runs.
    outputs: Vec<Option<ToolOutput>>,
    /// Calls that passed preparation and wait to run.
    ready: Vec<(usize, Prepared)>,
}

/// A call that can run: its tool, and arguments that fit it.
struct Prepared {
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
}

impl Group {
    /// Announces and prepares every call; what cannot run ends here.
    async fn start(
        turn: &Turn,
        answer: &AssistantMessage,
        calls: &[&ToolCall],
        link: &mut impl Link,
        cancel: &CancellationToken,
        interrupt: &CancellationToken,
    ) -> Group {
        let mut group = Group { calls: Vec::new(), outputs: Vec::new(), ready: Vec::new() };
        for call in calls {
            group.calls.push(announce(call, link).await);
            group.outputs.push(None);
            let index = group.calls.len() - 1;
            let stopped = stop_text(cancel, interrupt).map(str::to_owned);
            match stopped.map_or_else(|| prepare(turn, answer, call), Err) {
                Ok(prepared) => group.ready.push((index, prepared)),
                Err(text) => group.end(index, ToolOutput::error(text), link).await,
            }
        }
        group
    }

    async fn end(&mut self, index: usize, output: ToolOutput, link: &mut impl Link) {
        link.emit(RunEvent::ToolEnd { call: self.calls[index].clone(), output: output.clone() }).await;
        self.outputs[index] = Some(output);
    }

    async fn execute(
        &mut self,
        turn: &Turn,
        link: &mut impl Link,
        cancel: &CancellationToken,
        interrupt: &CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(turn.limits.max_parallel.max(1)));
        let (progress, mut updates) = mpsc::unbounded_channel();
        let mut running: FuturesUnordered<_> = std::mem::take(&mut self.ready)
            .into_iter()
            .map(|(index, prepared)| {
                let call_id = self.calls[index].id.clone();
                spawn(index, prepared, call_id, places.clone(), progress.clone(), cancel.clone(), interrupt.clone())
            })
            .collect();
        let mut deadline = None;
        while !running.is_empty() {
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
                Some((index, output)) = updates.recv() => self.update(index, output, link).await,
                Some((index, joined)) = running.next() => {
                    // What the tool said before it returned comes first; later words are dropped.
                    while let Ok((index, output)) = updates.try_recv() {
                        self.update(index, output, link).await;
                    }
                    let (output, place) = match joined {
                        Ok((output, place)) => (output, place),
                        Err(error) => (panicked(&self.calls[index].name, &error), None),
                    };
                    self.end(index, output, link).await;
                    if !running.is_empty() && !interrupt.is_cancelled() && link.is_interrupted().await {
                        interrupt.cancel();
                    }
                    // Only now may a waiting call begin: an interruption must find it not started.
                    drop(place);
                }
                () = grace => break,
            }
            if deadline.is_none() && interrupt.is_cancelled() {
                deadline = Some(tokio::time::Instant::now() + ABORT_GRACE);
            }
        }
        for index in 0..self.outputs.len() {
            if self.outputs[index].is_none() {
                self.end(index, ToolOutput::error(ABORTED), link).await;
            }
        }
    }

    async fn update(&self, index: usize, output: ToolOutput, link: &mut impl Link) {
        if self.outputs[index].is_none() {
            link.emit(RunEvent::ToolUpdate { call: self.calls[index].clone(), output }).await;
        }
    }

    fn finished(self) -> impl Iterator<Item = (Arc<Call>, ToolOutput)> {
        self.calls.into_iter().zip(self.outputs.into_iter().map(|output| output.expect("every call has ended")))
    }
}

/// A call in a task of its own, so that a panic ends only that call.
#[allow(clippy::too_many_arguments, reason = "each is a different thing the task takes with it")]
async fn spawn(
    index: usize,
    Prepared { tool, arguments }: Prepared,
    call_id: Arc<str>,
    places: Arc<Semaphore>,
    progress: mpsc::UnboundedSender<(usize, ToolOutput)>,
    cancel: CancellationToken,
    interrupt: CancellationToken,
) -> (usize, Result<(ToolOutput, Option<OwnedSemaphorePermit>), JoinError>) {
    let task = async move {
        let place = places.acquire_owned().await.ok();
        if let Some(text) = stop_text(&cancel, &interrupt) {
            return (ToolOutput::error(text), place);
        }
        let update = Arc::new(move |output| drop(progress.send((index, output))));
        (tool.run(arguments, ToolContext { call_id, cancel: interrupt, update }).await, place)
    };
    // Dropping the handle with an abandoned batch must also end the task.
    struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);
    impl<T> Drop for AbortOnDrop<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut handle = AbortOnDrop(tokio::spawn(task));
    (index, (&mut handle.0).await)
}

/// The text for a call that never started, if it must not start.
fn stop_text(cancel: &CancellationToken, interrupt: &CancellationToken) -> Option<&'static str> {
    if cancel.is_cancelled() {
        Some(ABORTED)
    } else if interrupt.is_cancelled() {
        Some(SKIPPED)
    } else {
        None
    }
}

/// Finds the tool and checks the arguments; `Err` is what the model reads.
fn prepare(turn: &Turn, answer: &AssistantMessage, call: &ToolCall) -> Result<Prepared, String> {
    if answer.stop_reason == StopReason::Length {
        return Err(CUT_OFF.to_owned());
    }
    let Some((tool, schema)) = turn.tools.get(&call.name) else {
        return Err(format!("Tool {} not found", call.name));
    };
    if call.arguments_truncated == Some(true) {
        return Err(incomplete(answer, call));
    }
    let arguments = schema.check(&call.name, &tool.adapt(call.arguments.clone()))?;
    Ok(Prepared { tool: tool.clone(), arguments })
}

/// Broken argument JSON is quoted back, never repaired and run.
fn incomplete(answer: &AssistantMessage, call: &ToolCall) -> String {
    let noted =
        answer.diagnostics.as_ref().and_then(|notes| notes.get("toolCalls")?.get(&call.id)?.get("error")?.as_str());
    let why = noted.unwrap_or("the argument text is not complete JSON");
    format!(
        "Tool call \"{}\" was not executed: its arguments are not valid JSON ({why}). Issue the call again with complete arguments.",
        call.name
    )
}

fn panicked(name: &str, error: &JoinError) -> ToolOutput {
    if error.is_cancelled() {
        ToolOutput::error(ABORTED)
    } else {
        ToolOutput::error(format!("Tool {name} failed: internal error"))
    }
}

/// Turns an output into the message that enters the history.
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
    link.emit(RunEvent::MessageEnd(message.clone())).await;
    message
}

/// Notices a model that repeats one failing call and tells it so.
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
