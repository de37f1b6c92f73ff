//! The tasks of the session, each with an owner that hears of its end.
//!
//! A task hands back a [`JobEnd`]; the session goes on with it in `Session::on_job_end`. A task that panics hands
//! back nothing, so its [`Job`] says who has to be told instead.

use std::collections::HashMap;
use std::panic::resume_unwind;

use pith_agent::blocking;
use pith_ext::Boundary;
use pith_ext::outgoing::Answer;
use pith_protocol::commands::{ExportHtml, ListSessions, NavigateTree};
use pith_store::{SessionSummary, StoreReport};
use serde_json::Value;
use tokio::task::{AbortHandle, Id as TaskId, JoinError, JoinSet};

use crate::admission::Step;
use crate::compaction::{Summary, SummaryFailure};
use crate::extensions::RenewedModels;
use crate::replace::OpenedFile;
use crate::reply::Reply;

/// Whose task it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The active run.
    Run,
    /// The summary being written.
    Summary,
    /// Extensions being told of something the activity waits for.
    Announcement,
    /// Extensions deciding about what holds up later commands.
    Step,
    /// Reading the session file to switch to.
    Opening,
    /// A shell command of the host.
    Shell(u64),
    /// A slash command of an extension.
    ExtensionCommand(u64),
    /// The wait before another attempt.
    RetryWait,
    /// Work nobody has to be told of: replies it carries are answered when they are dropped.
    Background,
}

/// What a task that has ended hands back.
pub(crate) enum JobEnd {
    Done,
    /// Something about the session file that people should hear.
    Report(StoreReport),
    /// The summary, or why there is none.
    Summarised(Result<Summary, SummaryFailure>),
    /// Extensions have been told; what they propose, where they may propose something.
    Announced(Option<Boundary>),
    /// Extensions have decided.
    Stepped(Step),
    /// The wait before another attempt is over.
    RetryDue,
    /// A finished todo has been shown long enough.
    TodoDue(String),
    /// The host has not said whether the project may be trusted.
    TrustUnanswered,
    /// A session file was read.
    Opened(Box<OpenedFile>),
    /// A slash command of an extension has ended.
    CommandRan(u64),
    Exported {
        reply: Reply<ExportHtml>,
        answer: Result<Value, String>,
    },
    Listed {
        reply: Reply<ListSessions>,
        sessions: Vec<SessionSummary>,
    },
    /// Extensions know of a move in the tree.
    MoveTold {
        answer: Value,
        reply: Reply<NavigateTree>,
    },
    /// Extensions that are not there yet are no longer waited for: the process ends.
    StartOverdue,
    /// Providers were asked for their newest models.
    ModelsRenewed(RenewedModels),
    /// Local servers were asked for their models; the providers of extensions come next.
    ModelsDiscovered(Answer<()>),
}

/// All tasks that have not ended.
#[derive(Default)]
pub(crate) struct Jobs {
    tasks: JoinSet<JobEnd>,
    owners: HashMap<TaskId, Job>,
}

/// A task that has ended, and whose it was.
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

    /// Starts work that blocks, on a thread of its own where the system gives one.
    pub fn spawn_blocking(&mut self, job: Job, work: impl FnOnce() -> JobEnd + Send + 'static) {
        let work = blocking(work);
        self.spawn(job, async move { work.await.unwrap_or_else(|panic| resume_unwind(panic)) });
    }

    /// The next task that ends; `None` while there is none. Cancel safe.
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
