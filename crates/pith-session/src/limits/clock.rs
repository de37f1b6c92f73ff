//! Clocks that can stand still, and the meter of the answer that is being written.

use std::time::Duration;

use pith_protocol::{Amount, AssistantEvent};
use tokio::time::Instant;

use super::counters::tokens_of;

/// A clock that can stand still.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    passed: Duration,
    /// Since when it runs.
    since: Option<Instant>,
}

impl Stopwatch {
    pub fn elapsed(&self) -> Duration {
        self.passed + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub fn set_running(&mut self, is_running: bool) {
        if is_running != self.since.is_some() {
            self.passed = self.elapsed();
            self.since = is_running.then(Instant::now);
        }
    }

    pub fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// Starts again from zero and returns what had passed.
    pub fn restart(&mut self) -> Duration {
        let passed = self.elapsed();
        *self = Stopwatch { passed: Duration::ZERO, since: self.since.map(|_| Instant::now()) };
        passed
    }
}

/// A duration in seconds, to the millisecond.
pub(super) fn shown_seconds(time: Duration) -> Amount {
    Amount(time.as_millis() as f64 / 1000.0)
}

/// Seconds as a duration; `None` if they are more than a clock can hold.
pub(super) fn seconds(amount: Amount) -> Option<Duration> {
    Duration::try_from_secs_f64(amount.0).ok()
}

/// Counts the tokens of an answer while it is written: those the provider reports, or an estimate until it does.
#[derive(Debug, Default)]
pub(super) struct OutputMeter {
    reported: u64,
    bytes: usize,
}

impl OutputMeter {
    pub fn note(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::Meta { usage, .. } => self.reported = usage.output,
            AssistantEvent::TextDelta { delta, .. }
            | AssistantEvent::ThinkingDelta { delta, .. }
            | AssistantEvent::ToolCallDelta { delta, .. } => self.bytes += delta.len(),
            _ => {}
        }
    }

    pub fn tokens(&self) -> u64 {
        self.reported.max(tokens_of(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stopwatch_counts_only_while_it_runs() {
        let second = Duration::from_secs(1);
        let mut watch = Stopwatch::default();
        tokio::time::advance(second).await;
        watch.set_running(true);
        tokio::time::advance(second).await;
        watch.set_running(true);
        tokio::time::advance(second).await;
        watch.set_running(false);
        tokio::time::advance(second).await;
        assert_eq!(watch.elapsed(), 2 * second);
        watch.set_running(true);
        assert_eq!(watch.restart(), 2 * second);
        tokio::time::advance(second).await;
        assert_eq!(watch.elapsed(), second);
    }
}
