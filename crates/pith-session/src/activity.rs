//! What the session is doing, and who waits for it to stop.

use std::sync::Arc;

use pith_agent::link::Call;
use pith_protocol::Message;
use pith_protocol::commands::{Abort, AbortAndPrompt, Compact, ExportHtml, ListSessions};
use pith_store::{SessionSummary, StoreReport};
use serde_json::Value;
use tokio::task::{AbortHandle, Id as TaskId};
use tokio_util::sync::CancellationToken;

use crate::queue::Waiting;
use crate::replace::Opened;
use crate::reply::Reply;
use crate::session::Session;

/// At most one thing at a time talks to the model.
pub(crate) enum Activity {
    Idle,
    Running(ActiveRun),
    /// Waiting to ask again after a failure.
    Retrying {
        wait: AbortHandle,
    },
    /// A summary is being written and no run waits for it.
    Summarising,
}

/// How a job ended.
pub(crate) enum JobEnd {
    Done,
    /// Something about the session file that people should hear.
    Report(StoreReport),
    /// The wait before another attempt is over.
    RetryDue,
    /// A finished todo has been shown long enough.
    TodoDue(String),
    /// The host has not said whether the project may be trusted.
    TrustUnanswered,
    /// A session file was read.
    Opened(Box<Opened>),
    Exported {
        reply: Reply<ExportHtml>,
        answer: Result<Value, String>,
    },
    Listed {
        reply: Reply<ListSessions>,
        sessions: Vec<SessionSummary>,
    },
    /// What was waited for is there; the session goes on with it.
    Then(Then),
}

/// What the session does when something it waited for has come.
pub(crate) type Then = Box<dyn FnOnce(&mut Session) + Send>;

/// A run and what it has begun without ending.
pub(crate) struct ActiveRun {
    pub task: TaskId,
    pub cancel: CancellationToken,
    pub n_turns: u32,
    pub open: Open,
}

/// Starts that still need their end, should the run die.
#[derive(Default)]
pub(crate) struct Open {
    pub is_started: bool,
    pub turn: bool,
    pub has_message: bool,
    pub calls: Vec<Arc<Call>>,
    pub messages: Vec<Arc<Message>>,
}

/// A command that waits until the activity has settled.
pub(crate) enum Waiter {
    Abort(Reply<Abort>),
    Prompt(Reply<AbortAndPrompt>, Waiting),
    /// A replacement of the session.
    Replace(Then),
    Compact(Reply<Compact>, Option<String>),
}

impl Activity {
    pub fn is_busy(&self) -> bool {
        !matches!(self, Activity::Idle)
    }

    pub fn task(&self) -> Option<TaskId> {
        match self {
            Activity::Idle | Activity::Retrying { .. } | Activity::Summarising => None,
            Activity::Running(run) => Some(run.task),
        }
    }
}

impl Waiter {
    pub fn replaces_session(&self) -> bool {
        matches!(self, Waiter::Replace(_))
    }
}
