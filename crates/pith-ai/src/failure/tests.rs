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
    status(400, r#"{"code":"1261","message":"Prompt exceeds max length"}"#, ErrorKind::Overflow);
    status(429, r#"429: {"code":"1308","message":"Usage limit reached for 5 hour."}"#, ErrorKind::Quota);
    status(429, r#"429: {"code": 1308}"#, ErrorKind::Quota);
    status(429, r#"429: {"code":"13081","message":"slow down"}"#, ErrorKind::RateLimit);
    status(400, "Selected model is at capacity", ErrorKind::InvalidRequest);
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
    assert_eq!(kind(Some("server_busy"), "no message"), ErrorKind::Overloaded);
    assert_eq!(kind(Some("upstream_stream_read_error"), ""), ErrorKind::Overloaded);
    assert_eq!(kind(Some("rate_limit_error"), "Monthly usage limit reached"), ErrorKind::Quota);
    assert_eq!(kind(Some("server_error"), "prompt is too long: 9 tokens > 8 maximum"), ErrorKind::Overflow);
    assert_eq!(kind(Some("1308"), "Usage limit reached for 5 hour"), ErrorKind::Quota);
    assert_eq!(kind(Some("1302"), "High concurrency usage of this API"), ErrorKind::RateLimit);
    assert_eq!(kind(Some("authentication_error"), "500"), ErrorKind::Auth);
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
        "server_busy: no message",
        "Our servers are currently busy, please try again later",
        "Selected model is at capacity. Please try a different model.",
        "The service is temporarily unavailable",
        "The upstream provider returned an error",
        "unable to forward upstream response",
        "upstream_request_failed: no message",
        "upstream_stream_read_error: no message",
        "The stream was interrupted",
        "HTTP/2 stream failed",
        "request to https://oauth2.googleapis.com/token failed, reason: ",
        "stream disconnected before completion: stream closed before response.completed",
        "Claude Code's stream from Anthropic was cut short after the reply had begun",
        "The pending stream has been canceled (caused by: )",
        "subscription_sharing_usage_unavailable",
        "status 502",
        "HTTP_503: try later",
    ] {
        assert!(is_retryable(&failed(text)), "{text}");
    }
    // Numbers inside of ids and sizes are no status.
    for number in ["429", "500", "502", "503", "504", "520", "524"] {
        for (before, after) in [("a", ""), ("", "a"), ("1", ""), ("", "0"), ("req_a", "bc"), ("Z", "Z")] {
            let text = format!("{before}{number}{after} failed to validate");
            assert!(!is_retryable(&failed(&text)), "{text}");
            assert_eq!(Fault::reported("x", None, &*text).failure.kind, ErrorKind::InvalidRequest, "{text}");
        }
        for text in [number.to_owned(), format!("({number})"), format!("error_{number}:"), format!("-{number}.")] {
            assert!(is_retryable(&failed(&text)), "{text}");
        }
    }
    for text in [
        "429 insufficient_quota",
        "401 nope",
        "prompt is too long (500)",
        "Monthly usage limit reached",
        r#"429: {"code":"1308","message":"Usage limit reached for 5 hour."}"#,
    ] {
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
        r#"{"code":"1261","message":"Prompt exceeds max length"}"#,
        "litellm.ContextWindowExceededError: Context Window exceeded for given call. No context window fallback",
    ] {
        assert!(is_overflow(&failed(text), 0), "{text}");
    }
    assert!(!is_overflow(&failed("Throttling error: too many tokens"), 0));
    assert!(is_overflow_text("cerebras", "400 status code (no body)"));
    assert!(!is_overflow_text("groq", "400 status code (no body)"));
    assert!(is_overflow_text("groq", "413 status code (no body)"));
    assert!(is_overflow_text("groq", "github-copilot API error (413): {}"));
    assert!(!is_overflow_text("groq", "4130 is no status"));
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

#[test]
fn extensions_sort_errors_by_the_same_lists() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../pith-ext/js/pi/pi-ai.js");
    let script = std::fs::read_to_string(path).expect("the script");
    for (name, list) in
        [("overflow", &*OVERFLOW), ("throttled", &THROTTLED), ("spent", &QUOTA), ("transient", &TRANSIENT)]
    {
        let line = script.lines().find_map(|line| line.strip_prefix(&format!("const {name} = ")));
        let mut rest = line.unwrap_or_else(|| panic!("a list {name}"));
        for pattern in list.patterns() {
            let pattern = pattern.trim_start_matches("(?i)").trim_start_matches("(?s)").replace('/', "\\/");
            let at = rest.find(&pattern).unwrap_or_else(|| panic!("{name} lacks {pattern}, or it is elsewhere"));
            assert!(at <= "[/".len() + "/is, /".len(), "{name} has something before {pattern}");
            rest = &rest[at + pattern.len()..];
        }
        assert!(rest.len() <= "/is];".len(), "{name} has something more: {rest}");
    }
}
