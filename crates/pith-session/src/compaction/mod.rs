//! Compaction: when it is due, what is kept, how the summary is written, and what follows.
//!
//! `due` and `plan` decide, `summary` has the text written, `end` stores and announces the result. A compaction ends
//! when extensions have handled it; until then it belongs to the activity it is part of, see [`crate::activity`].

mod branch;
mod budget;
mod context;
mod cut;
mod due;
mod end;
mod files;
mod material;
mod pieces;
mod plan;
mod prompts;
mod serialise;
mod shorten;
mod summariser;
mod summary;

use pith_protocol::answers::CompactionResult;
use pith_protocol::{CommandError, ErrorCode};
use std::sync::Arc;

use pith_agent::Opening;
use pith_agent::trace::{ChatParent, CompactionSpan};
use pith_protocol::commands::Compact;
use pith_protocol::{AssistantMessage, CompactionReason, Event, Message, Model};
use pith_store::Kind;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::activity::{AfterCompaction, AfterSettled, Stage, Work};
use crate::reply::Reply;
use crate::run::RunStart;
use crate::session::Session;
pub(crate) use branch::BranchMaterial;
pub(crate) use budget::WindowBudget;
pub(crate) use context::{Context, has_count};
use due::{Due, due};
pub(crate) use files::FileLists;
pub(crate) use material::{Author, Material, Summary};
pub(crate) use plan::Kept;
pub(crate) use summariser::{SummaryFailure, SummaryProgress};
pub(crate) use summary::{SummaryEvents, SummaryTask};

const ALREADY: &str = "Already compacted";
const NOTHING: &str = "Nothing to compact (session too small)";
const IN_PROGRESS: &str = "Compaction already in progress";
const SECOND_OVERFLOW: &str = "Context overflow recovery failed after one compact-and-retry attempt. \
                               Try reducing context or switching to a larger-context model.";

/// A compaction under way.
pub(crate) struct Compaction {
    pub cancel: CancellationToken,
    reason: CompactionReason,
    /// Whether the same request is sent again afterwards.
    will_retry: bool,
    kept: Kept,
    progress: Progress,
    /// Writes the summary, then announces it to extensions.
    task: AbortHandle,
    /// Set if somebody watches.
    trace: Option<Arc<dyn CompactionSpan>>,
}

enum Progress {
    Summarising,
    /// The summary is stored, or there is none; extensions are being told.
    Announcing(Box<Result<CompactionResult, SummaryFailure>>),
}

/// What was already tried for the current request.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The window was exceeded, and the request was sent again after a compaction.
    has_retried: bool,
    /// A compaction that was due has failed; trying again before the next turn would fail as well.
    has_failed: bool,
}

impl Compaction {
    /// Whether the summary is written and extensions are being told.
    pub fn is_announced(&self) -> bool {
        matches!(self.progress, Progress::Announcing(_))
    }
}

impl Session {
    /// Serves `compact` once nothing runs.
    pub(crate) fn compact(&mut self, call: Compact, reply: Reply<Compact>) {
        let is_waiting = self.after_settled.iter().any(|command| matches!(command, AfterSettled::Compact(..)));
        if self.activity.is_summarising() || is_waiting {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Compacting, IN_PROGRESS)));
        }
        self.when_settled(AfterSettled::Compact(reply, call.custom_instructions));
    }

    /// Compacts now; nothing runs.
    pub(crate) fn compact_now(&mut self, focus: Option<String>, reply: Reply<Compact>) {
        let reason = CompactionReason::Manual;
        if let Err(error) = self.store.lock() {
            return self.answer(reply, Err(error.into()));
        }
        self.out.event(&Event::CompactionStart { reason });
        let model = self.check_limits().and_then(|()| self.models.usable().cloned());
        let plan = model.and_then(|model| {
            let is_compacted =
                self.store.leaf().and_then(|leaf| self.store.tree().kind(leaf)) == Some(Kind::Compaction);
            if is_compacted {
                return Err(CommandError::new(ErrorCode::NothingToCompact, ALREADY));
            }
            let (kept, material) =
                self.plan(&model, focus).ok_or_else(|| CommandError::new(ErrorCode::NothingToCompact, NOTHING))?;
            Ok((model, kept, material))
        });
        match plan {
            Ok((model, kept, material)) => {
                let trace = self.requested_compaction_span(reason);
                let compaction = self.begin_compaction(model, kept, material, reason, false, trace);
                self.activity.begin_requested(compaction, reply);
            }
            Err(why) => {
                self.tell_failure(reason, &SummaryFailure::Failed(why.text.clone()));
                self.store.unlock();
                self.answer(reply, Err(why));
            }
        }
    }

    /// Checks the last answer of a run and continues the work, after a compaction if one is due.
    pub(crate) fn compact_after_run(&mut self, work: Box<Work>, answer: Option<&AssistantMessage>) {
        let Some((model, found)) = answer.and_then(|answer| self.due(answer)) else { return self.go_on(work) };
        let reason = match found {
            Due::Nothing => return self.go_on(work),
            Due::Threshold => CompactionReason::Threshold,
            Due::Overflow => CompactionReason::Overflow,
            Due::FailedOverflow => return self.recover(work, &model),
        };
        if let Err((work, _)) = self.compact_between_runs(work, &model, reason, AfterCompaction::GoOn) {
            self.go_on(work);
        }
    }

    /// Checks the last answer of the conversation and starts a run, after a compaction if one is due.
    pub(crate) fn compact_or_start(&mut self, work: Box<Work>, start: RunStart) {
        let last = self.store.messages().iter().rev().find_map(|message| message.as_assistant());
        let reason = match last.and_then(|answer| self.due(answer)) {
            None | Some((_, Due::Nothing)) => return self.start_run(work, start),
            Some((model, Due::Threshold)) => (model, CompactionReason::Threshold),
            Some((model, Due::Overflow | Due::FailedOverflow)) => (model, CompactionReason::Overflow),
        };
        let (model, reason) = reason;
        let refused = self.compact_between_runs(work, &model, reason, AfterCompaction::Start(Box::new(start)));
        if let Err((work, AfterCompaction::Start(start))) = refused {
            self.start_run(work, *start);
        }
    }

    /// Lets the run's next turn begin, after a compaction if one is due.
    pub(crate) fn before_turn(&mut self, go: oneshot::Sender<()>) {
        let is_stopping = self.activity.run().is_some_and(|run| run.cancel.is_cancelled());
        let has_failed = self.activity.work().is_some_and(|work| work.recovery.has_failed);
        let is_allowed = self.check_limits().is_ok();
        let may_compact = self.options.auto_compaction && !is_stopping && !has_failed && is_allowed;
        let model = self.models.usable().ok().filter(|_| may_compact).cloned();
        let is_full = |model: &Arc<Model>| {
            let threshold = self.window_budget(model).threshold();
            threshold.is_some_and(|threshold| self.context().tokens() > threshold)
        };
        let plan = model.filter(is_full).and_then(|model| {
            let (kept, material) = self.plan(&model, None)?;
            Some((model, kept, material))
        });
        let Some((model, kept, material)) = plan else {
            let _ = go.send(());
            return;
        };
        let reason = CompactionReason::Threshold;
        self.out.event(&Event::CompactionStart { reason });
        let trace = self.activity.work().and_then(|work| work.compaction_span(reason));
        let compaction = self.begin_compaction(model, kept, material, reason, false, trace);
        if let Some(run) = self.activity.run_mut() {
            run.compaction = Some((compaction, go));
        }
    }

    /// Called for each message of a run. A prompt, or an answer that was neither cut off nor failed, makes another
    /// recovery possible.
    pub(crate) fn note_progress(&mut self, message: &Message) {
        use pith_protocol::StopReason::{Aborted, Stop, ToolUse};
        let Some(work) = self.activity.work_mut() else { return };
        match message {
            Message::User(_) => work.recovery = Recovery::default(),
            Message::Assistant(answer) if matches!(answer.stop_reason, Stop | ToolUse | Aborted) => {
                work.recovery.has_retried = false;
            }
            _ => {}
        }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        let messages = self.store.messages();
        Context { messages, rewritten_to: self.store.rewritten_to(), ..self.fixed_context() }
    }

    /// The context without its messages.
    pub(crate) fn fixed_context(&self) -> Context<'_> {
        Context { messages: &[], rewritten_to: 0, prompt: self.project.prompt(), tools: self.tools.active().specs() }
    }

    /// How this model's window is divided in this session.
    pub(crate) fn window_budget(&self, model: &Model) -> WindowBudget {
        WindowBudget::of(model, self.models.window(model), &self.settings)
    }

    /// What an answer calls for; `None` if it is older than the latest compaction.
    fn due(&self, answer: &AssistantMessage) -> Option<(Arc<Model>, Due)> {
        self.check_limits().ok()?;
        let model = self.models.usable().ok().filter(|_| self.options.auto_compaction)?.clone();
        let context = self.context();
        if !context.is_newer(answer) {
            return None;
        }
        let found = due(answer, &model, self.window_budget(&model), || context.tokens());
        let (tokens, window) = (answer.usage.context_tokens(), self.window_budget(&model).window);
        debug!(target: "pith::compaction", due = ?found, tokens, window, "asked");
        Some((model, found))
    }

    /// Starts an automatic compaction between runs. Returns its arguments if there is nothing to cut.
    fn compact_between_runs(
        &mut self,
        work: Box<Work>,
        model: &Arc<Model>,
        reason: CompactionReason,
        after: AfterCompaction,
    ) -> Result<(), (Box<Work>, AfterCompaction)> {
        let Some((kept, material)) = self.plan(model, None) else { return Err((work, after)) };
        self.out.event(&Event::CompactionStart { reason });
        let will_retry = matches!(after, AfterCompaction::Retry);
        let compaction =
            self.begin_compaction(model.clone(), kept, material, reason, will_retry, work.compaction_span(reason));
        self.activity.enter(work, Stage::Compacting(compaction, after));
        Ok(())
    }

    /// Starts writing the summary. The caller stores the compaction in the activity.
    fn begin_compaction(
        &mut self,
        model: Arc<Model>,
        kept: Kept,
        material: Material,
        reason: CompactionReason,
        will_retry: bool,
        trace: Option<Arc<dyn CompactionSpan>>,
    ) -> Compaction {
        info!(target: "pith::compaction", ?reason, model = %model.id, "begins");
        let question = self.compaction_question(&model, &kept, &material, reason, will_retry);
        let cancel = CancellationToken::new();
        let work = SummaryTask::Compaction(Box::new(material), question.map(Box::new));
        let chats = trace.clone().map(|trace| trace as Arc<dyn ChatParent>);
        let task = self.write_summary(model, cancel.clone(), work, chats);
        Compaction { cancel, reason, will_retry, kept, progress: Progress::Summarising, task, trace }
    }

    /// Removes the unusable answer from the context, compacts, and sends the request again; once per request.
    fn recover(&mut self, mut work: Box<Work>, model: &Arc<Model>) {
        let reason = CompactionReason::Overflow;
        if work.recovery.has_retried {
            self.out.event(&Event::CompactionStart { reason });
            self.tell_end(reason, None, Some(SECOND_OVERFLOW), false);
            self.announce_failed_compaction(reason, Some(SECOND_OVERFLOW));
            return self.go_on(work);
        }
        work.recovery.has_retried = true;
        self.omit_failed();
        let Err((work, _)) = self.compact_between_runs(work, model, reason, AfterCompaction::Retry) else { return };
        // There is nothing to summarise: the remaining messages are too large by themselves.
        self.out.event(&Event::CompactionStart { reason });
        if self.shorten_messages(model, 0) {
            self.tell_end(reason, None, None, true);
            return self.start_run(work, RunStart::with(Opening::Continue));
        }
        self.tell_failure(reason, &SummaryFailure::Failed(NOTHING.to_owned()));
        self.go_on(work);
    }
}
