//! How a tool that is part of the session asks the session for something.
//!
//! Tools run in the run's task and own no state; the session answers between other events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pith_agent::ToolOutput;
use pith_agent::link::Call;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::host::{DISCONNECTED, PendingCall};

/// How many questions may wait; a batch has no more calls in flight than that.
const BACKLOG: usize = 16;

/// What a tool sends to the session.
pub(crate) enum FromTool {
    /// A call for the host.
    Host { call: PendingCall, tool_call_id: Arc<str>, arguments: Map<String, Value> },
    /// The tool no longer waits. Answered when the host has been told.
    Withdraw { id: String, told: oneshot::Sender<()> },
    /// Operations on the todo list.
    Todos { arguments: Map<String, Value>, answer: oneshot::Sender<ToolOutput> },
    /// A search for tools.
    FindTools { arguments: Map<String, Value>, answer: oneshot::Sender<ToolOutput> },
    /// A call is about to start that may be one repetition too many. Answered when it may; `Err` is its output.
    MayRepeat { call: Arc<Call>, answer: oneshot::Sender<Result<(), ToolOutput>> },
    /// A tool that was not declared is being called. Answered when that is noted.
    ToolUsed { name: Arc<str>, noted: oneshot::Sender<()> },
}

/// A tool's connection to the session; all tools of a session share one channel.
#[derive(Clone)]
pub(crate) struct ToolLink {
    /// Closed only when the session is gone.
    to_session: mpsc::Sender<FromTool>,
    next_id: Arc<AtomicU64>,
}

impl ToolLink {
    pub fn new() -> (Self, mpsc::Receiver<FromTool>) {
        let (to_session, questions) = mpsc::channel(BACKLOG);
        // Starting at the current time keeps the ids of different processes apart.
        let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64);
        (ToolLink { to_session, next_id: Arc::new(AtomicU64::new(start)) }, questions)
    }

    /// A unique id of 16 hexadecimal digits.
    pub fn fresh_id(&self) -> String {
        format!("{:016x}", self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a question whose answer the caller awaits itself; `Err` is the output to return when the session has
    /// ended.
    pub async fn send(&self, question: FromTool) -> Result<(), ToolOutput> {
        self.to_session.send(question).await.map_err(|_| ToolOutput::error(DISCONNECTED))
    }

    /// Sends a question and waits for the answer.
    pub async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> FromTool) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(question(answer)).await.ok()?;
        answered.await.ok()
    }
}
