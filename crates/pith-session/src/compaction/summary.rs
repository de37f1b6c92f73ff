//! The one summary being written at a time, whatever it is for.

use std::sync::Arc;

use pith_protocol::{CompactionReason, Event, Model};
use pith_store::new_session_id;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::summariser::{Summariser, SummaryNews};
use super::{BranchMaterial, Material, Summary, SummaryFailure};
use crate::extensions::CompactionQuestion;
use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// What a summary is written from.
pub(crate) enum Work {
    /// Extensions may have something to say about it first.
    Compaction(Box<Material>, Option<Box<CompactionQuestion>>),
    Branch(BranchMaterial),
}

/// What a summary in the making tells the session meanwhile.
pub(crate) struct SummarySource {
    /// Handed to each summary.
    to_session: mpsc::UnboundedSender<SummaryNews>,
    /// From the summary being written; lives as long as the session.
    news: mpsc::UnboundedReceiver<SummaryNews>,
}

const PANICKED: &str = "Internal error: the summary ended unexpectedly";

impl Default for SummarySource {
    fn default() -> Self {
        let (to_session, news) = mpsc::unbounded_channel();
        SummarySource { to_session, news }
    }
}

impl SummarySource {
    /// The next news; never, while no summary is written. Cancel safe.
    pub async fn next(&mut self) -> Option<SummaryNews> {
        self.news.recv().await
    }
}

impl Session {
    /// Has a summary written.
    pub(crate) fn write_summary(&mut self, model: Arc<Model>, cancel: CancellationToken, work: Work) -> AbortHandle {
        let summariser = Summariser {
            client: self.models.client().clone(),
            thinking: self.models.level(),
            division: self.division(&model),
            model,
            retry: self.options.retry.clone(),
            session_id: new_session_id().into(),
            news: self.summaries.to_session.clone(),
            cancel,
            usage: Default::default(),
        };
        self.jobs.spawn(Job::Summary, async move { JobEnd::Summarised(work.summarise(summariser).await) })
    }

    pub(crate) fn on_summary_news(&mut self, news: SummaryNews) {
        match news {
            SummaryNews::RetryScheduled { attempt, delay, error } => {
                self.out.event(&Event::SummarizationRetryScheduled {
                    attempt,
                    max_attempts: self.options.retry.max_retries,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    error_message: &error,
                });
            }
            SummaryNews::AttemptStart => {
                let reason: Option<CompactionReason> = self.activity.compaction().map(|compaction| compaction.reason);
                let source = if reason.is_some() { "compaction" } else { "branchSummary" };
                self.out.event(&Event::SummarizationRetryAttemptStart { source, reason });
            }
            SummaryNews::RetryFinished => self.out.event(&Event::SummarizationRetryFinished),
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

impl Work {
    async fn summarise(self, summariser: Summariser) -> Result<Summary, SummaryFailure> {
        match self {
            Work::Compaction(material, question) => {
                let given = match question {
                    Some(question) => question.ask(&summariser.cancel).await?,
                    None => None,
                };
                match given {
                    Some(summary) => Ok(summary),
                    None => material.summarise(summariser).await,
                }
            }
            Work::Branch(material) => material.summarise(summariser).await,
        }
    }
}
