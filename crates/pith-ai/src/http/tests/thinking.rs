//! Earlier thinking that a server refuses ends neither the session nor the thinking that is yet to come.

use std::sync::Arc;

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, LlmCall, Model, StopReason, ThinkingLevel};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::server::{Server, end, event_stream, providers, question, serve, whole};
use crate::client::{ClientOptions, Providers};
use crate::testing::{call, fixture, own, result, user};

/// An API, the signature of a thought there, where the wish for thinking is, and how a server refuses the thought.
const APIS: [(&str, &str, &str, &str); 4] = [
    ("anthropic-messages", "U0lH", "/thinking/type", "messages.1.content.0: Invalid `signature` in `thinking` block"),
    (
        "openai-completions",
        r#"[{"type":"reasoning.text","text":"hm","signature":"U0lH"}]"#,
        "/reasoning_effort",
        "Provider returned error: messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "openai-responses",
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"U0lH"}"#,
        "/include/0",
        "The encrypted content U0lH could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
    ),
    (
        "google-generative-ai",
        "U0lH",
        "/generationConfig/thinkingConfig/includeThoughts",
        "Unable to submit request because Thought signature is not valid",
    ),
];

fn thoughtful(server: &Server, api: &str, signature: &str) -> LlmCall {
    let model = Model { reasoning: true, max_tokens: 16_000, ..(*question(server, api).model).clone() };
    let answer = own(
        &model,
        json!([{"type":"thinking","thinking":"hm","thinkingSignature":signature},
            {"type":"toolCall","id":"call_1|fc_1","name":"read","arguments":{}}]),
    );
    let mut call = call(model, vec![user("hi"), answer, result("call_1|fc_1", "text")]);
    call.thinking = ThinkingLevel::High;
    call
}

async fn ask(providers: &Providers, call: LlmCall) -> AssistantMessage {
    end(providers.stream(call, CancellationToken::new())).await
}

async fn picky(api: &str, text: &'static str) -> Server {
    let family = ["anthropic", "completions", "responses", "google"].into_iter().find(|name| api.contains(name));
    let stream = fixture(&format!("{}.sse", family.expect("an API")));
    serve(move |_, body| {
        let code = if text.contains("encrypted") { "invalid_encrypted_content" } else { "x" };
        let error = json!({"error": {"type": "invalid_request_error", "code": code, "message": text}});
        let is_bad = body.to_string().contains("U0lH");
        if is_bad { whole("400 Bad Request", "", &error.to_string()) } else { event_stream(&stream) }
    })
    .await
}

#[tokio::test]
async fn refused_thinking_is_left_out_and_the_model_goes_on_thinking() {
    for (api, signature, wish, refusal) in APIS {
        let server = picky(api, refusal).await;
        let providers = providers(ClientOptions::default());
        let answer = ask(&providers, thoughtful(&server, api, signature)).await;
        assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::ToolUse, 2), "{api} {answer:?}");
        assert_eq!(answer.diagnostics.expect("the host is told")["thinkingOmitted"], json!({"count": 1}));
        // The same conversation is right from the start, and so is another one.
        ask(&providers, thoughtful(&server, api, signature)).await;
        let mut other = thoughtful(&server, api, signature);
        other.messages.truncate(1);
        ask(&providers, other).await;
        let requests = server.requests.lock().expect("no panics").clone();
        assert_eq!(requests.len(), 4, "{api}");
        for request in &requests {
            assert!(request.pointer(wish).is_some(), "{api}: it still thinks: {request}");
        }
        let sent = requests[1].to_string();
        assert!(
            !sent.contains("hm\"") && sent.contains("\"read\"") && !sent.contains("\"id\":\"fc_1"),
            "{api}: {sent}"
        );
        assert_eq!(requests[1], requests[2], "{api}");
    }
}

#[tokio::test]
async fn an_answer_after_refused_thinking_keeps_its_own() {
    let (api, signature, _, refusal) = APIS[0];
    let server = picky(api, refusal).await;
    let providers = providers(ClientOptions::default());
    let mut call = thoughtful(&server, api, signature);
    ask(&providers, call.clone()).await;
    let newer = json!([{"type":"thinking","thinking":"new","thinkingSignature":"TkVX"},{"type":"text","text":"ok"}]);
    call.messages.push(Arc::new(own(&call.model, newer)));
    call.messages.push(Arc::new(user("next")));
    ask(&providers, call).await;
    let requests = server.requests.lock().expect("no panics").clone();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].to_string().contains("TkVX"), "{}", requests[2]);
}

#[tokio::test]
async fn a_refusal_that_leaving_thinking_out_does_not_mend_is_an_error() {
    let (api, signature, _, refusal) = APIS[0];
    let server = serve(move |_, _| whole("400 Bad Request", "", refusal)).await;
    let providers = providers(ClientOptions::default());
    let answer = ask(&providers, thoughtful(&server, api, signature)).await;
    assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::Error, 2));
    let wishes: Vec<Value> =
        server.requests.lock().expect("no panics").iter().map(|request| request["thinking"].clone()).collect();
    assert_eq!(wishes[0], wishes[1]);
    assert_eq!(wishes[0]["type"], "enabled");
}
