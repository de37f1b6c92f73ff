//! What went wrong with a model call, sorted into the classes callers treat
//! differently.
//!
//! Structured data decides first: the HTTP status, the vendor's error type, the
//! kind of transport error. Texts are consulted only where nothing better
//! exists, so a `400` whose body mentions "500" is not retried.

use std::sync::LazyLock;

use pith_protocol::{AssistantMessage, ErrorKind, Failure, StopReason};
use regex::{Regex, RegexSet};

/// A failure with the text people and hosts read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub text: String,
    pub failure: Failure,
}

impl Fault {
    /// Makes a fault without HTTP details.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Fault { text: text.into(), failure: failure(kind) }
    }

    /// Makes the fault that a provider reported inside its stream; `code` is its error type, if it sent one.
    pub fn reported(provider: &str, code: Option<&str>, text: impl Into<String>) -> Self {
        let text = text.into();
        let kind = match code.and_then(kind_of_code) {
            // Vendors file an overflow under "invalid request", and a spent quota under "rate limit".
            Some(kind) if kind == ErrorKind::InvalidRequest || is_retryable_kind(kind) => {
                lasting_kind_of_text(provider, &text).unwrap_or(kind)
            }
            Some(kind) => kind,
            // Some servers say what happened in the code alone.
            None => kind_of_text(provider, &code.map_or_else(|| text.clone(), |code| format!("{code}: {text}"))),
        };
        Fault { failure: failure(kind), text }
    }
}

/// Makes a failure of which only the kind is known.
pub fn failure(kind: ErrorKind) -> Failure {
    Failure { kind, status: None, retry_after_ms: None, request_id: None, should_retry: None }
}

/// Returns the class of an HTTP error answer.
pub fn kind_of_status(provider: &str, status: u16, text: &str) -> ErrorKind {
    if let Some(kind) = lasting_kind_of_text(provider, text) {
        return kind;
    }
    match status {
        413 => ErrorKind::Overflow,
        401 | 403 | 407 => ErrorKind::Auth,
        402 => ErrorKind::Quota,
        408 => ErrorKind::Timeout,
        429 => ErrorKind::RateLimit,
        409 | 500.. => ErrorKind::Overloaded,
        _ => ErrorKind::InvalidRequest,
    }
}

/// Whether asking again may help.
pub fn is_retryable_kind(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::RateLimit | ErrorKind::Overloaded | ErrorKind::Network | ErrorKind::Timeout => true,
        ErrorKind::Auth
        | ErrorKind::Overflow
        | ErrorKind::Quota
        | ErrorKind::InvalidRequest
        | ErrorKind::Protocol
        | ErrorKind::Limit => false,
    }
}

/// Whether the server said that asking again does not help.
pub fn is_final(failure: &Failure) -> bool {
    failure.should_retry == Some(false)
}

/// Whether a failed answer is worth another request. Overflows are not: they need compaction.
pub fn is_retryable(message: &AssistantMessage) -> bool {
    let is_final = message.error.as_ref().is_some_and(is_final);
    if message.stop_reason != StopReason::Error || is_final || is_overflow(message, 0) {
        return false;
    }
    match (&message.error, &message.error_message) {
        (Some(failure), _) => is_retryable_kind(failure.kind),
        (None, Some(text)) => !is_quota_text(text) && TRANSIENT.is_match(text),
        (None, None) => false,
    }
}

/// Whether an answer says that the context window is too small, in words or by its counts.
/// A window of zero leaves the counts out.
pub fn is_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    let input = message.usage.input + message.usage.cache_read;
    match message.stop_reason {
        StopReason::Error => match (&message.error, &message.error_message) {
            (Some(failure), _) => failure.kind == ErrorKind::Overflow,
            (None, Some(text)) => is_overflow_text(&message.provider, text),
            (None, None) => false,
        },
        StopReason::Stop => context_window > 0 && input > context_window,
        StopReason::Length => {
            context_window > 0 && message.usage.output == 0 && input as f64 >= 0.99 * context_window as f64
        }
        StopReason::ToolUse | StopReason::Aborted => false,
    }
}

/// Whether an error text is one of the known ways to say "too long".
pub fn is_overflow_text(provider: &str, text: &str) -> bool {
    if THROTTLED.is_match(text) {
        return false;
    }
    OVERFLOW.is_match(text) || (provider == "cerebras" && BARE_REFUSAL.is_match(text))
}

fn is_quota_text(text: &str) -> bool {
    QUOTA.is_match(text)
}

/// Classifies the error types and codes of the vendors.
fn kind_of_code(code: &str) -> Option<ErrorKind> {
    Some(match code {
        "overloaded_error"
        | "api_error"
        | "server_error"
        | "internal_error"
        | "internal_server_error"
        | "service_unavailable"
        | "server_overloaded"
        | "engine_overloaded"
        | "UNAVAILABLE"
        | "INTERNAL" => ErrorKind::Overloaded,
        "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" | "RESOURCE_EXHAUSTED" => ErrorKind::RateLimit,
        "authentication_error" | "permission_error" | "invalid_api_key" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            ErrorKind::Auth
        }
        "billing_error" | "insufficient_quota" | "quota_exceeded" => ErrorKind::Quota,
        // Z.ai: a plan is used up; too many requests at once, too many in a short time, too many from everybody.
        "1308" => ErrorKind::Quota,
        "1302" | "1303" | "1305" => ErrorKind::RateLimit,
        "timeout_error" | "DEADLINE_EXCEEDED" => ErrorKind::Timeout,
        "request_too_large" | "context_length_exceeded" | "model_context_window_exceeded" => ErrorKind::Overflow,
        "invalid_request_error" | "not_found_error" | "invalid_prompt" | "INVALID_ARGUMENT" | "NOT_FOUND" => {
            ErrorKind::InvalidRequest
        }
        _ => return None,
    })
}

/// Returns the class of a text that speaks of something that lasts.
fn lasting_kind_of_text(provider: &str, text: &str) -> Option<ErrorKind> {
    if is_overflow_text(provider, text) {
        Some(ErrorKind::Overflow)
    } else if is_quota_text(text) {
        Some(ErrorKind::Quota)
    } else {
        None
    }
}

fn kind_of_text(provider: &str, text: &str) -> ErrorKind {
    if let Some(kind) = lasting_kind_of_text(provider, text) {
        kind
    } else if RATE_LIMITED.is_match(text) {
        ErrorKind::RateLimit
    } else if TRANSIENT.is_match(text) {
        ErrorKind::Overloaded
    } else {
        ErrorKind::InvalidRequest
    }
}

/// Returns a pattern for status numbers. Those inside of a longer word or number are part of an id or a size.
fn alone(numbers: &str) -> String {
    format!("(^|[^a-z0-9])({numbers})([^a-z0-9]|$)")
}

fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns.iter().map(|pattern| format!("(?i){pattern}"))).expect("the patterns are constants")
}

static QUOTA: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        "GoUsageLimitError",
        "FreeUsageLimitError",
        "monthly usage limit reached",
        "available balance",
        "insufficient_quota",
        "out of budget",
        "quota exceeded",
        "billing",
        "subscription_sharing_(workplace_individual_)?usage_limit_exceeded",
        r#""code"\s*:\s*"?1308([^0-9]|$)"#,
    ])
});

static RATE_LIMITED: LazyLock<RegexSet> = LazyLock::new(|| set(&["rate.?limit", "too many requests", &alone("429")]));

static TRANSIENT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        "overloaded",
        "server_busy",
        "servers are currently busy",
        "currently experiencing high demand",
        "model is at capacity",
        "rate.?limit",
        "too many requests",
        &alone("429|500|502|503|504|520|524"),
        "service.?(is.?)?(temporarily.?)?unavailable",
        "server.?error",
        "internal.?error",
        "provider.?returned.?(an.?)?error",
        "exceeded request buffer limit while retrying upstream",
        "unable to forward upstream",
        "upstream.?request.?failed",
        "upstream_stream_read_error",
        "stream was interrupted",
        "http/?2 stream failed",
        "network.?error",
        "connection.?(error|refused|lost)",
        "other side closed",
        "fetch failed",
        r"request to \S+ failed, reason:",
        "getaddrinfo|ENOTFOUND|EAI_AGAIN",
        "upstream.?connect",
        "reset before headers",
        "socket hang up",
        "socket connection was closed",
        "timed? out|timeout",
        "terminated",
        "websocket.?(closed|error)",
        "ended without",
        "stream ended before (message_stop|a terminal response event)",
        "http2 request did not get a response",
        "stream disconnected before completion",
        "cut short after the reply had begun",
        "pending stream has been canceled",
        "retry delay",
        "you can retry your request|try your request again|please retry your request",
        "ResourceExhausted",
        "subscription_sharing_(usage|user)_unavailable",
    ])
});

static THROTTLED: LazyLock<RegexSet> =
    LazyLock::new(|| set(&["rate.?limit", "too many requests", "^(throttling error|service unavailable):"]));

static BARE_REFUSAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^400 (status code )?\(no body\)").expect("the pattern is a constant"));

static OVERFLOW: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        "prompt (is )?too long",
        "prompt exceeds max length",
        "request_too_large",
        "input is too long for requested model",
        "exceeds the context window",
        "context window exceeded",
        r"exceeds (the )?(model'?s )?maximum context length( of [\d,]+ tokens?|\s*\([\d,]+\))",
        "(?s)input token count.*exceeds the maximum",
        r"maximum prompt length is [\d,]+",
        "reduce the length of the messages",
        r"maximum context length is [\d,]+ tokens",
        r"exceeds (the )?maximum allowed input length of [\d,]+ tokens",
        r"input \([\d,]+ tokens\) is longer than the model's context length \([\d,]+ tokens\)",
        r"exceeds the limit of [\d,]+",
        "exceeds the available context size",
        "greater than the context length",
        "context window exceeds limit",
        "exceeded model token limit",
        r"too large for model with [\d,]+ maximum context length",
        r"prompt has [\d,]+ tokens, but the configured context size is [\d,]+ tokens",
        "model_context_window_exceeded",
        "prompt too long; exceeded (max )?context length",
        "range of input length should be",
        "context[_ ]length[_ ]exceeded",
        "too many tokens",
        "token limit exceeded",
        // A request that is too large for the server, in messages that other programs have stored.
        r"^([\w -]+ API error \(413\):|413(\s|:|$))",
    ])
});

#[cfg(test)]
mod tests;
