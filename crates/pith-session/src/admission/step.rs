//! Steps: decisions of extensions that later commands wait for, one at a time, and how the session goes on after each.

use pith_ext::{DiscoveredResources, InputVerdict, LoadReport};
use pith_protocol::CommandError;
use pith_protocol::answers::{Navigated, Restored};
use pith_protocol::commands::{NavigateTree, RestoreCheckpoint};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{Hold, Input};
use crate::compaction::Summary;
use crate::jobs::{Job, JobEnd};
use crate::mcp::McpInput;
use crate::models::ModelAnswer;
use crate::navigation::Moved;
use crate::replace::ReplacementReply;
use crate::reply::Reply;
use crate::session::Session;

/// What extensions have decided or were told, with what the session needs to go on.
pub(crate) enum Step {
    /// `input` handlers have returned; there is no verdict if the host aborted first.
    InputSeen { input: Input, verdict: Option<InputVerdict> },
    /// MCP servers have added what an input names; nothing if the host aborted first.
    InputExpanded { input: Input, expanded: Option<Result<McpInput, String>> },
    /// Extensions were told which model the host selected.
    ModelTold(ModelAnswer),
    /// Extensions could refuse a replacement of the session.
    ReplacementDecided { is_refused: bool },
    /// The extensions of the session that is left, or reloaded, have handled `session_shutdown`.
    ShutdownHandled,
    /// The extensions of the next session, or the reloaded ones, are loaded.
    Loaded(LoadReport),
    /// Extensions have handled `session_start` and named their resources.
    SessionAnnounced(DiscoveredResources),
    /// Extensions could refuse a move in the tree, or summarise the branch it leaves.
    NavigationDecided {
        call: NavigateTree,
        reply: Reply<NavigateTree>,
        is_refused: bool,
        summary: Result<Option<Summary>, String>,
    },
    /// Files were put back.
    FilesRestored { reply: Reply<RestoreCheckpoint>, outcome: Result<Restored, CommandError> },
    /// Files were put back after a move in the tree.
    MoveRestored { moved: Box<Moved>, outcome: Result<Restored, CommandError> },
    /// Files were put back after a fork has taken the place of the session.
    ForkRestored { reply: ReplacementReply, text: Option<String>, outcome: Result<Restored, CommandError> },
    /// Extensions were told of a move in the tree.
    MoveTold { answer: Navigated, reply: Reply<NavigateTree> },
}

/// The step under way.
pub(super) struct RunningStep {
    task: AbortHandle,
    /// Fires when the host aborts what the step is about; `None` if the host cannot.
    abort: Option<CancellationToken>,
}

impl RunningStep {
    /// Called when the host aborts.
    pub fn abort(&self) {
        if let Some(abort) = &self.abort {
            abort.cancel();
        }
    }

    pub fn is_abortable(&self) -> bool {
        self.abort.is_some()
    }

    fn is_aborted(&self) -> bool {
        self.abort.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

impl Drop for RunningStep {
    /// Ends the task of a step whose result is no longer needed.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session {
    /// Starts a step. The caller has checked that none is under way.
    pub(crate) fn begin_step(&mut self, work: impl Future<Output = Step> + Send + 'static) {
        self.start_step(work, None);
    }

    /// Starts a step about something the host can abort, like a prompt on its way to the model. The token fires when it
    /// does; `work` must then end.
    pub(crate) fn begin_abortable_step<F>(&mut self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = Step> + Send + 'static,
    {
        let abort = CancellationToken::new();
        self.start_step(work(abort.clone()), Some(abort));
    }

    fn start_step(&mut self, work: impl Future<Output = Step> + Send + 'static, abort: Option<CancellationToken>) {
        let task = self.jobs.spawn(Job::Step, async move { JobEnd::Stepped(work.await) });
        self.admission.step = Some(RunningStep { task, abort });
    }

    /// Acts on the result of a step, then serves what waited for it.
    pub(crate) fn on_step(&mut self, step: Step) {
        let was_aborted = self.admission.step.take().is_some_and(|running| running.is_aborted());
        self.admission.end_input_delay();
        match step {
            Step::InputSeen { input, verdict } => self.on_input_seen(input, verdict.filter(|_| !was_aborted)),
            Step::InputExpanded { input, expanded } => self.on_input_expanded(input, expanded.filter(|_| !was_aborted)),
            Step::ModelTold(answer) => self.answer_model(answer),
            Step::ReplacementDecided { is_refused } => self.on_replacement_decided(is_refused || was_aborted),
            Step::ShutdownHandled => self.on_shutdown_handled(),
            Step::Loaded(report) => self.on_loaded(report),
            Step::SessionAnnounced(found) => self.on_session_announced(found),
            Step::NavigationDecided { call, reply, is_refused, summary } => {
                self.on_navigation_decided(call, reply, is_refused || was_aborted, summary);
            }
            Step::FilesRestored { reply, outcome } => self.on_files_restored(reply, outcome),
            Step::MoveRestored { moved, outcome } => self.on_move_restored(*moved, outcome),
            Step::ForkRestored { reply, text, outcome } => self.on_fork_restored(reply, text, outcome),
            Step::MoveTold { answer, reply } => self.answer(reply, Ok(answer)),
        }
        self.admit_waiting();
    }

    /// Called when a step panicked. Gives up what it was about; the command that caused it is answered with an error.
    pub(crate) fn on_step_panic(&mut self) {
        self.admission.step = None;
        self.admission.end_input_delay();
        match &self.admission.hold {
            Some(Hold::Reloading(_)) => self.end_reload(),
            Some(Hold::Loading | Hold::Starting) => self.end_start(),
            None => self.fail_replacement(),
        }
        self.admit_waiting();
    }
}
