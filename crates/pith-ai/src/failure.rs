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
        let kind = code.and_then(kind_of_code).unwrap_or_else(|| kind_of_text(&text));
        // Vendors file an overflow under "invalid request".
        let overflows = kind == ErrorKind::InvalidRequest && is_overflow_text(provider, &text);
        Fault { failure: failure(if overflows { ErrorKind::Overflow } else { kind }), text }
    }
}

/// Makes a failure of which only the kind is known.
pub fn failure(kind: ErrorKind) -> Failure {
    Failure { kind, status: None, retry_after_ms: None, request_id: None, should_retry: None }
}

/// Returns the class of an HTTP error answer.
pub fn kind_of_status(provider: &str, status: u16, text: &str) -> ErrorKind {
    if is_overflow_text(provider, text) || status == 413 {
        return ErrorKind::Overflow;
    }
    if is_quota_text(text) {
        return ErrorKind::Quota;
    }
    match status {
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
        "timeout_error" | "DEADLINE_EXCEEDED" => ErrorKind::Timeout,
        "request_too_large" | "context_length_exceeded" | "model_context_window_exceeded" => ErrorKind::Overflow,
        "invalid_request_error" | "not_found_error" | "invalid_prompt" | "INVALID_ARGUMENT" | "NOT_FOUND" => {
            ErrorKind::InvalidRequest
        }
        _ => return None,
    })
}

fn kind_of_text(text: &str) -> ErrorKind {
    if is_overflow_text("", text) {
        ErrorKind::Overflow
    } else if is_quota_text(text) {
        ErrorKind::Quota
    } else if RATE_LIMITED.is_match(text) {
        ErrorKind::RateLimit
    } else if TRANSIENT.is_match(text) {
        ErrorKind::Overloaded
    } else {
        ErrorKind::InvalidRequest
    }
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
    ])
});

static RATE_LIMITED: LazyLock<RegexSet> = LazyLock::new(|| set(&["rate.?limit", "too many requests", "429"]));

static TRANSIENT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        "overloaded",
        "currently experiencing high demand",
        "rate.?limit",
        "too many requests",
        "429|500|502|503|504|520|524",
        "service.?unavailable",
        "server.?error",
        "internal.?error",
        "provider.?returned.?error",
        "exceeded request buffer limit while retrying upstream",
        "network.?error",
        "connection.?(error|refused|lost)",
        "other side closed",
        "fetch failed",
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
        "retry delay",
        "you can retry your request|try your request again|please retry your request",
        "ResourceExhausted",
    ])
});

static THROTTLED: LazyLock<RegexSet> =
    LazyLock::new(|| set(&["rate.?limit", "too many requests", "^(throttling error|service unavailable):"]));

static BARE_REFUSAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^4(00|13) (status code )?\(no body\)").expect("the pattern is a constant"));

static OVERFLOW: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        "prompt (is )?too long",
        "request_too_large",
        "input is too long for requested model",
        "exceeds the context window",
        r"exceeds (the )?(model's )?maximum context length (of [\d,]+ tokens|\([\d,]+\))",
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
    ])
});

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::Usage;

    fn status(status: u16, text: &str, kind: ErrorKind) {
        assert_eq!(kind_of_status("any", status, text), kind, "{status} {text}");
    }

    #[test]
    fn the_status_decides_before_the_text() {
        status(400, "bad value 500 in server error", ErrorKind::InvalidRequest);
        status(400, "prompt is too long: 210000 tokens > 200000 maximum", ErrorKind::Overflow);
        status(413, "", ErrorKind::Overflow);
        status(401, "invalid x-api-key", ErrorKind::Auth);
        status(403, "", ErrorKind::Auth);
        status(402, "", ErrorKind::Quota);
        status(429, "slow down", ErrorKind::RateLimit);
        status(429, "You exceeded your current quota: insufficient_quota", ErrorKind::Quota);
        status(429, "Rate limit reached: too many tokens per minute", ErrorKind::RateLimit);
        status(408, "", ErrorKind::Timeout);
        status(529, "Overloaded", ErrorKind::Overloaded);
        status(500, "the request exceeds the available context size", ErrorKind::Overflow);
    }

    #[test]
    fn reported_faults_use_the_vendors_type() {
        let kind = |code: Option<&str>, text: &str| Fault::reported("x", code, text).failure.kind;
        assert_eq!(kind(Some("overloaded_error"), "Overloaded"), ErrorKind::Overloaded);
        assert_eq!(kind(Some("invalid_request_error"), "prompt is too long"), ErrorKind::Overflow);
        assert_eq!(kind(Some("invalid_request_error"), "got 500 messages"), ErrorKind::InvalidRequest);
        assert_eq!(kind(Some("no_such_code"), "Rate limit exceeded"), ErrorKind::RateLimit);
        assert_eq!(kind(None, "upstream connect error"), ErrorKind::Overloaded);
        assert_eq!(kind(None, "content policy"), ErrorKind::InvalidRequest);
    }

    fn failed(text: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            ..AssistantMessage::default()
        }
    }

    #[test]
    fn texts_decide_for_messages_from_elsewhere() {
        for text in [
            "529 Overloaded",
            "rate-limit",
            "ratelimit",
            "Connection error.",
            "request timed out",
            "Anthropic stream ended before message_stop",
            "Anthropic stream ended without a stop reason",
            "fetch failed",
            "HTTP2 request did not get a response",
        ] {
            assert!(is_retryable(&failed(text)), "{text}");
        }
        for text in ["429 insufficient_quota", "401 nope", "prompt is too long (500)", "Monthly usage limit reached"] {
            assert!(!is_retryable(&failed(text)), "{text}");
        }
    }

    #[test]
    fn overflow_is_recognised_in_words() {
        for text in [
            "This model's maximum context length is 128,000 tokens. However",
            "Input token count (1200) exceeds the maximum number",
            "the request exceeds the model's maximum context length (8192)",
            "input (9000 tokens) is longer than the model's context length (8192 tokens)",
            "prompt has 9,000 tokens, but the configured context size is 4,096 tokens",
            "context_length_exceeded",
        ] {
            assert!(is_overflow(&failed(text), 0), "{text}");
        }
        assert!(!is_overflow(&failed("Throttling error: too many tokens"), 0));
        assert!(is_overflow_text("cerebras", "413 status code (no body)"));
        assert!(!is_overflow_text("groq", "413 status code (no body)"));
    }

    #[test]
    fn overflow_is_recognised_by_counts() {
        let message = |stop_reason, input, output| AssistantMessage {
            stop_reason,
            usage: Usage { input, output, cache_read: 10, ..Usage::default() },
            ..AssistantMessage::default()
        };
        assert!(is_overflow(&message(StopReason::Stop, 1000, 5), 1000));
        assert!(!is_overflow(&message(StopReason::Stop, 900, 5), 1000));
        assert!(is_overflow(&message(StopReason::Length, 980, 0), 1000));
        assert!(!is_overflow(&message(StopReason::Length, 980, 1), 1000));
        assert!(!is_overflow(&message(StopReason::Stop, 1000, 5), 0));
    }
}
