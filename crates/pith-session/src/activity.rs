//! What the session is doing, and what waits until it has stopped. Only this module changes it.
//!
//! At most one thing at a time talks to the model. Whatever belongs to it is owned by the state it is in, so that it
//! goes when the state goes:
//!
//! ```text
//!            prompt                       agent_settled
//!   Idle ───────────► Working ─────────────────────────► Idle
//!     │                 Compacting ─► Running ⇄ Retrying
//!     │                     ▲            │
//!     │                     └────────────┴─► BeforeSettling ─► Settling
//!     ├── compact ───────► Compacting ─────────────────► Idle
//!     └── navigate_tree ─► Navigating ─────────────────► Idle
//! ```

use pith_agent::Opening;
use pith_ext::FromExtension;
use pith_protocol::commands::{Abort, AbortAndPrompt, Compact};
use pith_store::InputId;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::UserInput;
use crate::compaction::{Compaction, Recovery};
use crate::extensions::RunPrompt;
use crate::navigation::Navigation;
use crate::reply::{InputReply, Reply};
use crate::run::{AcceptedPrompt, FromRun, Retry, Run};
use crate::session::Session;

/// The present state.
#[derive(Default)]
pub(crate) struct Activity {
    state: State,
}

#[derive(Default)]
#[allow(clippy::large_enum_variant, reason = "a session has one")]
enum State {
    #[default]
    Idle,
    Working {
        work: Box<Work>,
        stage: Stage,
    },
    /// On request of the host or an extension.
    Compacting(Box<Compaction>, Reply<Compact>),
    /// The summary of the branch being left is written first.
    Navigating {
        cancel: CancellationToken,
        navigation: Box<Navigation>,
    },
}

/// Work on a prompt, or on whatever else made the model go on: from the answer `started` to `agent_settled`. This is
/// what its stages share; whoever ends a stage hands it on to the next one.
#[derive(Default)]
pub(crate) struct Work {
    /// The prompt it began with, while it may still turn out to be impossible.
    pub accepted: Option<AcceptedPrompt>,
    /// The system prompt as extensions want it for this work.
    pub prompt: Option<RunPrompt>,
    pub retry: Retry,
    pub recovery: Recovery,
}

/// How far the work is.
pub(crate) enum Stage {
    /// Room is made in the window, between runs.
    Compacting(Compaction, AfterCompaction),
    Running(Run),
    /// A failed run is waited out.
    Retrying(AbortHandle),
    /// Extensions have the last word.
    BeforeSettling {
        cancel: CancellationToken,
    },
    /// Extensions are told that it is over; the host is told next.
    Settling {
        cancel: CancellationToken,
        was_aborted: bool,
    },
}

/// How the work goes on after a compaction between runs.
pub(crate) enum AfterCompaction {
    /// The end, unless something was queued meanwhile.
    GoOn,
    /// The same request again.
    Retry,
    /// The run that was about to start.
    Start(RunStart),
}

/// What a run begins with.
pub(crate) struct RunStart {
    pub opening: Opening,
    /// The prompt, where `before_agent_start` handlers are to see it.
    pub prompted: Option<UserInput>,
    /// The store's record of the prompt, until its message is an entry.
    pub input: Option<InputId>,
}

/// A command that is carried out once nothing runs any more.
pub(crate) enum AfterSettled {
    Abort(Reply<Abort>),
    Prompt(Reply<AbortAndPrompt>, UserInput),
    Compact(Reply<Compact>, Option<String>),
    /// The replacement of the session that is under way goes on.
    Replace,
    /// A message that an extension sent while it was told of a compaction. It stops nothing.
    Request(FromExtension),
}

impl RunStart {
    /// A run that no prompt starts.
    pub fn with(opening: Opening) -> Self {
        RunStart { opening, prompted: None, input: None }
    }
}

impl Activity {
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub fn is_busy(&self) -> bool {
        !self.is_idle()
    }

    /// Whether the model works on a prompt: a summary on request does not count.
    pub fn is_working(&self) -> bool {
        matches!(self.state, State::Working { .. })
    }

    /// Whether extensions are being told that the work is over.
    pub fn is_settling(&self) -> bool {
        matches!(self.stage(), Some(Stage::Settling { .. }))
    }

    /// Whether a summary is being written or told of.
    pub fn is_summarising(&self) -> bool {
        matches!(self.state, State::Navigating { .. }) || self.compaction().is_some()
    }

    /// Whether messages may be appended now: nothing runs, or only a summary on request.
    pub fn takes_messages(&self) -> bool {
        !self.is_working()
    }

    pub fn stage(&self) -> Option<&Stage> {
        match &self.state {
            State::Working { stage, .. } => Some(stage),
            State::Idle | State::Compacting(..) | State::Navigating { .. } => None,
        }
    }

    pub fn work(&self) -> Option<&Work> {
        match &self.state {
            State::Working { work, .. } => Some(work),
            State::Idle | State::Compacting(..) | State::Navigating { .. } => None,
        }
    }

    pub fn work_mut(&mut self) -> Option<&mut Work> {
        match &mut self.state {
            State::Working { work, .. } => Some(work),
            State::Idle | State::Compacting(..) | State::Navigating { .. } => None,
        }
    }

    pub fn run(&self) -> Option<&Run> {
        match self.stage()? {
            Stage::Running(run) => Some(run),
            _ => None,
        }
    }

    pub fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.state {
            State::Working { stage: Stage::Running(run), .. } => Some(run),
            _ => None,
        }
    }

    /// The compaction under way, wherever it is.
    pub fn compaction(&self) -> Option<&Compaction> {
        match &self.state {
            State::Compacting(compaction, _) => Some(compaction),
            State::Working { stage: Stage::Compacting(compaction, _), .. } => Some(compaction),
            State::Working { stage: Stage::Running(run), .. } => {
                run.compaction.as_ref().map(|(compaction, _)| compaction)
            }
            State::Idle | State::Working { .. } | State::Navigating { .. } => None,
        }
    }

    pub fn compaction_mut(&mut self) -> Option<&mut Compaction> {
        match &mut self.state {
            State::Compacting(compaction, _) => Some(compaction),
            State::Working { stage: Stage::Compacting(compaction, _), .. } => Some(compaction),
            State::Working { stage: Stage::Running(run), .. } => {
                run.compaction.as_mut().map(|(compaction, _)| compaction)
            }
            State::Idle | State::Working { .. } | State::Navigating { .. } => None,
        }
    }

    /// Whether extensions are being told of a compaction that was asked for.
    pub fn announces_requested(&self) -> bool {
        matches!(&self.state, State::Compacting(compaction, _) if compaction.is_announced())
    }

    /// Stops the summary of a branch, if one is being written.
    pub fn navigation_cancel(&self) -> Option<&CancellationToken> {
        match &self.state {
            State::Navigating { cancel, .. } => Some(cancel),
            State::Idle | State::Working { .. } | State::Compacting(..) => None,
        }
    }

    /// The next message of the active run; never, without one. Cancel safe.
    pub async fn next_from_run(&mut self) -> Option<FromRun> {
        match self.run_mut() {
            Some(run) => run.events.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Goes on with work in its next stage.
    pub fn enter(&mut self, work: Box<Work>, stage: Stage) {
        self.state = State::Working { work, stage };
    }

    /// Begins a compaction on request. Nothing runs.
    pub fn begin_requested(&mut self, compaction: Compaction, reply: Reply<Compact>) {
        self.state = State::Compacting(Box::new(compaction), reply);
    }

    /// Begins to summarise the branch that is being left. Nothing runs.
    pub fn begin_navigation(&mut self, cancel: CancellationToken, navigation: Navigation) {
        self.state = State::Navigating { cancel, navigation: Box::new(navigation) };
    }

    /// Ends a run. The caller goes on with the work.
    pub fn end_run(&mut self) -> Option<(Box<Work>, Run)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Running(run) } => Ok((work, run)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends a compaction between runs. The caller goes on with the work.
    pub fn end_compaction(&mut self) -> Option<(Box<Work>, Compaction, AfterCompaction)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Compacting(compaction, after) } => Ok((work, compaction, after)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the wait before another attempt. The caller goes on with the work.
    pub fn end_retry_wait(&mut self) -> Option<(Box<Work>, AbortHandle)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Retrying(wait) } => Ok((work, wait)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the extensions' last word; `true` if somebody has aborted meanwhile. The caller goes on with the work.
    pub fn end_last_word(&mut self) -> Option<(Box<Work>, bool)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::BeforeSettling { cancel } } => Ok((work, cancel.is_cancelled())),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the work that extensions were told is over; `true` if it was aborted.
    pub fn end_settling(&mut self) -> Option<bool> {
        self.end_if(|state| match state {
            State::Working { stage: Stage::Settling { was_aborted, .. }, .. } => Ok(was_aborted),
            other => Err(Box::new(other)),
        })
    }

    /// Ends a compaction on request.
    pub fn end_requested(&mut self) -> Option<(Compaction, Reply<Compact>)> {
        self.end_if(|state| match state {
            State::Compacting(compaction, reply) => Ok((*compaction, reply)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the summary of a branch.
    pub fn end_navigation(&mut self) -> Option<Navigation> {
        self.end_if(|state| match state {
            State::Navigating { navigation, .. } => Ok(*navigation),
            other => Err(Box::new(other)),
        })
    }

    /// Leaves the present state if it is the one `pick` knows.
    fn end_if<T>(&mut self, pick: impl FnOnce(State) -> Result<T, Box<State>>) -> Option<T> {
        match pick(std::mem::take(&mut self.state)) {
            Ok(ended) => Some(ended),
            Err(other) => {
                self.state = *other;
                None
            }
        }
    }
}

impl Session {
    /// Stops whatever talks to the model, or waits to.
    pub(crate) fn stop_activity(&mut self) {
        if let Some(compaction) = self.activity.compaction() {
            compaction.cancel.cancel();
        }
        if let Some(cancel) = self.activity.navigation_cancel() {
            cancel.cancel();
        }
        match self.activity.stage() {
            None | Some(Stage::Compacting(..)) => {}
            Some(Stage::Running(run)) => {
                run.cancel.cancel();
                if let Some(handle) = self.extension_handle() {
                    handle.abort_run();
                }
                self.rules.forget_pending();
            }
            Some(Stage::BeforeSettling { cancel } | Stage::Settling { cancel, .. }) => cancel.cancel(),
            Some(Stage::Retrying(_)) => self.stop_retrying(),
        }
    }

    /// Stops what runs and carries a command out when it has stopped; at once if nothing runs.
    pub(crate) fn when_settled(&mut self, command: AfterSettled) {
        self.after_settled.push(command);
        if self.activity.is_busy() {
            self.stop_activity();
        } else {
            self.serve_after_settled();
        }
    }

    /// Carries out what waited, in order. A command that starts a run leaves the rest waiting for that run, which
    /// they stop in turn.
    pub(crate) fn serve_after_settled(&mut self) {
        while !self.after_settled.is_empty() {
            let stops = !matches!(self.after_settled[0], AfterSettled::Request(_));
            if stops && self.activity.is_busy() {
                return self.stop_activity();
            }
            if matches!(self.after_settled[0], AfterSettled::Replace) && self.shell.is_running() {
                // Their records belong to the session that is being left.
                return self.shell.abort_all();
            }
            match self.after_settled.remove(0) {
                AfterSettled::Abort(reply) => self.answer(reply, Ok(())),
                AfterSettled::Prompt(reply, input) => self.start_prompt(input, InputReply::AbortAndPrompt(reply)),
                AfterSettled::Compact(reply, focus) => self.compact_now(focus, reply),
                AfterSettled::Replace => self.replace_now(),
                AfterSettled::Request(request) => self.serve_request(request),
            }
        }
        self.rest_if_still();
    }

    /// Called when an activity has ended: carries out what waited for that.
    pub(crate) fn after_activity(&mut self) {
        if self.is_closing {
            self.quit_extensions();
        }
        self.serve_after_settled();
        self.admit_waiting();
    }
}
