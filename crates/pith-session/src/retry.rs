//! Whether a failed answer is asked for again, and when.

use std::time::Duration;

use pith_protocol::{AssistantMessage, ErrorKind, StopReason};

/// The `retry.*` settings.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    pub is_enabled: bool,
    pub max_retries: u32,
    pub base_delay: Duration,
    /// Longest wait of our own making.
    pub max_delay: Duration,
    /// Longest wait a server may ask for; `None` honours any.
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

/// Counts the attempts of one activity.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    attempt: u32,
}

/// What to do about the end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing failed, or nothing can be done and nothing was tried.
    Settle,
    Wait { attempt: u32, delay: Duration },
    /// Attempts were made and have not helped.
    GiveUp { attempt: u32 },
}

impl Retry {
    /// Decides on the last answer of a run.
    pub fn after(&mut self, answer: Option<&AssistantMessage>, policy: &RetryPolicy) -> Next {
        let Some(failed) = answer.filter(|answer| answer.stop_reason == StopReason::Error) else { return Next::Settle };
        let wait = server_delay(failed);
        let is_too_long = policy.max_server_delay.is_some_and(|max| wait > max);
        if policy.is_enabled && self.attempt < policy.max_retries && is_retryable(failed) && !is_too_long {
            let own = policy.base_delay.saturating_mul(2u32.saturating_pow(self.attempt)).min(policy.max_delay);
            self.attempt += 1;
            return Next::Wait { attempt: self.attempt, delay: own.max(wait) };
        }
        match std::mem::take(&mut self.attempt) {
            0 => Next::Settle,
            attempt => Next::GiveUp { attempt },
        }
    }

    /// Ends the chain; returns its attempts if there is one.
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

/// What the provider said in structure decides; the text only where there is none.
pub(crate) fn is_retryable(failed: &AssistantMessage) -> bool {
    match failed.error.as_ref().map(|error| error.kind) {
        Some(ErrorKind::RateLimit | ErrorKind::Overloaded | ErrorKind::Network | ErrorKind::Timeout | ErrorKind::Protocol) => true,
        Some(ErrorKind::Auth | ErrorKind::Overflow | ErrorKind::Quota | ErrorKind::InvalidRequest) => false,
        None => reads_retryable(failed.error_message.as_deref().unwrap_or_default()),
    }
}

/// Phrases of failures that a second attempt will not mend.
const FINAL: &[&str] = &[
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
];

/// Phrases of failures that pass. A blank stands for any one character, or none.
const PASSING: &[&str] = &[
    "overloaded", "currently experiencing high demand", "rate limit", "too many requests", "429", "500", "502", "503", "504",
    "520", "524", "service unavailable", "server error", "internal error", "provider returned error",
    "exceeded request buffer limit while retrying upstream", "network error", "connection error", "connection refused",
    "connection lost", "other side closed", "fetch failed", "getaddrinfo", "enotfound", "eai_again", "upstream connect",
    "reset before headers", "socket hang up", "socket connection was closed", "timed out", "time out", "timeout", "terminated",
    "websocket closed", "websocket error", "ended without", "stream ended before message_stop",
    "stream ended before a terminal response event", "http2 request did not get a response", "retry delay",
    "you can retry your request", "try your request again", "please retry your request", "resourceexhausted",
];

fn reads_retryable(text: &str) -> bool {
    let text = text.to_lowercase();
    !FINAL.iter().any(|phrase| text.contains(phrase)) && PASSING.iter().any(|phrase| contains_loosely(&text, phrase))
}

fn contains_loosely(text: &str, phrase: &str) -> bool {
    let mut words = phrase.split(' ');
    let first = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    text.match_indices(first).any(|(at, _)| follows(&text[at + first.len()..], &rest))
}

fn follows(text: &str, words: &[&str]) -> bool {
    let [word, rest @ ..] = words else { return true };
    let skip_one = text.chars().next().map_or(0, char::len_utf8);
    [&text[skip_one..], text].into_iter().any(|text| text.strip_prefix(word).is_some_and(|after| follows(after, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::Failure;

    fn failed(text: &str, error: Option<(ErrorKind, Option<u64>)>) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            error: error.map(|(kind, retry_after_ms)| Failure { kind, status: None, retry_after_ms, request_id: None }),
            ..Default::default()
        }
    }

    #[test]
    fn structure_beats_text() {
        assert!(!is_retryable(&failed("400: value 500 is too large", Some((ErrorKind::InvalidRequest, None)))));
        assert!(is_retryable(&failed("odd words", Some((ErrorKind::Overloaded, None)))));
        for text in ["529 Overloaded", "Rate-limit hit", "ratelimit", "socket hang up", "Request timed out", "stream ended without finish_reason"] {
            assert!(is_retryable(&failed(text, None)), "{text}");
        }
        for text in ["401 nope", "429 insufficient_quota", "rate   limit", "no"] {
            assert!(!is_retryable(&failed(text, None)), "{text}");
        }
    }

    #[test]
    fn delays_double_and_end() {
        let policy = RetryPolicy { base_delay: Duration::from_millis(300), max_retries: 3, ..Default::default() };
        let (mut retry, answer) = (Retry::default(), failed("503", None));
        let mut next = || retry.after(Some(&answer), &policy);
        let wait = |attempt, ms| Next::Wait { attempt, delay: Duration::from_millis(ms) };
        assert_eq!([next(), next(), next()], [wait(1, 300), wait(2, 600), wait(3, 1200)]);
        assert_eq!([next(), next()], [Next::GiveUp { attempt: 3 }, wait(1, 300)]);
    }

    #[test]
    fn the_server_may_ask_for_more_time_but_not_for_ever() {
        let policy = RetryPolicy { base_delay: Duration::from_millis(300), ..Default::default() };
        let after = |ms| Retry::default().after(Some(&failed("429", Some((ErrorKind::RateLimit, Some(ms))))), &policy);
        assert_eq!(after(2000), Next::Wait { attempt: 1, delay: Duration::from_secs(2) });
        assert_eq!(after(120_000), Next::Settle);
    }

    #[test]
    fn answers_that_did_not_fail_settle() {
        let aborted = AssistantMessage { stop_reason: StopReason::Aborted, ..Default::default() };
        assert_eq!(Retry::default().after(Some(&aborted), &RetryPolicy::default()), Next::Settle);
        assert_eq!(Retry::default().after(None, &RetryPolicy::default()), Next::Settle);
    }
}
