//! What the session is doing, and what waits until it has stopped. Only this module changes it.
//!
//! At most one thing at a time talks to the model. Each state owns everything that belongs to it, so leaving the state
//! drops it all:
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

use std::sync::Arc;

use pith_agent::trace::WorkSpan;
use pith_ext::FromExtension;
use pith_protocol::commands::{Abort, AbortAndPrompt, Compact};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::UserInput;
use crate::compaction::{Compaction, Recovery};
use crate::extensions::RunPrompt;
use crate::navigation::Navigation;
use crate::reply::{InputReply, Reply};
use crate::run::{AcceptedPrompt, FromRun, Retry, Run, RunStart};
use crate::session::Session;

/// What the session is doing.
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
    /// Compacting because the host or an extension asked for it.
    Compacting(Box<Compaction>, Reply<Compact>),
    /// Summarising the branch that `navigate_tree` leaves.
    Navigating {
        cancel: CancellationToken,
        navigation: Box<Navigation>,
    },
}

/// Work on a prompt, or on anything else that made the model run: from the answer `started` to `agent_settled`. Holds
/// what its stages share; the code that ends a stage passes it on to the next one.
#[derive(Default)]
pub(crate) struct Work {
    /// The prompt that started the work, until the first answer shows that it could be sent.
    pub accepted: Option<AcceptedPrompt>,
    /// The system prompt as extensions changed it for this work.
    pub prompt: Option<RunPrompt>,
    pub retry: Retry,
    pub recovery: Recovery,
    /// Set if somebody watches.
    pub trace: Option<Arc<dyn WorkSpan>>,
}

/// Where the work stands.
pub(crate) enum Stage {
    /// Compacting between runs.
    Compacting(Compaction, AfterCompaction),
    Running(Run),
    /// Waiting before the next attempt after a failed run.
    Retrying(AbortHandle),
    /// Extensions handle `agent_before_settle` and may continue the work.
    BeforeSettling {
        cancel: CancellationToken,
    },
    /// Extensions handle `agent_settled`; the host is told next.
    Settling {
        cancel: CancellationToken,
        was_aborted: bool,
    },
}

/// What follows a compaction between runs.
pub(crate) enum AfterCompaction {
    /// Ends the work, unless something was queued meanwhile.
    GoOn,
    /// Sends the same request again.
    Retry,
    /// Starts the run that was about to start.
    Start(Box<RunStart>),
}

/// A command that is carried out once nothing runs any more.
pub(crate) enum AfterSettled {
    Abort(Reply<Abort>),
    Prompt(Reply<AbortAndPrompt>, UserInput),
    Compact(Reply<Compact>, Option<String>),
    /// Continues the replacement of the session.
    Replace,
    /// A message that an extension sent while handling `session_compact`. Unlike the others, it stops nothing.
    Request(FromExtension),
}

impl Activity {
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub fn is_busy(&self) -> bool {
        !self.is_idle()
    }

    /// Whether the model works on a prompt. A requested compaction or summary does not count.
    pub fn is_working(&self) -> bool {
        matches!(self.state, State::Working { .. })
    }

    /// Whether extensions are handling `agent_settled`.
    pub fn is_settling(&self) -> bool {
        matches!(self.stage(), Some(Stage::Settling { .. }))
    }

    /// Whether a summary is being written or announced.
    pub fn is_summarising(&self) -> bool {
        matches!(self.state, State::Navigating { .. }) || self.compaction().is_some()
    }

    /// Whether messages may be appended now: nothing runs, or only a requested summary.
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

    /// The compaction under way, in whichever state it is.
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

    /// Whether extensions are handling the `session_compact` of a requested compaction.
    pub fn announces_requested(&self) -> bool {
        matches!(&self.state, State::Compacting(compaction, _) if compaction.is_announced())
    }

    /// The token that stops the summary of a branch, if one is being written.
    pub fn navigation_cancel(&self) -> Option<&CancellationToken> {
        match &self.state {
            State::Navigating { cancel, .. } => Some(cancel),
            State::Idle | State::Working { .. } | State::Compacting(..) => None,
        }
    }

    /// Whether the stage of the work was told to stop and has not stopped yet.
    pub fn is_stopping(&self) -> bool {
        match self.stage() {
            Some(Stage::Running(run)) => run.cancel.is_cancelled(),
            Some(Stage::Compacting(compaction, _)) => compaction.cancel.is_cancelled(),
            Some(Stage::BeforeSettling { cancel } | Stage::Settling { cancel, .. }) => cancel.is_cancelled(),
            Some(Stage::Retrying(_)) | None => false,
        }
    }

    /// Waits for the next message of the active run; for ever without one. Cancel safe.
    pub async fn next_from_run(&mut self) -> Option<FromRun> {
        match self.run_mut() {
            Some(run) => run.events.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Continues work in another stage.
    pub fn enter(&mut self, work: Box<Work>, stage: Stage) {
        self.state = State::Working { work, stage };
    }

    /// Starts a requested compaction. The caller has checked that nothing runs.
    pub fn begin_requested(&mut self, compaction: Compaction, reply: Reply<Compact>) {
        self.state = State::Compacting(Box::new(compaction), reply);
    }

    /// Starts the summary of the branch that is being left. The caller has checked that nothing runs.
    pub fn begin_navigation(&mut self, cancel: CancellationToken, navigation: Navigation) {
        self.state = State::Navigating { cancel, navigation: Box::new(navigation) };
    }

    /// Ends a run. The caller continues the work.
    pub fn end_run(&mut self) -> Option<(Box<Work>, Run)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Running(run) } => Ok((work, run)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends a compaction between runs. The caller continues the work.
    pub fn end_compaction(&mut self) -> Option<(Box<Work>, Compaction, AfterCompaction)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Compacting(compaction, after) } => Ok((work, compaction, after)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the wait before another attempt. The caller continues the work.
    pub fn end_retry_wait(&mut self) -> Option<(Box<Work>, AbortHandle)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::Retrying(wait) } => Ok((work, wait)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the stage in which extensions handle `agent_before_settle`; the token tells whether it was cut short. The
    /// caller continues the work.
    pub fn end_before_settling(&mut self) -> Option<(Box<Work>, CancellationToken)> {
        self.end_if(|state| match state {
            State::Working { work, stage: Stage::BeforeSettling { cancel } } => Ok((work, cancel)),
            other => Err(Box::new(other)),
        })
    }

    /// Ends the work after extensions have handled `agent_settled`; `true` if it was aborted.
    pub fn end_settling(&mut self) -> Option<bool> {
        self.end_if(|state| match state {
            State::Working { stage: Stage::Settling { was_aborted, .. }, .. } => Ok(was_aborted),
            other => Err(Box::new(other)),
        })
    }

    /// Ends a requested compaction.
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

    /// Leaves the current state if `pick` accepts it.
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
    /// Stops everything that talks to the model or waits to do so.
    pub(crate) fn stop_activity(&mut self) {
        self.abandon_calls();
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
                self.release_turn();
            }
            Some(Stage::BeforeSettling { cancel } | Stage::Settling { cancel, .. }) => cancel.cancel(),
            Some(Stage::Retrying(_)) => self.stop_retrying(),
        }
    }

    /// Stops what runs and carries out a command once it has stopped; at once if nothing runs.
    pub(crate) fn when_settled(&mut self, command: AfterSettled) {
        self.after_settled.push(command);
        if self.activity.is_busy() {
            self.stop_activity();
        } else {
            self.serve_after_settled();
        }
    }

    /// Carries out the waiting commands in order. If one of them starts a run, the rest wait for that run and stop it.
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
                AfterSettled::Prompt(reply, input) => self.start_prompt(input, None, InputReply::AbortAndPrompt(reply)),
                AfterSettled::Compact(reply, focus) => self.compact_now(focus, reply),
                AfterSettled::Replace => self.replace_now(),
                AfterSettled::Request(request) => self.serve_request(request),
            }
        }
        self.check_fully_idle();
    }

    /// Called when an activity has ended. Carries out what waited for that.
    pub(crate) fn after_activity(&mut self) {
        if self.is_closing {
            self.quit_extensions();
        }
        self.serve_after_settled();
        self.admit_waiting();
    }
}
