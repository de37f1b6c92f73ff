//! The tasks of the session, each with an owner that is told of its end.
//!
//! A task returns a [`JobEnd`], which `Session::on_job_end` handles. A task that panics returns nothing, so its [`Job`]
//! names the owner to tell instead.

use pith_protocol::CommandError;
use pith_protocol::answers::{Checkpoints, Exported, Navigated};
use std::collections::HashMap;
use std::io;
use std::panic::resume_unwind;

use pith_agent::{ToolOutput, Turn, blocking};
use pith_ext::Boundary;
use pith_ext::outgoing::Answer;
use pith_protocol::commands::{ExportHtml, ListCheckpoints, ListSessions, McpLogin, NavigateTree};
use pith_store::{SessionSummary, StoreReport};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id as TaskId, JoinError, JoinSet};

use crate::admission::Step;
use crate::compaction::{Summary, SummaryFailure};
use crate::extensions::RefreshedModels;
use crate::limits::RepeatAnswer;
use crate::mcp::{McpPage, McpReply};
use crate::project::TrustTurn;
use crate::replace::OpenedFile;
use crate::reply::Reply;

/// The owner of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The active run.
    Run,
    /// The summary being written.
    Summary,
    /// Tells extensions about something; the activity waits for it.
    Announcement,
    /// Asks extensions for a decision that later commands wait for.
    Step,
    /// Reads the session file to switch to.
    Opening,
    /// A shell command of the host.
    Shell(u64),
    /// A slash command of an extension.
    ExtensionCommand(u64),
    /// The wait before another attempt.
    RetryWait,
    /// What MCP servers do for a command of the host.
    Servers,
    /// Work that has no owner to tell: replies it carries are answered with an error when they are dropped.
    Background,
}

/// What a finished task returns.
pub(crate) enum JobEnd {
    Done,
    /// A problem with the session file, for the host and the log.
    Report(StoreReport),
    /// The summary, or why there is none.
    Summarised(Result<Summary, SummaryFailure>),
    /// Extensions have been told. Carries what they propose, where they may propose something.
    Announced(Option<Boundary>),
    /// Extensions have made the decision that later commands wait for.
    Stepped(Step),
    /// The wait before another attempt is over.
    RetryDue,
    /// A finished todo has been shown long enough.
    TodoDue(String),
    /// The host has not answered in time whether the project may be trusted.
    TrustUnanswered,
    /// Another session no longer asks whether the project may be trusted.
    TrustTurn(Box<TrustTurn>),
    /// The time for an answer whether a call may run is over.
    PermissionOverdue(String),
    /// A session file was read.
    Opened(Box<OpenedFile>),
    /// A slash command of an extension has ended.
    CommandRan(u64),
    Exported {
        reply: Reply<ExportHtml>,
        answer: Result<Exported, CommandError>,
    },
    Listed {
        reply: Reply<ListSessions>,
        sessions: Vec<SessionSummary>,
    },
    CheckpointsListed {
        reply: Reply<ListCheckpoints>,
        answer: Result<Checkpoints, CommandError>,
    },
    /// Extensions have been told of a move in the tree.
    MoveTold {
        answer: Navigated,
        reply: Reply<NavigateTree>,
    },
    /// The servers whose tools the next request needs have started, or have not in time.
    ServersReady(oneshot::Sender<Turn>),
    /// The servers that a search of the model may be about have said what they offer, or have not in time.
    ServersListed {
        arguments: Map<String, Value>,
        answer: oneshot::Sender<ToolOutput>,
    },
    /// The project was measured, or its run was stopped before; the run waits for its next request.
    Measured {
        measured: Option<io::Result<u64>>,
        turn: Option<oneshot::Sender<Turn>>,
    },
    /// MCP servers have done what a command asked for.
    ServersAsked(McpReply),
    /// The page of a sign-in to an MCP server is known, or there is none.
    SignInBegun {
        reply: Reply<McpLogin>,
        begun: Result<McpPage, String>,
    },
    /// The process is ending and the extensions that are still loading have taken too long.
    StartOverdue,
    /// Extensions were asked for the current models of their providers.
    ModelsRefreshed(RefreshedModels),
    /// The host was asked whether a repeated call is to be made.
    RepeatAnswered(Box<RepeatAnswer>),
    /// Local servers were asked for their models; the providers of extensions are asked next.
    ModelsDiscovered(Answer<()>),
}

/// All tasks that have not ended.
#[derive(Default)]
pub(crate) struct Jobs {
    tasks: JoinSet<JobEnd>,
    owners: HashMap<TaskId, Job>,
}

/// A task that has ended, with its owner.
pub(crate) struct EndedJob {
    pub job: Job,
    pub end: Result<JobEnd, JoinError>,
}

impl Jobs {
    /// Starts a task.
    pub fn spawn(&mut self, job: Job, work: impl Future<Output = JobEnd> + Send + 'static) -> AbortHandle {
        let task = self.tasks.spawn(work);
        self.owners.insert(task.id(), job);
        task
    }

    /// Runs blocking work on a thread of its own, if the system can start one.
    pub fn spawn_blocking(&mut self, job: Job, work: impl FnOnce() -> JobEnd + Send + 'static) {
        let work = blocking(work);
        self.spawn(job, async move { work.await.unwrap_or_else(|panic| resume_unwind(panic)) });
    }

    /// Waits for the next task to end; `None` if there is no task. Cancel safe.
    pub async fn next(&mut self) -> Option<EndedJob> {
        let ended = self.tasks.join_next_with_id().await?;
        let (task, end) = match ended {
            Ok((task, end)) => (task, Ok(end)),
            Err(error) => (error.id(), Err(error)),
        };
        let job = self.owners.remove(&task).expect("every task is started with its owner");
        Some(EndedJob { job, end })
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
