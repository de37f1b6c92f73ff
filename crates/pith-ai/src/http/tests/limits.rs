//! Servers that can hold less than a model's entry promises.

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, LlmCall, Model, StopReason};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use super::server::{Act, Server, end, event_stream, failure, providers, question, serve, whole};
use crate::client::{ClientOptions, Providers};
use crate::testing::{call, fixture, user};

/// Behaves like vLLM with a window of 8192 tokens, three characters each.
fn small(_: usize, body: &Value) -> Vec<Act> {
    let (input, asked) = (body["messages"].to_string().len() as u64 / 3, body["max_tokens"].as_u64().expect("a limit"));
    if input + asked <= 8192 {
        return event_stream(&fixture("completions.sse"));
    }
    let text = format!(
        "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is 8192 \
         tokens and your request has {input} input tokens ({asked} > 8192 - {input})."
    );
    let error = json!({"object": "error", "message": text, "type": "BadRequestError", "param": null, "code": 400});
    whole("400 Bad Request", "", &error.to_string())
}

/// A question of so many characters to a model of which only the name is configured.
fn minimal(server: &Server, n_chars: usize) -> LlmCall {
    let model = Model {
        context_window: 128_000,
        max_tokens: 16_384,
        ..(*question(server, "openai-completions").model).clone()
    };
    call(model, vec![user(&"x".repeat(n_chars))])
}

async fn ask(providers: &Providers, call: &LlmCall) -> AssistantMessage {
    end(providers.stream(call.clone(), CancellationToken::new())).await
}

fn limits(server: &Server) -> Vec<u64> {
    let requests = server.requests.lock().expect("no panics");
    requests.iter().filter_map(|request| request["max_tokens"].as_u64()).collect()
}

#[tokio::test]
async fn a_limit_that_does_not_fit_is_lowered_once_and_remembered() {
    let server = serve(small).await;
    let providers = providers(ClientOptions::default());
    let message = ask(&providers, &minimal(&server, 12_000)).await;
    assert_eq!(message.stop_reason, StopReason::ToolUse, "{:?}", message.error_message);
    let first = limits(&server);
    assert_eq!((first.len(), first[0]), (2, 16_384));
    assert!(first[1] > 4000 && first[1] < 4192, "{first:?}");
    // The next request is right from the start, and leaves room for an estimate that is wrong.
    let message = ask(&providers, &minimal(&server, 12_300)).await;
    assert_eq!((message.stop_reason, server.n_requests()), (StopReason::ToolUse, 3));
    assert!(limits(&server)[2] <= 4092, "{:?}", limits(&server));
}

#[tokio::test]
async fn a_limit_of_the_user_is_lowered_too() {
    let server = serve(small).await;
    let mut call = minimal(&server, 300);
    let params = json!({"max_tokens": 9000});
    call.model = Arc::new(Model { sampling_params: params.as_object().cloned(), ..(*call.model).clone() });
    let message = ask(&providers(ClientOptions::default()), &call).await;
    assert_eq!((message.stop_reason, limits(&server)[0]), (StopReason::ToolUse, 9000), "{:?}", message.error_message);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_still_an_overflow() {
    for n_chars in [25_000, 40_000] {
        let server = serve(small).await;
        let message = ask(&providers(ClientOptions::default()), &minimal(&server, n_chars)).await;
        assert_eq!((failure(&message).0, server.n_requests()), (ErrorKind::Overflow, 1));
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_limit_is_not_asked_without_end() {
    let server = serve(|n, _| {
        let text = format!("max_tokens is too large. This model supports at most {} completion tokens", 9000 - n);
        whole("400 Bad Request", "", &text)
    })
    .await;
    let message = ask(&providers(ClientOptions::default()), &minimal(&server, 10)).await;
    assert_eq!((failure(&message).0, server.n_requests()), (ErrorKind::InvalidRequest, 3));
}
