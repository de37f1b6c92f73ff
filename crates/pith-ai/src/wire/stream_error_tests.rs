//! What a stream says has gone wrong is sorted alike in every API.

use pith_protocol::{ErrorKind, Model};
use serde_json::{Value, json};

use super::Wire;
use super::anthropic::Anthropic;
use super::completions::Completions;
use super::google::Google;
use super::responses::Responses;
use crate::testing::show;

/// The same error as each API reports it inside a stream.
fn streams(code: &str, text: &str) -> [(&'static dyn Wire, Value); 5] {
    let failed = json!({"type":"response.failed","response":{"status":"failed","error":{"code":code,"message":text}}});
    [
        (&Completions, json!({"error":{"code":code,"message":text}})),
        (&Anthropic, json!({"type":"error","error":{"type":code,"message":text}})),
        (&Responses, failed),
        (&Responses, json!({"type":"error","code":code,"message":text})),
        (&Google, json!({"error":{"status":code,"message":text}})),
    ]
}

fn kind(wire: &dyn Wire, event: &Value) -> Option<ErrorKind> {
    let model = Model { provider: "p".into(), ..Model::default() };
    show(wire, &model, &format!("data: {event}\n\n")).1.error.map(|failure| failure.kind)
}

#[test]
fn code_and_text_decide_in_every_api() {
    for (code, text, expected) in [
        ("x", "Selected model is at capacity", ErrorKind::Overloaded),
        ("server_busy", "m", ErrorKind::Overloaded),
        ("upstream_request_failed", "m", ErrorKind::Overloaded),
        ("x", "request to https://a.test/token failed, reason: ", ErrorKind::Overloaded),
        ("x", "req_a429bc failed to validate", ErrorKind::InvalidRequest),
        ("x", "the file has 15000 bytes", ErrorKind::InvalidRequest),
        ("x", "Prompt exceeds max length", ErrorKind::Overflow),
        ("1261", "Prompt exceeds max length", ErrorKind::Overflow),
        ("x", "litellm.ContextWindowExceededError: Context Window exceeded for given call.", ErrorKind::Overflow),
        ("1308", "Usage limit reached for 5 hour.", ErrorKind::Quota),
        ("1302", "too much at once", ErrorKind::RateLimit),
        ("server_error", "prompt is too long: 9 tokens > 8 maximum", ErrorKind::Overflow),
        ("rate_limit_error", "Monthly usage limit reached", ErrorKind::Quota),
    ] {
        for (wire, event) in streams(code, text) {
            assert_eq!(kind(wire, &event), Some(expected), "{event}");
        }
    }
    // The number of an error is not the status of a request.
    assert_eq!(kind(&Completions, &json!({"error":{"code":1308,"message":"m"}})), Some(ErrorKind::Quota));
    assert_eq!(kind(&Completions, &json!({"error":{"code":503,"message":"m"}})), Some(ErrorKind::Overloaded));
}

#[test]
fn what_the_real_provider_said_decides_too() {
    let error = |raw: &str| json!({"error":{"code":400,"message":"Provider said no","metadata":{"raw":raw}}});
    assert_eq!(kind(&Completions, &error("prompt is too long: 9 tokens > 8")), Some(ErrorKind::Overflow));
    assert_eq!(kind(&Completions, &error("max_tokens is odd")), Some(ErrorKind::InvalidRequest));
    let shown = show(&Completions, &Model::default(), &format!("data: {}\n\n", error("max_tokens is odd"))).1;
    assert_eq!(shown.error_message.as_deref(), Some("Provider said no\nmax_tokens is odd"));
    let ended = |reason: &str| json!({"type":"response.failed","response":{"status":"failed","incomplete_details":{"reason":reason}}});
    assert_eq!(kind(&Responses, &ended("server_busy")), Some(ErrorKind::Overloaded));
    assert_eq!(kind(&Responses, &ended("odd")), Some(ErrorKind::InvalidRequest));
}

#[test]
fn a_fault_of_mistral_itself_is_worth_another_request() {
    let chunk = json!({"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]});
    let end = |provider: &str| {
        let model = Model { provider: provider.into(), ..Model::default() };
        let message = show(&Completions, &model, &format!("data: {chunk}\n\ndata: [DONE]\n\n")).1;
        (message.error_message, message.error.map(|failure| failure.kind))
    };
    let text = || Some("Provider finish_reason: error".to_owned());
    assert_eq!(end("mistral"), (text(), Some(ErrorKind::Overloaded)));
    assert_eq!(end("openai"), (text(), Some(ErrorKind::InvalidRequest)));
}
