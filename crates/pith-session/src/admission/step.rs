//! One decision of extensions after the other: what they are asked, and how the session goes on.

use pith_ext::{DiscoveredResources, InputVerdict, LoadReport};
use pith_protocol::commands::NavigateTree;
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{Hold, Input};
use crate::compaction::Summary;
use crate::jobs::{Job, JobEnd};
use crate::models::ModelAnswer;
use crate::reply::Reply;
use crate::session::Session;

/// What extensions have decided or were told, with whatever the session needs to go on.
pub(crate) enum Step {
    /// `input` handlers have seen a text; no verdict if the host aborted first.
    InputSeen { input: Input, verdict: Option<InputVerdict> },
    /// They know the model the host has chosen.
    ModelTold(ModelAnswer),
    /// They had the chance to object to a replacement of the session.
    ReplacementJudged { is_refused: bool },
    /// Those of the session that is left, or reloaded, have said good-bye.
    SaidGoodbye,
    /// Those of the next session, or those loaded again, are there.
    Loaded(LoadReport),
    /// They know the session and have named resources of their own.
    SessionAnnounced(DiscoveredResources),
    /// They had the chance to object to a move in the tree, or to summarise what is left behind.
    NavigationJudged {
        call: NavigateTree,
        reply: Reply<NavigateTree>,
        is_refused: bool,
        summary: Result<Option<Summary>, String>,
    },
    /// They know of a move in the tree.
    MoveTold { answer: Value, reply: Reply<NavigateTree> },
}

/// A step that has not ended.
pub(super) struct RunningStep {
    task: AbortHandle,
    /// Fires when the host aborts what the step is about, where it can.
    refusal: Option<CancellationToken>,
}

impl RunningStep {
    /// Called when the host aborts.
    pub fn refuse(&self) {
        if let Some(refusal) = &self.refusal {
            refusal.cancel();
        }
    }

    pub fn is_refusable(&self) -> bool {
        self.refusal.is_some()
    }

    fn is_refused(&self) -> bool {
        self.refusal.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

impl Drop for RunningStep {
    /// Ends the task of a step that nobody waits for any more.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session {
    /// Waits for extensions. One step at a time; the caller has seen that none is under way.
    pub(crate) fn begin_step(&mut self, work: impl Future<Output = Step> + Send + 'static) {
        self.start_step(work, None);
    }

    /// The same for what the host can abort, like a prompt on its way to the model: the token fires then, and the
    /// work has to end.
    pub(crate) fn begin_refusable_step<F>(&mut self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = Step> + Send + 'static,
    {
        let refusal = CancellationToken::new();
        self.start_step(work(refusal.clone()), Some(refusal));
    }

    fn start_step(&mut self, work: impl Future<Output = Step> + Send + 'static, refusal: Option<CancellationToken>) {
        let task = self.jobs.spawn(Job::Step, async move { JobEnd::Stepped(work.await) });
        self.admission.step = Some(RunningStep { task, refusal });
    }

    /// Goes on with what extensions have decided, then with whatever waited for that.
    pub(crate) fn on_step(&mut self, step: Step) {
        let was_refused = self.admission.step.take().is_some_and(|running| running.is_refused());
        self.admission.end_input_delay();
        match step {
            Step::InputSeen { input, verdict } => self.on_input_seen(input, verdict.filter(|_| !was_refused)),
            Step::ModelTold(answer) => self.answer_model(answer),
            Step::ReplacementJudged { is_refused } => self.on_replacement_judged(is_refused || was_refused),
            Step::SaidGoodbye => self.on_goodbye(),
            Step::Loaded(report) => self.on_loaded(report),
            Step::SessionAnnounced(found) => self.on_session_announced(found),
            Step::NavigationJudged { call, reply, is_refused, summary } => {
                self.on_navigation_judged(call, reply, is_refused || was_refused, summary);
            }
            Step::MoveTold { answer, reply } => self.answer(reply, Ok(answer)),
        }
        self.admit_waiting();
    }

    /// Called when a bug ended a step: what it was about is given up, and whoever asked for it is answered.
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
