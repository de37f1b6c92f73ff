//! The one summary being written at a time, whatever it is for.

use std::sync::Arc;

use pith_protocol::{Event, Model};
use pith_store::new_session_id;
use tokio::task::Id as TaskId;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, JobEnd};
use crate::compact::{BranchMaterial, Division, FromSummary, Material, Source, Summariser, SummaryFailure};
use crate::compaction::Compaction;
use crate::extensions::CompactionQuestion;
use crate::navigation::Navigation;
use crate::session::Session;

/// A summary being written.
pub(crate) struct Summarising {
    pub task: TaskId,
    pub cancel: CancellationToken,
    source: Source,
    purpose: Purpose,
}

/// What a summary is for.
pub(crate) enum Purpose {
    Compaction(Compaction),
    Branch(Navigation),
}

/// What a summary is written from.
pub(crate) enum Work {
    /// Extensions may have something to say about it first.
    Compaction(Box<Material>, Option<Box<CompactionQuestion>>),
    Branch(BranchMaterial),
}

const PANICKED: &str = "Internal error: the summary ended unexpectedly";

impl Session {
    /// Has a summary written. Between runs this is an activity of its own.
    pub(crate) fn write_summary(&mut self, model: Arc<Model>, source: Source, purpose: Purpose, work: Work) {
        let cancel = CancellationToken::new();
        let news = self.summary_news.clone();
        let summariser = Summariser {
            client: self.client.clone(),
            thinking: self.models.level(),
            reserve: Division::of(&model, &self.settings).reserve,
            model,
            retry: self.options.retry.clone(),
            session_id: new_session_id().into(),
            news: news.clone(),
            cancel: cancel.clone(),
            usage: Default::default(),
        };
        let task = self.jobs.spawn(async move {
            let result = match work {
                Work::Compaction(material, question) => {
                    let given = match question {
                        Some(question) => question.ask(&summariser.cancel).await,
                        None => Ok(None),
                    };
                    match given {
                        Ok(Some(summary)) => Ok(summary),
                        Ok(None) => material.summarise(summariser).await,
                        Err(failure) => Err(failure),
                    }
                }
                Work::Branch(material) => material.summarise(summariser).await,
            };
            // Nobody listens only when the process is ending.
            let _ = news.send(FromSummary::Done(Box::new(result)));
            JobEnd::Done
        });
        self.summary = Some(Summarising { task: task.id(), cancel, source, purpose });
        if !self.activity.is_busy() {
            self.activity = Activity::Summarising;
        }
    }

    pub(crate) fn on_summary(&mut self, message: FromSummary) {
        match message {
            FromSummary::RetryScheduled { attempt, delay, error } => {
                self.out.event(&Event::SummarizationRetryScheduled {
                    attempt,
                    max_attempts: self.options.retry.max_retries,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    error_message: &error,
                })
            }
            FromSummary::AttemptStart => {
                let (source, reason) = match self.summary.as_ref().map(|summary| summary.source) {
                    Some(Source::Compaction(reason)) => ("compaction", Some(reason)),
                    Some(Source::BranchSummary) | None => ("branchSummary", None),
                };
                self.out.event(&Event::SummarizationRetryAttemptStart { source, reason });
            }
            FromSummary::RetryFinished => self.out.event(&Event::SummarizationRetryFinished),
            FromSummary::Done(result) => {
                let Some(summary) = self.summary.take() else { return };
                let was_cancelled = summary.cancel.is_cancelled();
                if matches!(self.activity, Activity::Summarising) {
                    self.activity = Activity::Idle;
                }
                match summary.purpose {
                    Purpose::Compaction(compaction) => self.finish_compaction(compaction, *result, was_cancelled),
                    Purpose::Branch(navigation) => self.finish_navigation(navigation, *result),
                }
            }
        }
    }

    /// Whether the task that has died wrote the summary.
    pub(crate) fn was_summary(&self, task: TaskId) -> bool {
        self.summary.as_ref().is_some_and(|summary| summary.task == task)
    }

    pub(crate) fn on_summary_panic(&mut self) {
        self.on_summary(FromSummary::Done(Box::new(Err(SummaryFailure::Failed(PANICKED.to_owned())))));
    }

    /// Whether the model works for a run: a summary on request is not one.
    pub(crate) fn is_streaming(&self) -> bool {
        match &self.activity {
            Activity::Idle => false,
            Activity::Running(_) | Activity::Retrying { .. } => true,
            Activity::Summarising => self.summary.as_ref().is_some_and(|summary| match &summary.purpose {
                Purpose::Compaction(compaction) => compaction.is_automatic(),
                Purpose::Branch(_) => false,
            }),
        }
    }
}
