//! Spans: when pieces of work begin and how they end, for whoever watches from outside.
//!
//! The sites stand beside those of the log, but spans are a trait of their own and no layer of `tracing`: they carry
//! usage, reasons and texts that no log may have (invariant 11); a call must know its place in the trace to hand it on
//! to the programs it starts; sessions of one process may differ; and a program that embeds pith keeps its subscriber.
//! Without a tracer each site is one comparison with `None`.
//!
//! A span that is dropped before its end has ended too, as one that nobody finished.

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::audit::{PermissionBy, PermissionDecision};
use pith_protocol::{AssistantEvent, AssistantMessage, CompactionReason, LlmCall, Model, SandboxProfile};

use crate::ToolOutput;
use crate::link::Call;

/// Where a piece of work stands in a trace, in the words of W3C Trace Context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub traceparent: String,
    /// Empty if the trace has none.
    pub tracestate: String,
}

impl TraceContext {
    /// The variables that tell a program its place in the trace.
    pub const VARIABLES: [&str; 2] = ["TRACEPARENT", "TRACESTATE"];

    /// Returns those that are set, with their values.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let set = Self::VARIABLES.into_iter().zip([&self.traceparent, &self.tracestate]);
        set.filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), value.clone()))
    }
}

/// Whatever calls to models are part of.
pub trait ChatParent: Send + Sync {
    /// Called when a request is about to be sent. Each attempt is a call of its own.
    fn chat(&self, call: &LlmCall) -> Box<dyn ChatSpan>;
}

/// Begins the spans that are part of nothing else.
pub trait Tracer: ChatParent {
    fn work(&self, start: WorkStart<'_>) -> Arc<dyn WorkSpan>;

    /// Called when a compaction begins that the host asked for.
    fn compaction(&self, reason: CompactionReason) -> Arc<dyn CompactionSpan>;

    /// Returns what was wrong with something that a host has sent for the trace, the first time.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// What work begins with.
#[derive(Clone, Copy, Debug)]
pub struct WorkStart<'a> {
    pub session: &'a str,
    pub model: Option<&'a Model>,
    /// The place in the host's trace, as it has written it.
    pub traceparent: Option<&'a str>,
}

/// Work on a prompt, from its acceptance until it settles.
pub trait WorkSpan: ChatParent {
    fn tool(&self, start: ToolStart<'_>) -> Box<dyn ToolSpan>;

    fn compaction(&self, reason: CompactionReason) -> Arc<dyn CompactionSpan>;

    fn checkpoint(&self) -> Box<dyn CheckpointSpan>;

    /// Called when a limit of the user ends the work.
    fn limit_reached(&self, limit: &str);

    /// Called when the sandbox has refused a call something.
    fn denied(&self, what: &str);

    /// Called when the work is over. `answer` is the last one.
    fn end(&self, was_aborted: bool, answer: Option<&AssistantMessage>);
}

/// A tool call that is about to be checked and run.
#[derive(Clone, Copy, Debug)]
pub struct ToolStart<'a> {
    pub call: &'a Call,
    /// Whether the tool belongs to a server.
    pub is_remote: bool,
    pub sandbox: SandboxProfile,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// The tool returned.
    Ran,
    /// It was stopped, or never begun because the run was.
    Stopped,
    Refused,
    /// There is no such tool, or the arguments do not fit.
    Unfit,
}

/// One request to a model and its answer.
pub trait ChatSpan: Send {
    /// Called when the first piece of the answer has arrived.
    fn first_chunk(&mut self);

    fn end(self: Box<Self>, answer: &AssistantMessage);
}

/// One request to a model, watched if somebody wants to. A request that is dropped has been abandoned.
pub struct WatchedChat {
    /// `None` if nobody watches, and once it has ended.
    span: Option<Box<dyn ChatSpan>>,
    has_begun: bool,
}

impl WatchedChat {
    /// Called when the request is about to be sent.
    pub fn begin(parent: Option<&dyn ChatParent>, call: &LlmCall) -> Self {
        WatchedChat { span: parent.map(|parent| parent.chat(call)), has_begun: false }
    }

    /// Takes the next piece of the answer; the last one ends it.
    pub fn take(&mut self, event: &AssistantEvent) {
        if let Some(span) = self.span.as_mut().filter(|_| !self.has_begun) {
            self.has_begun = true;
            span.first_chunk();
        }
        if let AssistantEvent::End(answer) = event {
            self.end(answer);
        }
    }

    /// Ends it with an answer that did not come from the model.
    pub fn end(&mut self, answer: &AssistantMessage) {
        if let Some(span) = self.span.take() {
            span.end(answer);
        }
    }
}

/// One tool call.
pub trait ToolSpan: Send {
    fn context(&self) -> Arc<TraceContext>;

    /// Called when it was decided whether the call may run.
    fn decided(&mut self, decision: PermissionDecision, by: PermissionBy, wait: Duration);

    fn end(self: Box<Self>, end: ToolEnd, output: &ToolOutput);
}

/// One compaction; the requests for its summary are part of it.
pub trait CompactionSpan: ChatParent {
    /// Called with the tokens before and after, or with why there is no summary.
    fn end(&self, outcome: Result<(u64, u64), CompactionFailure>);
}

/// Why a compaction changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionFailure {
    Cancelled,
    Failed,
}

/// The wait of a call for its checkpoint.
pub trait CheckpointSpan: Send {
    /// Called with the number of files that are covered; `None` if the call has not waited for all of them.
    fn end(self: Box<Self>, n_files: Option<usize>);
}

/// What the calls of a turn are part of.
#[derive(Clone)]
pub struct TurnTrace {
    pub work: Arc<dyn WorkSpan>,
    pub sandbox: SandboxProfile,
}
