//! The summary being written, for a compaction or for a branch; at most one at a time.

use std::sync::Arc;

use pith_agent::trace::ChatParent;
use pith_protocol::{CompactionReason, Event, Model};
use pith_store::new_session_id;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::summariser::{Summariser, SummaryProgress};
use super::{BranchMaterial, Material, Summary, SummaryFailure};
use crate::extensions::CompactionQuestion;
use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// What a summary is written from.
pub(crate) enum SummaryTask {
    /// Extensions may refuse it, or write the summary themselves.
    Compaction(Box<Material>, Option<Box<CompactionQuestion>>),
    Branch(BranchMaterial),
}

/// The channel on which a summary reports progress to the session.
pub(crate) struct SummaryEvents {
    /// Cloned into each summary.
    to_session: mpsc::UnboundedSender<SummaryProgress>,
    /// From the summary being written; open as long as the session.
    progress: mpsc::UnboundedReceiver<SummaryProgress>,
}

const PANICKED: &str = "Internal error: the summary ended unexpectedly";

impl Default for SummaryEvents {
    fn default() -> Self {
        let (to_session, progress) = mpsc::unbounded_channel();
        SummaryEvents { to_session, progress }
    }
}

impl SummaryEvents {
    /// Waits for the next progress report; for ever while no summary is written. Cancel safe.
    pub async fn next(&mut self) -> Option<SummaryProgress> {
        self.progress.recv().await
    }
}

impl Session {
    /// Starts writing a summary.
    pub(crate) fn write_summary(
        &mut self,
        model: Arc<Model>,
        cancel: CancellationToken,
        work: SummaryTask,
        trace: Option<Arc<dyn ChatParent>>,
    ) -> AbortHandle {
        let summariser = Summariser {
            client: self.models.client().clone(),
            thinking: self.models.level(),
            budget: self.window_budget(&model),
            model,
            retry: self.options.retry.clone(),
            session_id: new_session_id().into(),
            progress: self.summaries.to_session.clone(),
            cancel,
            control: self.call_control(),
            usage: Default::default(),
            trace,
        };
        self.jobs.spawn(Job::Summary, async move { JobEnd::Summarised(work.summarise(summariser).await) })
    }

    pub(crate) fn on_summary_progress(&mut self, progress: SummaryProgress) {
        match progress {
            SummaryProgress::RetryScheduled { attempt, delay, error } => {
                self.out.event(&Event::SummarizationRetryScheduled {
                    attempt,
                    max_attempts: self.options.retry.max_retries,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    error_message: error.into(),
                });
            }
            SummaryProgress::AttemptStart => {
                let reason: Option<CompactionReason> = self.activity.compaction().map(|compaction| compaction.reason);
                let source = if reason.is_some() { "compaction" } else { "branchSummary" }.into();
                self.out.event(&Event::SummarizationRetryAttemptStart { source, reason });
            }
            SummaryProgress::RetryFinished => self.out.event(&Event::SummarizationRetryFinished),
        }
    }

    /// Called when the summary is written, or cannot be.
    pub(crate) fn on_summarised(&mut self, result: Result<Summary, SummaryFailure>) {
        match self.activity.end_navigation() {
            Some(navigation) => self.finish_navigation(navigation, result),
            None => self.on_compaction_summarised(result),
        }
    }

    pub(crate) fn on_summary_panic(&mut self) {
        self.on_summarised(Err(SummaryFailure::Failed(PANICKED.to_owned())));
    }
}

impl SummaryTask {
    async fn summarise(self, summariser: Summariser) -> Result<Summary, SummaryFailure> {
        match self {
            SummaryTask::Compaction(material, question) => {
                let given = match question {
                    Some(question) => question.ask(&summariser.cancel).await?,
                    None => None,
                };
                match given {
                    Some(summary) => Ok(summary),
                    None => material.summarise(summariser).await,
                }
            }
            SummaryTask::Branch(material) => material.summarise(summariser).await,
        }
    }
}
