//! The wait between a failed run and the next attempt.

use std::time::Duration;

use pith_agent::Opening;
use pith_protocol::commands::AbortRetry;
use pith_protocol::{Event, Message, StopReason};

use crate::activity::{Activity, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

const CANCELLED: &str = "Retry cancelled";

impl Session {
    /// Announces the attempt, takes the failed answer out of the context, and waits.
    pub(crate) fn wait_to_retry(&mut self, attempt: u32, delay: Duration, error: &str) {
        let max_attempts = self.options.retry.max_retries;
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.out.event(&Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message: error });
        self.omit_last_answer();
        let wait = self.jobs.spawn(async move {
            tokio::time::sleep(delay).await;
            JobEnd::RetryDue
        });
        self.activity = Activity::Retrying { wait };
    }

    /// The raw history keeps the failed answer; the model no longer sees it.
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
        if matches!(self.activity, Activity::Retrying { .. }) {
            self.start_run(Opening::Continue);
        }
    }

    /// Cancels the wait; the caller settles.
    pub(crate) fn cancel_retry(&mut self) {
        if let Activity::Retrying { wait } = std::mem::replace(&mut self.activity, Activity::Idle) {
            wait.abort();
            self.end_retry(CANCELLED);
        }
    }

    pub(crate) fn abort_retry(&mut self, reply: Reply<AbortRetry>) {
        let is_waiting = matches!(self.activity, Activity::Retrying { .. });
        if is_waiting {
            self.cancel_retry();
        }
        self.answer(reply, Ok(()));
        if is_waiting {
            self.settle(true);
        }
    }

    /// The first answer that is no failure ends a chain of attempts.
    pub(crate) fn note_success(&mut self, message: &Message) {
        let Some(answer) = message.as_assistant() else { return };
        match answer.stop_reason {
            StopReason::Error => {}
            StopReason::Aborted => self.end_retry(CANCELLED),
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => {
                if let Some(attempt) = self.retry.end() {
                    self.out.event(&Event::AutoRetryEnd { success: true, attempt, final_error: None });
                }
            }
        }
    }

    fn end_retry(&mut self, why: &str) {
        if let Some(attempt) = self.retry.end() {
            self.out.event(&Event::AutoRetryEnd { success: false, attempt, final_error: Some(why) });
        }
    }
}
