//! The loop's only connection to the session: what it reports, and what it asks for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pith_protocol::{AssistantEvent, AssistantMessage, LlmCall, Message};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::trace::TurnTrace;
use crate::{CallControl, ToolCallHook, ToolOutput, Toolset};

/// Streams the answers of a model.
///
/// The channel carries [`AssistantEvent`]s and ends with exactly one `End`. Implementations own their task: a cancelled
/// token must lead to an `End` with `stopReason` `aborted` at once. A channel that closes without `End` means the
/// provider panicked.
pub trait ModelClient: Send + Sync {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent>;

    /// Like `stream`, with a key and headers of the caller. Clients that need none ignore them.
    fn stream_with(
        &self,
        call: LlmCall,
        overrides: CallOverrides,
        cancel: CancellationToken,
    ) -> mpsc::Receiver<AssistantEvent> {
        drop(overrides);
        self.stream(call, cancel)
    }
}

/// Key and headers that a caller sets for one call. The values are secrets.
#[derive(Clone, Default)]
pub struct CallOverrides {
    /// Replaces the configured key.
    pub api_key: Option<String>,
    /// Override the configured headers; `None` removes one.
    pub headers: Vec<(String, Option<String>)>,
}

/// The session as the loop sees it.
pub trait Link: Send {
    /// Reports an event. Returns once the session has handled it; for a `MessageEnd` that includes storing it, so
    /// nothing that depends on the message can overtake it.
    fn emit(&mut self, event: RunEvent) -> impl Future<Output = ()> + Send;

    /// Reports a finished message. Returns the one that was stored, which has the same role but may have other content;
    /// the loop continues with that one.
    fn conclude(&mut self, message: Arc<Message>) -> impl Future<Output = Arc<Message>> + Send {
        async move {
            self.emit(RunEvent::MessageEnd(message.clone())).await;
            message
        }
    }

    /// Reports the end of a turn, after an answer and its tool results. `true` asks for one more answer if nothing else
    /// continues the run.
    fn end_turn(&mut self, message: Arc<Message>, results: Vec<Arc<Message>>) -> impl Future<Output = bool> + Send {
        async move {
            self.emit(RunEvent::TurnEnd { message, results }).await;
            false
        }
    }

    /// Returns whether a queue holds something.
    fn has(&mut self, queue: Queue) -> impl Future<Output = bool> + Send;

    /// Takes as many messages as the queue's mode allows.
    fn take(&mut self, queue: Queue) -> impl Future<Output = Vec<Arc<Message>>> + Send;

    /// Returns model, tools and request for the next answer, or why there can be none.
    fn turn(&mut self) -> impl Future<Output = Turn> + Send;

    /// Returns whether a steering message should cut the running batch short.
    fn is_interrupted(&mut self) -> impl Future<Output = bool> + Send;
}

/// The two queues of messages that wait for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Steering,
    FollowUp,
}

/// What the loop needs for one turn.
pub struct Turn {
    /// Metadata for messages that the loop itself has to create.
    pub blank: AssistantMessage,
    /// `Err` ends the run with that text.
    pub call: Result<(Arc<dyn ModelClient>, LlmCall), String>,
    pub tools: Arc<Toolset>,
    /// Sees, and may change, the tool calls of the answer.
    pub hook: Option<Arc<dyn ToolCallHook>>,
    pub limits: Limits,
    /// Set if somebody watches.
    pub trace: Option<TurnTrace>,
}

/// Limits of a tool batch.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many calls may run at the same time.
    pub max_parallel: usize,
    /// Whether every batch runs one call after the other.
    pub is_sequential: bool,
    /// Whether calls of an aborted answer are reported as failed instead of left without a result.
    pub reports_aborted_calls: bool,
    /// How long one call may take.
    pub call_time: Option<Duration>,
    pub control: CallControl,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_parallel: 8,
            is_sequential: false,
            reports_aborted_calls: false,
            call_time: None,
            control: CallControl::default(),
        }
    }
}

/// The events of a run, in order.
#[derive(Debug)]
pub enum RunEvent {
    AgentStart,
    TurnStart,
    MessageStart(Arc<Message>),
    /// The model has begun to answer; `Stream` events follow until `MessageEnd`.
    AnswerStart(Box<AssistantMessage>),
    Stream(AssistantEvent),
    MessageEnd(Arc<Message>),
    ToolStart {
        call: Arc<Call>,
    },
    ToolUpdate {
        call: Arc<Call>,
        output: ToolOutput,
    },
    ToolEnd {
        call: Arc<Call>,
        output: ToolOutput,
    },
    TurnEnd {
        message: Arc<Message>,
        results: Vec<Arc<Message>>,
    },
    AgentEnd {
        messages: Vec<Arc<Message>>,
    },
}

/// A tool call as events show it: with the arguments the model sent.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub id: Arc<str>,
    pub name: String,
    pub arguments: Map<String, Value>,
}
