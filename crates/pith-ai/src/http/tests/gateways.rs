//! Connections, addresses and headers as gateways have them.

use std::sync::Arc;

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, LlmCall, Model, StopReason};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::server::{Act, Server, ask, end, event_stream, failure, providers, question, serve, whole};
use crate::client::{ClientOptions, Providers};
use crate::testing::{fixture, read_tool};

async fn answer(providers: &Providers, call: LlmCall) -> AssistantMessage {
    end(providers.stream(call, CancellationToken::new())).await
}

#[tokio::test]
async fn many_headers_are_no_reason_to_fail() {
    let headers: String = (0..400).map(|n| format!("llm_provider-x-{n}: {n}\r\n")).collect();
    let acts = whole("200 OK", &format!("content-type: text/event-stream\r\n{headers}"), &fixture("anthropic.sse"));
    assert_eq!(ask(ClientOptions::default(), acts).await.stop_reason, StopReason::ToolUse);
}

#[tokio::test]
async fn a_gateway_hands_on_when_to_come_back() {
    let message = ask(ClientOptions::default(), whole("429 Slow", "llm_provider-retry-after: 7\r\n", "slow")).await;
    assert_eq!(message.error.expect("a failure").retry_after_ms, Some(7000));
    let both = "retry-after: 2\r\nllm_provider-retry-after: 7\r\n";
    let message = ask(ClientOptions::default(), whole("429 Slow", both, "slow")).await;
    assert_eq!(message.error.expect("a failure").retry_after_ms, Some(2000));
}

fn at(server: &Server, api: &str, base_url: String) -> LlmCall {
    let mut call = question(server, api);
    call.model = Arc::new(Model { base_url, ..(*call.model).clone() });
    call
}

#[tokio::test]
async fn credentials_in_the_address_are_used_and_hidden() {
    let server = serve(|n, body| match n {
        1 => whole("307 Moved", "location: /elsewhere\r\n", ""),
        2 => event_stream(&fixture("completions.sse")),
        _ => whole("500 Oops", "", &format!("cGl0aDpwYXNzIHdvcmQ= pass%20word pass word {}", body["model"])),
    })
    .await;
    let base_url = server.base_url.replace("http://", "http://pith:pass%20word@");
    let providers = providers(ClientOptions::default());
    let message = answer(&providers, at(&server, "openai-completions", base_url.clone())).await;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    for n in 0..2 {
        assert!(server.head(n).contains("authorization: basic cgl0adpwyxnzihdvcmq="), "{}", server.head(n));
    }
    let message = answer(&providers, at(&server, "anthropic-messages", base_url)).await;
    assert!(server.head(2).contains("authorization: basic ") && server.head(2).contains("x-api-key: "));
    assert_eq!(failure(&message).1, "500 [redacted] [redacted] [redacted] \"m\"");
}

#[tokio::test]
async fn a_kept_connection_that_dies_is_replaced_once() {
    for death in [Act::Close, Act::Reset] {
        let server = serve(move |n, _| match n {
            1 | 3 => event_stream(&fixture("anthropic.sse")),
            _ => vec![death.clone()],
        })
        .await;
        let providers = providers(ClientOptions::default());
        for n_requests in [1, 3] {
            let message = answer(&providers, question(&server, "anthropic-messages")).await;
            assert_eq!(message.stop_reason, StopReason::ToolUse, "{:?}", message.error_message);
            assert_eq!(server.n_requests(), n_requests);
        }
    }
}

#[tokio::test]
async fn a_new_connection_that_dies_is_a_fault() {
    let server = serve(|_, _| vec![Act::Close]).await;
    let message = answer(&providers(ClientOptions::default()), question(&server, "anthropic-messages")).await;
    assert_eq!((failure(&message).0, server.n_requests()), (ErrorKind::Network, 1));
}

#[tokio::test]
async fn tools_that_are_too_strict_together_are_refused_once() {
    let server = serve(|_, body| {
        let text = "tools: Too many strict tools (21). The maximum number of strict tools supported is 20.";
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}});
        let is_strict = body["tools"].to_string().contains("\"strict\":true");
        if is_strict { whole("400 Bad", "", &error.to_string()) } else { event_stream(&fixture("anthropic.sse")) }
    })
    .await;
    let providers = providers(ClientOptions::default());
    let mut call = question(&server, "anthropic-messages");
    let compat = json!({"supportsStrictTools": true});
    call.model = Arc::new(Model { compat: compat.as_object().cloned(), ..(*call.model).clone() });
    call.tools = Arc::from([read_tool()]);
    for n_requests in [2, 3] {
        let message = answer(&providers, call.clone()).await;
        assert_eq!((message.stop_reason, server.n_requests()), (StopReason::ToolUse, n_requests));
    }
    // Another model of the server is asked as ever.
    call.model = Arc::new(Model { id: "other".into(), ..(*call.model).clone() });
    answer(&providers, call).await;
    assert_eq!(server.n_requests(), 5);
}
