//! The end of a compaction: it is stored, announced to extensions, then to the host, and the work continues.

use pith_agent::Opening;
use pith_agent::trace::CompactionFailure;
use pith_ext::EventName;
use pith_protocol::answers::CompactionResult;
use pith_protocol::{CommandError, CompactionReason, ErrorCode, Event, Usage};
use pith_store::{CompactionEntry, EntryId};
use std::borrow::Cow;
use tracing::info;

use super::context::estimate;
use super::{Author, Compaction, Kept, Progress, Summary, SummaryFailure};
use crate::activity::{AfterCompaction, Work};
use crate::extensions::AbortGrace;
use crate::jobs::{Job, JobEnd};
use crate::run::RunStart;
use crate::session::Session;

const CANCELLED: &str = "Compaction cancelled";

impl Session {
    /// Stores the summary and tells extensions, before the host is told.
    pub(crate) fn on_compaction_summarised(&mut self, result: Result<Summary, SummaryFailure>) {
        let Some(compaction) = self.activity.compaction() else { return };
        let (kept, reason, will_retry) = (compaction.kept.clone(), compaction.reason, compaction.will_retry);
        let cancel = compaction.cancel.clone();
        let mut announcement = None;
        let outcome = result.and_then(|summary| {
            let author = summary.author.clone();
            let (entry, stored) = self.store_compaction(kept, summary)?;
            announcement = self.compaction_announcement(&entry, &author, reason, will_retry);
            Ok(stored)
        });
        let task = announcement.map(|(handle, event)| {
            self.jobs.spawn(Job::Announcement, async move {
                AbortGrace::new(cancel).wait(handle.notify(EventName::SessionCompact, event)).await;
                JobEnd::Announced(None)
            })
        });
        info!(target: "pith::compaction", ?reason, is_stored = outcome.is_ok(), "summary");
        let is_told = task.is_none();
        if let Some(compaction) = self.activity.compaction_mut() {
            compaction.progress = Progress::Announcing(Box::new(outcome));
            compaction.task = task.unwrap_or_else(|| compaction.task.clone());
        }
        if is_told {
            self.on_compaction_announced();
        }
    }

    /// Called when extensions have handled `session_compact`. Tells the host and continues what waited for the
    /// compaction.
    pub(crate) fn on_compaction_announced(&mut self) {
        if let Some((compaction, reply)) = self.activity.end_requested() {
            let outcome = self.tell_compaction(compaction);
            self.flush_deferred();
            self.store.unlock();
            let answer = outcome.map_err(|failure| match failure {
                SummaryFailure::Cancelled => CommandError::new(ErrorCode::Cancelled, CANCELLED),
                SummaryFailure::Failed(why) => CommandError::new(ErrorCode::SummaryFailed, why),
            });
            self.answer(reply, answer);
            return self.after_activity();
        }
        if let Some((mut work, compaction, after)) = self.activity.end_compaction() {
            let was_cancelled = self.was_aborted(&compaction.cancel);
            let is_done = self.tell_compaction(compaction).is_ok();
            work.recovery.has_failed = !is_done;
            return self.go_on_after_compaction(work, after, is_done, was_cancelled);
        }
        let Some((compaction, go)) = self.activity.run_mut().and_then(|run| run.compaction.take()) else { return };
        let is_done = self.tell_compaction(compaction).is_ok();
        if let Some(work) = self.activity.work_mut() {
            work.recovery.has_failed = !is_done;
        }
        let _ = go.send(());
    }

    fn go_on_after_compaction(&mut self, work: Box<Work>, after: AfterCompaction, is_done: bool, was_cancelled: bool) {
        match after {
            AfterCompaction::Start(start) => {
                // The prompt enters the history in any case; if the compaction was aborted, the run is stopped right
                // after it.
                self.start_run(work, *start);
                if was_cancelled {
                    self.stop_activity();
                }
            }
            AfterCompaction::GoOn | AfterCompaction::Retry if was_cancelled => self.settle(work, true),
            // If the time is up, the run ends at once with an answer that says so.
            AfterCompaction::Retry if is_done || self.is_time_up() => {
                self.start_run(work, RunStart::with(Opening::Continue))
            }
            AfterCompaction::GoOn | AfterCompaction::Retry => self.go_on(work),
        }
    }

    /// Tells the host how a compaction ended.
    fn tell_compaction(&mut self, compaction: Compaction) -> Result<CompactionResult, SummaryFailure> {
        let Compaction { reason, will_retry, progress, trace, .. } = compaction;
        let outcome = match progress {
            Progress::Announcing(outcome) => *outcome,
            Progress::Summarising => Err(SummaryFailure::Cancelled),
        };
        if let Some(trace) = trace {
            trace.end(match &outcome {
                Ok(stored) => Ok((stored.tokens_before, stored.estimated_tokens_after)),
                Err(SummaryFailure::Cancelled) => Err(CompactionFailure::Cancelled),
                Err(SummaryFailure::Failed(_)) => Err(CompactionFailure::Failed),
            });
        }
        match &outcome {
            Ok(stored) => self.tell_end(reason, Some(stored), None, will_retry),
            Err(failure) => self.tell_failure(reason, failure),
        }
        if outcome.is_ok()
            && reason == CompactionReason::Overflow
            && let Some(model) = self.models.current().cloned()
        {
            self.shorten_messages(&model, 1);
        }
        outcome
    }

    /// Gives up a compaction whose run has died.
    pub(crate) fn abandon_compaction(&mut self, compaction: &Compaction) {
        compaction.cancel.cancel();
        compaction.task.abort();
        self.tell_failure(compaction.reason, &SummaryFailure::Cancelled);
    }

    fn store_compaction(
        &mut self,
        kept: Kept,
        summary: Summary,
    ) -> Result<(EntryId, CompactionResult), SummaryFailure> {
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
        self.note_summary(&summary.usage);
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
        let stored = CompactionResult {
            summary: summary.text,
            first_kept_entry_id: kept.first_entry.to_string(),
            tokens_before: kept.tokens_before,
            estimated_tokens_after: estimate(self.store.messages()),
            usage,
            details: summary.details,
        };
        Ok((entry, stored))
    }

    pub(super) fn tell_failure(&mut self, reason: CompactionReason, failure: &SummaryFailure) {
        let prefix = match reason {
            CompactionReason::Manual => "Compaction failed: ",
            CompactionReason::Threshold => "Auto-compaction failed: ",
            CompactionReason::Overflow => "Context overflow recovery failed: ",
        };
        match failure {
            SummaryFailure::Cancelled => {
                let (result, error_message) = (None, None);
                self.out.event(&Event::CompactionEnd {
                    reason,
                    result,
                    aborted: true,
                    will_retry: false,
                    error_message,
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

    pub(super) fn tell_end(
        &mut self,
        reason: CompactionReason,
        result: Option<&CompactionResult>,
        error_message: Option<&str>,
        will_retry: bool,
    ) {
        self.out.event(&Event::CompactionEnd {
            reason,
            result: result.map(Cow::Borrowed),
            aborted: false,
            will_retry,
            error_message: error_message.map(Cow::Borrowed),
        });
    }
}
