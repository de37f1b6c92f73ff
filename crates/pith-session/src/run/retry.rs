//! Decides whether and when a failed answer is requested again, and waits until then.

use std::time::Duration;

use pith_agent::Opening;
use pith_ai::is_retryable;
use pith_protocol::commands::AbortRetry;
use pith_protocol::{AssistantMessage, Event, Message, StopReason};
use tracing::warn;

use crate::activity::{Stage, Work};
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::run::RunStart;
use crate::session::Session;

const CANCELLED: &str = "Retry cancelled";

/// The `retry.*` settings.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    pub is_enabled: bool,
    pub max_retries: u32,
    pub base_delay: Duration,
    /// The longest delay of pith's own backoff.
    pub max_delay: Duration,
    /// The longest delay a server may ask for; `None` accepts any.
    pub max_server_delay: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            is_enabled: true,
            max_retries: 3,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
            max_server_delay: Some(Duration::from_secs(60)),
        }
    }
}

/// Counts the attempts of one piece of work.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    attempt: u32,
}

/// What to do at the end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// Nothing failed, or the failure cannot be retried and no retry was made.
    Settle,
    Wait {
        attempt: u32,
        delay: Duration,
    },
    /// Retries were made without success.
    GiveUp {
        attempt: u32,
    },
}

impl Retry {
    /// Decides by the last answer of a run.
    pub fn after(&mut self, answer: Option<&AssistantMessage>, policy: &RetryPolicy) -> RetryDecision {
        let Some(failed) = answer.filter(|answer| answer.stop_reason == StopReason::Error) else {
            return RetryDecision::Settle;
        };
        let wait = server_delay(failed);
        let is_too_long = policy.max_server_delay.is_some_and(|max| wait > max);
        if policy.is_enabled && self.attempt < policy.max_retries && is_retryable(failed) && !is_too_long {
            let own = policy.base_delay.saturating_mul(2u32.saturating_pow(self.attempt)).min(policy.max_delay);
            self.attempt += 1;
            return RetryDecision::Wait { attempt: self.attempt, delay: own.max(wait) };
        }
        match std::mem::take(&mut self.attempt) {
            0 => RetryDecision::Settle,
            attempt => RetryDecision::GiveUp { attempt },
        }
    }

    /// Ends the retries; returns their number if there were any.
    pub fn end(&mut self) -> Option<u32> {
        match std::mem::take(&mut self.attempt) {
            0 => None,
            attempt => Some(attempt),
        }
    }
}

fn server_delay(failed: &AssistantMessage) -> Duration {
    Duration::from_millis(failed.error.as_ref().and_then(|error| error.retry_after_ms).unwrap_or(0))
}

impl Session {
    /// Announces the attempt, removes the failed answer from the context, and waits.
    pub(super) fn wait_to_retry(&mut self, work: Box<Work>, attempt: u32, delay: Duration, error: &str) {
        let max_attempts = self.options.retry.max_retries;
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        warn!(target: "pith::run", attempt, max_attempts, ?delay, "retry");
        self.out.event(&Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message: error.into() });
        self.omit_last_answer();
        let wait = self.jobs.spawn(Job::RetryWait, async move {
            tokio::time::sleep(delay).await;
            JobEnd::RetryDue
        });
        self.activity.enter(work, Stage::Retrying(wait));
    }

    /// Hides the failed answer from the model; the session file keeps it.
    fn omit_last_answer(&mut self) {
        let last = self.store.messages().len().checked_sub(1);
        let target = last.and_then(|last| self.store.message_entries().nth(last)).map(str::to_owned);
        if let Some(target) = target {
            // The entry was appended a moment ago, so it is on the branch.
            let _ = self.store.append_context_edit(&target, None);
            self.report_store();
        }
    }

    pub(crate) fn on_retry_due(&mut self) {
        if let Some((work, _)) = self.activity.end_retry_wait() {
            self.start_run(work, RunStart::with(Opening::Continue));
        }
    }

    /// Cancels the wait and ends the work as aborted.
    pub(crate) fn stop_retrying(&mut self) {
        if let Some((mut work, wait)) = self.activity.end_retry_wait() {
            wait.abort();
            self.cancel_attempts(&mut work);
            self.settle(work, true);
        }
    }

    pub(crate) fn abort_retry(&mut self, reply: Reply<AbortRetry>) {
        let Some((mut work, wait)) = self.activity.end_retry_wait() else { return self.answer(reply, Ok(())) };
        wait.abort();
        self.cancel_attempts(&mut work);
        self.answer(reply, Ok(()));
        self.settle(work, true);
    }

    /// Reports the end of the retries when an answer succeeds or is aborted.
    pub(super) fn note_retry_success(&mut self, message: &Message) {
        let (Some(answer), Some(work)) = (message.as_assistant(), self.activity.work_mut()) else { return };
        let (success, final_error) = match answer.stop_reason {
            StopReason::Error => return,
            StopReason::Aborted => (false, Some(CANCELLED.into())),
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => (true, None),
        };
        if let Some(attempt) = work.retry.end() {
            self.out.event(&Event::AutoRetryEnd { success, attempt, final_error });
        }
    }

    /// Reports that the retries, if there were any, were aborted.
    pub(super) fn cancel_attempts(&mut self, work: &mut Work) {
        if let Some(attempt) = work.retry.end() {
            self.out.event(&Event::AutoRetryEnd { success: false, attempt, final_error: Some(CANCELLED.into()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{ErrorKind, Failure};

    fn failed(text: &str, error: Option<(ErrorKind, Option<u64>)>) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            error: error.map(|(kind, retry_after_ms)| Failure {
                kind,
                status: None,
                retry_after_ms,
                request_id: None,
                should_retry: None,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn retry_delays_double_and_end() {
        let policy = RetryPolicy { base_delay: Duration::from_millis(300), max_retries: 3, ..Default::default() };
        let (mut retry, answer) = (Retry::default(), failed("503", None));
        let mut next = || retry.after(Some(&answer), &policy);
        let wait = |attempt, ms| RetryDecision::Wait { attempt, delay: Duration::from_millis(ms) };
        assert_eq!([next(), next(), next()], [wait(1, 300), wait(2, 600), wait(3, 1200)]);
        assert_eq!([next(), next()], [RetryDecision::GiveUp { attempt: 3 }, wait(1, 300)]);
    }

    #[test]
    fn a_server_may_ask_for_a_longer_delay_up_to_a_limit() {
        let policy = RetryPolicy { base_delay: Duration::from_millis(300), ..Default::default() };
        let after = |ms| Retry::default().after(Some(&failed("429", Some((ErrorKind::RateLimit, Some(ms))))), &policy);
        assert_eq!(after(2000), RetryDecision::Wait { attempt: 1, delay: Duration::from_secs(2) });
        assert_eq!(after(120_000), RetryDecision::Settle);
    }

    #[test]
    fn answers_that_did_not_fail_are_not_retried() {
        let aborted = AssistantMessage { stop_reason: StopReason::Aborted, ..Default::default() };
        assert_eq!(Retry::default().after(Some(&aborted), &RetryPolicy::default()), RetryDecision::Settle);
        assert_eq!(Retry::default().after(None, &RetryPolicy::default()), RetryDecision::Settle);
    }
}
