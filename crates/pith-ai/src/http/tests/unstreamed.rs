//! Whole answers where a stream was asked for.

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, StopReason};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::server::{ask, end, failure, providers, question, serve, whole};
use crate::client::ClientOptions;

/// The answer to a question of an API that is given as one JSON document.
async fn unstreamed(api: &str, body: Value) -> AssistantMessage {
    // Set with blanks and line ends, as some servers do.
    let body = serde_json::to_string_pretty(&body).expect("JSON");
    let server = serve(move |_, _| whole("200 OK", "content-type: application/json\r\n", &body)).await;
    end(providers(ClientOptions::default()).stream(question(&server, api), CancellationToken::new())).await
}

/// Stop reason, blocks and tokens, in short.
fn gist(message: &AssistantMessage) -> (StopReason, Vec<Value>, u64) {
    assert_eq!(message.error_message, None);
    let content = serde_json::to_value(&message.content).expect("serializes");
    let short = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].clone(),
        Some("thinking") => json!([block["thinking"]]),
        _ => json!({"name": block["name"], "arguments": block["arguments"]}),
    };
    (message.stop_reason, content.as_array().expect("a list").iter().map(short).collect(), message.usage.output)
}

#[tokio::test]
async fn whole_answers_where_a_stream_was_asked_for() {
    let call = json!({"name": "ls", "arguments": {"p": 1}});
    let expected = (StopReason::ToolUse, vec![json!(["hm"]), json!("hi"), call], 7);
    let message = unstreamed(
        "openai-completions",
        json!({"id": "c1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "ls", "arguments": "{\"p\":1}"}}]}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}}),
    )
    .await;
    assert_eq!((gist(&message), message.response_id.as_deref()), (expected.clone(), Some("c1")));
    let message = unstreamed(
        "anthropic-messages",
        json!({"id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "t1", "name": "ls", "input": {"p": 1}}],
            "usage": {"input_tokens": 3, "output_tokens": 7}}),
    )
    .await;
    assert_eq!((gist(&message), message.response_id.as_deref()), (expected.clone(), Some("m1")));
    let message = unstreamed(
        "openai-responses",
        json!({"id": "r1", "object": "response", "status": "completed", "output": [
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "id": "ms", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
            {"type": "function_call", "id": "fc", "call_id": "t1", "name": "ls", "arguments": "{\"p\":1}"}],
            "usage": {"input_tokens": 3, "output_tokens": 7, "total_tokens": 10}}),
    )
    .await;
    assert_eq!((gist(&message), message.response_id.as_deref()), (expected.clone(), Some("r1")));
    let parts =
        json!([{"text": "hm", "thought": true}, {"text": "hi"}, {"functionCall": {"name": "ls", "args": {"p": 1}}}]);
    let response = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "responseId": "g1",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 7}});
    for body in [response.clone(), json!([{"candidates": []}, response])] {
        let message = unstreamed("google-generative-ai", body).await;
        assert_eq!((gist(&message), message.response_id.as_deref()), (expected.clone(), Some("g1")));
    }
}

#[tokio::test]
async fn documents_that_are_no_answers_are_errors() {
    let message =
        unstreamed("openai-completions", json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))
            .await;
    assert_eq!(failure(&message).0, ErrorKind::RateLimit);
    let message = unstreamed("openai-completions", json!({"status": "ok"})).await;
    assert_eq!(failure(&message).0, ErrorKind::Protocol);
    let half = whole("200 OK", "content-type: application/json\r\n", r#"{"choices":[{"message":{"content":"hi"#);
    assert_eq!(failure(&ask(ClientOptions::default(), half).await).0, ErrorKind::Protocol);
}
