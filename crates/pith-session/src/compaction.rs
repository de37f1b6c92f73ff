//! Compaction of the live session: asked for, or due; and what follows it.

use std::sync::Arc;

use pith_agent::Opening;
use pith_ext::EventName;
use pith_protocol::commands::Compact;
use pith_protocol::{AssistantMessage, CompactionReason, Event, Message, Model, Usage};
use pith_store::{CompactionEntry, EntryId, Kind};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::activity::{Activity, Waiter};
use crate::compact::{Author, Division, Material, Source, Summary, SummaryFailure};
use crate::context::{Context, estimate};
use crate::due::{Due, due};
use crate::plan::Kept;
use crate::reply::Reply;
use crate::session::Session;
use crate::summary::{Purpose, Work};

const ALREADY: &str = "Already compacted";
const NOTHING: &str = "Nothing to compact (session too small)";
const CANCELLED: &str = "Compaction cancelled";
const IN_PROGRESS: &str = "Compaction already in progress";
const SECOND_OVERFLOW: &str = "Context overflow recovery failed after one compact-and-retry attempt. \
                               Try reducing context or switching to a larger-context model.";

/// A compaction whose summary is being written.
pub(crate) struct Compaction {
    reason: CompactionReason,
    kept: Kept,
    then: Then,
}

/// What follows a compaction.
pub(crate) enum Then {
    /// The answer to `compact`, and nothing else.
    Answer(Reply<Compact>),
    /// The end of the activity, unless something was queued meanwhile.
    Settle,
    /// The same request again.
    Retry,
    /// The run that was about to start.
    Run(Opening),
    /// The next turn of the run that waits for this.
    Turn(oneshot::Sender<()>),
}

/// What was already tried for the present request.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The answer to a full window was to compact and ask again.
    has_retried: bool,
    /// A compaction that was due has failed; the next turn would fail alike.
    has_failed: bool,
}

impl Compaction {
    /// Nobody asked for it.
    pub fn is_automatic(&self) -> bool {
        self.reason != CompactionReason::Manual
    }
}

impl Then {
    fn will_retry(&self) -> bool {
        matches!(self, Then::Retry)
    }
}

impl Session {
    pub(crate) fn compact(&mut self, call: Compact, reply: Reply<Compact>) {
        let is_waiting = self.waiters.iter().any(|waiter| matches!(waiter, Waiter::Compact(..)));
        if self.summary.is_some() || is_waiting {
            return self.answer(reply, Err(IN_PROGRESS.to_owned()));
        }
        self.when_settled(Waiter::Compact(reply, call.custom_instructions));
    }

    /// Compacts on request; nothing runs.
    pub(crate) fn compact_now(&mut self, focus: Option<String>, reply: Reply<Compact>) {
        let reason = CompactionReason::Manual;
        self.out.event(&Event::CompactionStart { reason });
        let plan = self.models.usable().cloned().and_then(|model| {
            let is_compacted =
                self.store.leaf().and_then(|leaf| self.store.tree().kind(leaf)) == Some(Kind::Compaction);
            if is_compacted {
                return Err(ALREADY.to_owned());
            }
            let (kept, material) = self.plan(&model, focus).ok_or(NOTHING)?;
            Ok((model, kept, material))
        });
        match plan {
            Ok((model, kept, material)) => {
                self.write_compaction(model, material, Compaction { reason, kept, then: Then::Answer(reply) });
            }
            Err(why) => {
                self.tell_failure(reason, &SummaryFailure::Failed(why.clone()));
                self.answer(reply, Err(why));
            }
        }
    }

    /// Looks at the last answer of a run; `true` if the activity goes on with a compaction.
    pub(crate) fn compact_after_run(&mut self, answer: Option<&AssistantMessage>) -> bool {
        let Some((model, found)) = answer.and_then(|answer| self.due(answer)) else { return false };
        match found {
            Due::Nothing => false,
            Due::Threshold => self.compact_automatically(&model, CompactionReason::Threshold, Then::Settle).is_ok(),
            Due::Overflow => self.compact_automatically(&model, CompactionReason::Overflow, Then::Settle).is_ok(),
            Due::FailedOverflow if self.recovery.has_retried => {
                let reason = CompactionReason::Overflow;
                self.out.event(&Event::CompactionStart { reason });
                self.tell_end(reason, None, Some(SECOND_OVERFLOW), false);
                self.announce_failed_compaction(reason, Some(SECOND_OVERFLOW));
                false
            }
            Due::FailedOverflow => self.recover(&model),
        }
    }

    /// Looks at the last answer of the conversation; gives the opening back if it can be used at once.
    pub(crate) fn compact_before_prompt(&mut self, opening: Opening) -> Option<Opening> {
        let last = self.store.messages().iter().rev().find_map(|message| message.as_assistant()).cloned();
        let Some((model, found)) = last.and_then(|answer| self.due(&answer)) else { return Some(opening) };
        let reason = match found {
            Due::Nothing => return Some(opening),
            Due::Threshold => CompactionReason::Threshold,
            Due::Overflow | Due::FailedOverflow => CompactionReason::Overflow,
        };
        match self.compact_automatically(&model, reason, Then::Run(opening)) {
            Err(Then::Run(opening)) => Some(opening),
            _ => None,
        }
    }

    /// Lets the next turn of the run go on, after a compaction if one is due.
    pub(crate) fn before_turn(&mut self, go: oneshot::Sender<()>) {
        let is_stopping = matches!(&self.activity, Activity::Running(run) if run.cancel.is_cancelled());
        let model = self.models.usable().ok().filter(|_| self.options.auto_compaction && !is_stopping).cloned();
        let is_full = |model: &Arc<Model>| {
            let threshold = Division::of(model, &self.settings).threshold();
            threshold.is_some_and(|threshold| self.context().tokens() > threshold)
        };
        let then = Then::Turn(go);
        let refused = match model.filter(|model| !self.recovery.has_failed && is_full(model)) {
            Some(model) => self.compact_automatically(&model, CompactionReason::Threshold, then),
            None => Err(then),
        };
        if let Err(Then::Turn(go)) = refused {
            let _ = go.send(());
        }
    }

    /// A prompt, or an answer that is neither cut off nor failed, makes recovery possible again.
    pub(crate) fn note_progress(&mut self, message: &Message) {
        use pith_protocol::StopReason::{Aborted, Stop, ToolUse};
        match message {
            Message::User(_) => self.recovery = Recovery::default(),
            Message::Assistant(answer) if matches!(answer.stop_reason, Stop | ToolUse | Aborted) => {
                self.recovery.has_retried = false
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
        Context { messages: &[], rewritten_to: 0, prompt: self.tools.prompt(), tools: self.tools.active().specs() }
    }

    /// What an answer asks for, unless it is older than the latest compaction.
    fn due(&self, answer: &AssistantMessage) -> Option<(Arc<Model>, Due)> {
        let model = self.models.usable().ok().filter(|_| self.options.auto_compaction)?.clone();
        let context = self.context();
        if !context.is_newer(answer) {
            return None;
        }
        let found = due(answer, &model, Division::of(&model, &self.settings), || context.tokens());
        Some((model, found))
    }

    /// Starts a compaction nobody asked for. Gives `then` back if there is nothing to cut.
    fn compact_automatically(&mut self, model: &Arc<Model>, reason: CompactionReason, then: Then) -> Result<(), Then> {
        let Some((kept, material)) = self.plan(model, None) else { return Err(then) };
        self.out.event(&Event::CompactionStart { reason });
        self.write_compaction(model.clone(), material, Compaction { reason, kept, then });
        Ok(())
    }

    fn write_compaction(&mut self, model: Arc<Model>, material: Material, compaction: Compaction) {
        let Compaction { reason, kept, then } = &compaction;
        let question = self.compaction_question(&model, kept, &material, *reason, then.will_retry());
        let (source, purpose) = (Source::Compaction(*reason), Purpose::Compaction(compaction));
        self.write_summary(model, source, purpose, Work::Compaction(Box::new(material), question.map(Box::new)));
    }

    /// Takes the useless answer out of the context, makes room, and asks again.
    fn recover(&mut self, model: &Arc<Model>) -> bool {
        self.recovery.has_retried = true;
        self.omit_failed();
        if self.compact_automatically(model, CompactionReason::Overflow, Then::Retry).is_ok() {
            return true;
        }
        // Nothing to summarise: what is left is too large by itself.
        let reason = CompactionReason::Overflow;
        self.out.event(&Event::CompactionStart { reason });
        if self.shorten_messages(model, 0) {
            self.tell_end(reason, None, None, true);
            self.start_run(Opening::Continue);
            return true;
        }
        self.tell_failure(reason, &SummaryFailure::Failed(NOTHING.to_owned()));
        false
    }

    /// Stores the summary, tells the host, and goes on.
    pub(crate) fn finish_compaction(
        &mut self,
        compaction: Compaction,
        result: Result<Summary, SummaryFailure>,
        was_cancelled: bool,
    ) {
        let Compaction { reason, kept, then } = compaction;
        let will_retry = then.will_retry();
        let mut news = None;
        let outcome = result.and_then(|summary| {
            let author = summary.author.clone();
            let (entry, stored) = self.store_compaction(kept, summary)?;
            news = self.compaction_news(&entry, &author, reason, will_retry);
            Ok(stored)
        });
        let end = move |session: &mut Session| session.end_compaction(reason, then, outcome, was_cancelled);
        match news {
            // Extensions hear of it before the host does.
            Some((handle, event)) => self.job(async move {
                handle.notify(EventName::SessionCompact, event).await;
                end
            }),
            None => end(self),
        }
    }

    fn end_compaction(
        &mut self,
        reason: CompactionReason,
        then: Then,
        outcome: Result<Value, SummaryFailure>,
        was_cancelled: bool,
    ) {
        let will_retry = then.will_retry();
        match &outcome {
            Ok(stored) => self.tell_end(reason, Some(stored), None, will_retry),
            Err(failure) => self.tell_failure(reason, failure),
        }
        self.recovery.has_failed = outcome.is_err();
        if outcome.is_ok()
            && reason == CompactionReason::Overflow
            && let Some(model) = self.models.current().cloned()
        {
            self.shorten_messages(&model, 1);
        }
        match then {
            Then::Answer(reply) => {
                self.activity = Activity::Idle;
                self.flush_deferred();
                self.answer(
                    reply,
                    outcome.map_err(|failure| match failure {
                        SummaryFailure::Cancelled => CANCELLED.to_owned(),
                        SummaryFailure::Failed(why) => why,
                    }),
                );
                self.serve_waiters();
            }
            Then::Retry if outcome.is_ok() && !was_cancelled => self.start_run(Opening::Continue),
            Then::Settle | Then::Retry => self.go_on(was_cancelled),
            Then::Run(opening) => {
                self.start_run(opening);
                if was_cancelled {
                    self.cancel_run();
                }
            }
            Then::Turn(go) => {
                let _ = go.send(());
            }
        }
    }

    fn store_compaction(&mut self, kept: Kept, summary: Summary) -> Result<(EntryId, Value), SummaryFailure> {
        let from_hook = summary.author.is_extension();
        let kept = match summary.author {
            Author::Model => kept,
            Author::Extension { first_kept, tokens_before } => Kept {
                first_entry: first_kept.unwrap_or(kept.first_entry),
                tokens_before: tokens_before.unwrap_or(kept.tokens_before),
            },
        };
        if from_hook && !self.store.tree().branch(self.store.leaf()).contains(&kept.first_entry) {
            let why = format!("an extension keeps entry {}, which is not on this branch", kept.first_entry);
            return Err(SummaryFailure::Failed(why));
        }
        let usage = (summary.usage != Usage::default()).then(|| summary.usage.clone());
        let entry = self.store.append_compaction(&CompactionEntry {
            summary: summary.text.clone(),
            first_kept_entry_id: Some(kept.first_entry.clone()),
            tokens_before: kept.tokens_before,
            details: summary.details.clone(),
            usage: usage.clone(),
            from_hook,
        });
        self.report_store();
        let mut stored = json!({
            "summary": summary.text,
            "firstKeptEntryId": &*kept.first_entry,
            "tokensBefore": kept.tokens_before,
            "estimatedTokensAfter": estimate(self.store.messages()),
        });
        if let Some(usage) = usage {
            stored["usage"] = json!(usage);
        }
        if let Some(details) = summary.details {
            stored["details"] = details;
        }
        Ok((entry, stored))
    }

    fn tell_failure(&mut self, reason: CompactionReason, failure: &SummaryFailure) {
        let prefix = match reason {
            CompactionReason::Manual => "Compaction failed: ",
            CompactionReason::Threshold => "Auto-compaction failed: ",
            CompactionReason::Overflow => "Context overflow recovery failed: ",
        };
        match failure {
            SummaryFailure::Cancelled => {
                self.out.event(&Event::CompactionEnd {
                    reason,
                    result: None,
                    aborted: true,
                    will_retry: false,
                    error_message: None,
                });
                self.announce_failed_compaction(reason, None);
            }
            SummaryFailure::Failed(why) => {
                let why = format!("{prefix}{why}");
                self.tell_end(reason, None, Some(&why), false);
                self.announce_failed_compaction(reason, Some(&why));
            }
        }
    }

    fn tell_end(
        &mut self,
        reason: CompactionReason,
        result: Option<&Value>,
        error_message: Option<&str>,
        will_retry: bool,
    ) {
        self.out.event(&Event::CompactionEnd { reason, result, aborted: false, will_retry, error_message });
    }
}
