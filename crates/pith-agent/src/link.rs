//! The loop's only connection to the rest: what it tells, and what it asks.

use std::future::Future;
use std::sync::Arc;

use pith_protocol::{AssistantEvent, AssistantMessage, LlmCall, Message};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{ToolCallHook, ToolOutput, Toolset};

/// Whatever answers as a model.
///
/// The channel is the stream of [`AssistantEvent`]s, ended by exactly one
/// `End`. Implementations own their task: a cancelled token must lead to an
/// `End` with `stopReason` `aborted` at once. A closed channel without `End`
/// means the provider panicked.
pub trait ModelClient: Send + Sync {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent>;

    /// The same with a key and headers of the caller's own. Clients that need none ignore them.
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

/// What a caller brings along for one call. Values are secrets.
#[derive(Clone, Default)]
pub struct CallOverrides {
    /// Instead of the configured one.
    pub api_key: Option<String>,
    /// Over the configured ones; no value suppresses one.
    pub headers: Vec<(String, Option<String>)>,
}

/// The session as the loop sees it.
pub trait Link: Send {
    /// Reports what happened. Returns once the session has taken it; for a
    /// `MessageEnd` that includes writing it down, so nothing that depends on
    /// the message can overtake it.
    fn emit(&mut self, event: RunEvent) -> impl Future<Output = ()> + Send;

    /// Reports a finished message. Gives back the one that was written down, which has
    /// the same role but may say something else; the loop goes on with that one.
    fn conclude(&mut self, message: Arc<Message>) -> impl Future<Output = Arc<Message>> + Send {
        async move {
            self.emit(RunEvent::MessageEnd(message.clone())).await;
            message
        }
    }

    /// Reports the end of a turn, after an answer and its tool results. `true` asks for
    /// one more answer should nothing else keep the run alive.
    fn end_turn(&mut self, message: Arc<Message>, results: Vec<Arc<Message>>) -> impl Future<Output = bool> + Send {
        async move {
            self.emit(RunEvent::TurnEnd { message, results }).await;
            false
        }
    }

    /// Whether a queue holds something.
    fn has(&mut self, queue: Queue) -> impl Future<Output = bool> + Send;

    /// Takes what the queue's mode allows.
    fn take(&mut self, queue: Queue) -> impl Future<Output = Vec<Arc<Message>>> + Send;

    /// Model, tools and request for the next answer, or why there can be none.
    fn turn(&mut self) -> impl Future<Output = Turn> + Send;

    /// Whether a steering message should cut the running batch short.
    fn is_interrupted(&mut self) -> impl Future<Output = bool> + Send;
}

/// The two queues of messages waiting for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Steering,
    FollowUp,
}

/// What the loop needs for one answer.
pub struct Turn {
    /// Metadata for messages the loop has to make up itself.
    pub blank: AssistantMessage,
    /// `Err` ends the run with that text.
    pub call: Result<(Arc<dyn ModelClient>, LlmCall), String>,
    pub tools: Arc<Toolset>,
    /// Whoever has a say in the tool calls of the answer.
    pub hook: Option<Arc<dyn ToolCallHook>>,
    pub limits: Limits,
}

/// Bounds of a tool batch.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls that may run at the same time.
    pub max_parallel: usize,
    /// Every batch runs one call after the other.
    pub is_sequential: bool,
    /// Calls of an aborted answer are reported as failed instead of left without a result.
    pub reports_aborted_calls: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_parallel: 8, is_sequential: false, reports_aborted_calls: false }
    }
}

/// What happens in a run, in order.
#[derive(Debug)]
pub enum RunEvent {
    AgentStart,
    TurnStart,
    MessageStart(Arc<Message>),
    /// A model has begun to answer; `Stream` events follow until `MessageEnd`.
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

/// A tool call as events show it: the arguments as the model sent them.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub id: Arc<str>,
    pub name: String,
    pub arguments: Map<String, Value>,
}
