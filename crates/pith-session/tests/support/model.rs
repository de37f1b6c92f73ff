//! A model that sends what the test wants, when the test wants it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_agent::{BoxFuture, ModelClient, now_ms};
use pith_ai::{Fault, MessageBuilder};
use pith_protocol::{AssistantEvent, CacheRetention, ErrorKind, LlmCall, StopReason, Usage};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::frames::Activity;

/// One answer of the model: its steps, and how it ends.
#[derive(Clone, Debug)]
pub struct Turn {
    steps: Vec<Step>,
    ending: Ending,
    usage: Usage,
}

#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thinking(String),
    Call {
        name: String,
        arguments: Value,
    },
    /// Waits for [`ScriptedModel::release`].
    Gate,
}

#[derive(Clone, Debug)]
enum Ending {
    Finished(StopReason),
    Failed(Fault),
    /// Sends nothing more until it is cancelled.
    Hangs,
    /// The stream closes without a result, as if the provider's task had died.
    Dies,
    /// Panics in the task that called it.
    Panics,
}

impl Turn {
    fn ending(ending: Ending) -> Turn {
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        Turn { steps: Vec::new(), ending, usage }
    }

    /// Answers with a text and stops.
    pub fn text(text: &str) -> Turn {
        Turn::ending(Ending::Finished(StopReason::Stop)).and(Step::Text(text.to_owned()))
    }

    /// Thinks; follow it with [`Turn::and_text`] or [`Turn::and_call`].
    pub fn thinking(text: &str) -> Turn {
        Turn::ending(Ending::Finished(StopReason::Stop)).and(Step::Thinking(text.to_owned()))
    }

    /// Calls a tool.
    pub fn call(name: &str, arguments: Value) -> Turn {
        Turn::ending(Ending::Finished(StopReason::Stop)).and_call(name, arguments)
    }

    /// Fails with an error that can be retried.
    pub fn overloaded(text: &str) -> Turn {
        Turn::ending(Ending::Failed(Fault::new(ErrorKind::Overloaded, text)))
    }

    /// Fails with an error that cannot be retried.
    pub fn refused(text: &str) -> Turn {
        Turn::ending(Ending::Failed(Fault::new(ErrorKind::InvalidRequest, text)))
    }

    /// Fails because the conversation is too long.
    pub fn overflow() -> Turn {
        Turn::ending(Ending::Failed(Fault::new(ErrorKind::Overflow, "prompt is too long: 9999 tokens")))
    }

    /// Never answers; an abort ends it.
    pub fn hang() -> Turn {
        Turn::ending(Ending::Hangs)
    }

    /// Closes the stream without a result.
    pub fn die() -> Turn {
        Turn::ending(Ending::Dies)
    }

    /// Panics instead of answering.
    pub fn panic() -> Turn {
        Turn::ending(Ending::Panics)
    }

    /// Answers with a text once the test calls [`ScriptedModel::release`].
    pub fn gated(text: &str) -> Turn {
        Turn::ending(Ending::Finished(StopReason::Stop)).and_gate().and_text(text)
    }

    /// Fails after the previous steps with an error that can be retried.
    pub fn and_overload(self, text: &str) -> Turn {
        Turn { ending: Ending::Failed(Fault::new(ErrorKind::Overloaded, text)), ..self }
    }

    pub fn and_text(self, text: &str) -> Turn {
        self.and(Step::Text(text.to_owned()))
    }

    pub fn and_call(self, name: &str, arguments: Value) -> Turn {
        self.and(Step::Call { name: name.to_owned(), arguments })
    }

    /// Waits here for [`ScriptedModel::release`].
    pub fn and_gate(self) -> Turn {
        self.and(Step::Gate)
    }

    /// Hangs after the previous steps.
    pub fn and_hang(self) -> Turn {
        Turn { ending: Ending::Hangs, ..self }
    }

    /// Reports how many tokens the request and the answer had.
    pub fn usage(self, input: u64, output: u64) -> Turn {
        Turn { usage: Usage { input, output, ..Usage::default() }, ..self }
    }

    fn and(mut self, step: Step) -> Turn {
        self.steps.push(step);
        self
    }
}

/// Chooses the answer to a request.
type Answers = Box<dyn FnMut(&LlmCall) -> Turn + Send>;

/// Everything a model will answer.
pub struct Script {
    answers: Answers,
    summaries: Answers,
}

impl Script {
    /// Gives these answers in turn, then `ok` for ever.
    pub fn of(turns: impl IntoIterator<Item = Turn>) -> Script {
        Script { answers: in_turn(turns, "ok"), summaries: in_turn([], "a summary") }
    }

    /// Gives the answer the function returns for each request of a run.
    pub fn answering(answers: impl FnMut(&LlmCall) -> Turn + Send + 'static) -> Script {
        Script { answers: Box::new(answers), ..Script::of([]) }
    }

    /// Gives these answers to requests for summaries, then `a summary` for ever.
    pub fn summaries(self, turns: impl IntoIterator<Item = Turn>) -> Script {
        Script { summaries: in_turn(turns, "a summary"), ..self }
    }

    /// Gives the answer the function returns for each request for a summary.
    pub fn summarising(self, summaries: impl FnMut(&LlmCall) -> Turn + Send + 'static) -> Script {
        Script { summaries: Box::new(summaries), ..self }
    }
}

impl<const N: usize> From<[Turn; N]> for Script {
    fn from(turns: [Turn; N]) -> Self {
        Script::of(turns)
    }
}

impl From<Vec<Turn>> for Script {
    fn from(turns: Vec<Turn>) -> Self {
        Script::of(turns)
    }
}

fn in_turn(turns: impl IntoIterator<Item = Turn>, last: &'static str) -> Answers {
    let mut turns: VecDeque<Turn> = turns.into_iter().collect();
    Box::new(move |_| turns.pop_front().unwrap_or_else(|| Turn::text(last)))
}

/// The model of a test. Clones are the same model.
#[derive(Clone)]
pub struct ScriptedModel(Arc<Shared>);

struct Shared {
    script: Mutex<Script>,
    calls: Mutex<Vec<LlmCall>>,
    /// One permit for each gate the test has opened.
    gates: Semaphore,
    activity: Activity,
}

impl ScriptedModel {
    pub fn new(script: Script, activity: Activity) -> Self {
        let (calls, gates) = (Mutex::default(), Semaphore::new(0));
        ScriptedModel(Arc::new(Shared { script: Mutex::new(script), calls, gates, activity }))
    }

    /// Opens one gate: the one that is being waited for, or the next.
    pub fn release(&self) {
        self.0.gates.add_permits(1);
    }

    /// Returns all requests so far, those for summaries included.
    pub fn calls(&self) -> Vec<LlmCall> {
        lock(&self.0.calls).clone()
    }

    fn next(&self, call: &LlmCall) -> (Turn, usize) {
        let n_calls = {
            let mut calls = lock(&self.0.calls);
            calls.push(call.clone());
            calls.len()
        };
        self.0.activity.note();
        let mut script = lock(&self.0.script);
        let turn = if is_summary(call) { (script.summaries)(call) } else { (script.answers)(call) };
        (turn, n_calls)
    }
}

impl ModelClient for ScriptedModel {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        await_next_millisecond();
        let (turn, n_calls) = self.next(&call);
        assert!(!matches!(turn.ending, Ending::Panics), "the scripted model panics, as the test wants");
        let (sender, receiver) = mpsc::channel(1);
        let mut answer = Answer { message: MessageBuilder::new(call.model, 100), sender, shared: self.0.clone() };
        tokio::spawn(async move {
            let is_whole = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    answer.message.abort();
                    true
                }
                is_whole = answer.play(turn, n_calls) => is_whole,
            };
            if is_whole {
                answer.deliver().await;
            }
        });
        receiver
    }
}

/// Returns whether a request is the session's own, for a summary.
pub fn is_summary(call: &LlmCall) -> bool {
    call.cache == CacheRetention::None && call.tools.is_empty()
}

/// The answer being streamed.
struct Answer {
    message: MessageBuilder,
    sender: mpsc::Sender<AssistantEvent>,
    shared: Arc<Shared>,
}

impl Answer {
    /// Plays a turn; `false` if the stream is to close without an end.
    async fn play(&mut self, turn: Turn, n_calls: usize) -> bool {
        self.message.set_usage(turn.usage);
        for (at, step) in turn.steps.into_iter().enumerate() {
            let (block, text) = match step {
                Step::Text(text) => (self.message.open_text(), text),
                Step::Thinking(text) => (self.message.open_thinking(), text),
                Step::Call { name, arguments } => {
                    (self.message.open_call(&format!("call-{n_calls}.{at}"), &name), arguments.to_string())
                }
                Step::Gate => {
                    self.shared.activity.note();
                    let permit = self.shared.gates.acquire().await.expect("gates are never closed");
                    permit.forget();
                    continue;
                }
            };
            self.deliver().await;
            self.message.push(block, text.into());
            self.message.close(block);
            self.deliver().await;
        }
        match turn.ending {
            Ending::Finished(reason) => self.message.finish(reason),
            Ending::Failed(fault) => self.message.fail(fault),
            Ending::Hangs => std::future::pending().await,
            Ending::Dies => return false,
            Ending::Panics => unreachable!("told before the answer began"),
        }
        true
    }

    async fn deliver(&mut self) {
        while let Some(event) = self.message.next_event() {
            // The receiver is gone once the run has ended.
            let _ = self.sender.send(event).await;
        }
    }
}

/// Gives every answer a millisecond of its own: a session tells answers before a compaction from those after it by
/// their timestamps, which real models never repeat.
fn await_next_millisecond() {
    static LAST: Mutex<i64> = Mutex::new(0);
    let mut last = lock(&LAST);
    while now_ms() <= *last {
        std::hint::spin_loop();
    }
    *last = now_ms();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
