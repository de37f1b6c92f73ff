//! The driver against a server that does as told.

mod compressed;
mod gateways;
mod images;
mod lasting;
mod limits;
mod redirects;
mod server;
mod thinking;
mod unstreamed;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pith_agent::ModelClient;
use pith_protocol::{AssistantEvent, ErrorKind, Model, StopReason};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client::{ClientOptions, Notice, Providers};
use crate::credentials::{CredentialSource, Credentials};
use crate::testing::{call, fixture, read_tool};
use server::{
    Act, Key, ask, chunk, end, event_stream, failure, open_stream, providers, question, serve, timeouts, whole,
};

#[tokio::test]
async fn answers_arrive_however_they_are_cut() {
    let text = fixture("anthropic.sse");
    let mut acts = vec![open_stream()];
    acts.extend(text.as_bytes().chunks(3).map(|piece| chunk(std::str::from_utf8(piece).expect("ASCII"))));
    acts.push(chunk(""));
    let message = ask(ClientOptions::default(), acts).await;
    assert_eq!((message.stop_reason, message.content.len()), (StopReason::ToolUse, 3));
    assert_eq!(message.usage.total_tokens, 354);
}

#[tokio::test]
async fn connections_are_used_again() {
    let mut server = serve(|n, _| {
        let mut acts = event_stream(&fixture("anthropic.sse"));
        if n == 2 {
            acts.push(Act::AwaitClose);
        }
        acts
    })
    .await;
    let providers = providers(ClientOptions::default());
    for _ in 0..2 {
        end(providers.stream(question(&server, "anthropic-messages"), CancellationToken::new())).await;
        // The rest of a response is read after its end is known.
        tokio::task::yield_now().await;
    }
    drop(providers);
    // Both requests came over one connection, or the second would not have been awaited on it.
    assert_eq!(server.requests.lock().expect("no panics").len(), 2);
    assert!(server.closed.recv().await.is_some());
}

#[tokio::test]
async fn an_abort_closes_the_socket() {
    let text = fixture("anthropic.sse");
    let head = text[..text.find("event: content_block_stop").expect("there")].to_owned();
    let mut server = serve(move |_, _| vec![open_stream(), chunk(&head), Act::AwaitClose]).await;
    let cancel = CancellationToken::new();
    let mut events =
        providers(ClientOptions::default()).stream(question(&server, "anthropic-messages"), cancel.clone());
    while !matches!(events.recv().await, Some(AssistantEvent::ThinkingDelta { .. })) {}
    cancel.cancel();
    let message = end(events).await;
    assert_eq!((message.stop_reason, message.content.len()), (StopReason::Aborted, 1));
    assert_eq!(message.error_message.as_deref(), Some("Request was aborted."));
    assert_eq!(message.usage.input, 12);
    server.closed.recv().await.expect("the server noticed, though it has more to send");
}

#[tokio::test]
async fn an_abort_before_the_first_byte() {
    let mut server = serve(|_, _| vec![Act::AwaitClose]).await;
    let cancel = CancellationToken::new();
    let events = providers(ClientOptions::default()).stream(question(&server, "anthropic-messages"), cancel.clone());
    while server.requests.lock().expect("no panics").is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(end(events).await.stop_reason, StopReason::Aborted);
    assert!(server.closed.recv().await.is_some());
}

#[tokio::test]
async fn an_abort_reaches_a_consumer_that_lags_behind() {
    let delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"x\"}}\n\n";
    let start = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n";
    let body = start.to_owned() + &delta.repeat(2000);
    let mut server = serve(move |_, _| vec![open_stream(), chunk(&body), Act::AwaitClose]).await;
    let cancel = CancellationToken::new();
    let mut events =
        providers(ClientOptions::default()).stream(question(&server, "anthropic-messages"), cancel.clone());
    let first = events.recv().await;
    assert!(matches!(first, Some(AssistantEvent::Start(_))));
    cancel.cancel();
    server.closed.recv().await.expect("closed although nobody reads");
    let mut text = String::new();
    while let Some(event) = events.recv().await {
        match event {
            AssistantEvent::TextDelta { delta, .. } => text.push_str(&delta),
            AssistantEvent::End(message) => {
                assert_eq!(message.stop_reason, StopReason::Aborted);
                assert_eq!(message.content[0].as_text(), Some(text.as_str()));
                return;
            }
            _ => {}
        }
    }
    panic!("no end");
}

#[tokio::test]
async fn refusals_are_classified_and_keys_hidden() {
    let body = r#"{"error":{"message":"bad key sk-secret-123456"}}"#;
    let headers = "request-id: req_7\r\n";
    let message = ask(ClientOptions::default(), whole("401 Unauthorized", headers, body)).await;
    assert_eq!(failure(&message), (ErrorKind::Auth, r#"401 {"error":{"message":"bad key [redacted]"}}"#));
    let details = message.error.expect("a failure");
    assert_eq!((details.status, details.request_id.as_deref()), (Some(401), Some("req_7")));

    let echoed = r#"data: {"type":"error","error":{"message":"sk-secret-123456"}}"#;
    let message = ask(ClientOptions::default(), event_stream(&format!("{echoed}\n\n"))).await;
    assert!(!failure(&message).1.contains("sk-secret"), "{message:?}");
}

#[tokio::test]
async fn servers_say_when_to_come_back() {
    let message = ask(ClientOptions::default(), whole("429 Slow down", "retry-after: 2\r\n", "slow")).await;
    assert_eq!(failure(&message), (ErrorKind::RateLimit, "429 slow"));
    assert_eq!(message.error.expect("a failure").retry_after_ms, Some(2000));

    let message = ask(ClientOptions::default(), whole("503 Later", "retry-after: 120\r\n", "later")).await;
    assert_eq!(failure(&message).1, "Server requested 120s retry delay (max: 60s). 503 later");

    let options = timeouts(|timeouts| timeouts.max_retry_delay = Duration::from_millis(1500));
    let message = ask(options, whole("503 Later", "retry-after: 100\r\n", "later")).await;
    assert_eq!(failure(&message).1, "Server requested 100s retry delay (max: 2s). 503 later");

    for (status, kind) in
        [("429 X", ErrorKind::RateLimit), ("500 X", ErrorKind::Overloaded), ("503 X", ErrorKind::Overloaded)]
    {
        let message = ask(ClientOptions::default(), whole(status, "x-should-retry: false\r\n", "no")).await;
        assert_eq!(failure(&message).0, kind, "{status}");
        assert!(!crate::failure::is_retryable(&message), "{status}");
    }
    let message = ask(ClientOptions::default(), whole("400 X", "x-should-retry: true\r\n", "again")).await;
    assert!(crate::failure::is_retryable(&message));
}

#[tokio::test]
async fn requests_are_repeated_when_asked_to() {
    let server = serve(|n, _| match n {
        1 => whole("529 Overloaded", "retry-after-ms: 1\r\n", "busy"),
        _ => event_stream(&fixture("anthropic.sse")),
    })
    .await;
    let options = timeouts(|timeouts| timeouts.retries = 2);
    let message =
        end(providers(options).stream(question(&server, "anthropic-messages"), CancellationToken::new())).await;
    assert_eq!((message.stop_reason, server.requests.lock().expect("no panics").len()), (StopReason::ToolUse, 2));
}

#[tokio::test]
async fn requests_are_not_repeated_when_the_server_says_so() {
    let server = serve(|_, _| whole("503 Busy", "x-should-retry: false\r\nretry-after: 900\r\n", "no")).await;
    let options = timeouts(|timeouts| timeouts.retries = 2);
    let message =
        end(providers(options).stream(question(&server, "anthropic-messages"), CancellationToken::new())).await;
    assert_eq!(failure(&message), (ErrorKind::Overloaded, "503 no"));
    assert_eq!(server.requests.lock().expect("no panics").len(), 1);
}

#[tokio::test]
async fn successes_that_are_no_streams() {
    let page = whole("200 OK", "content-type: text/html\r\n", "<html><body>Please log in</body></html>");
    let message = ask(ClientOptions::default(), page).await;
    assert_eq!(
        failure(&message),
        (ErrorKind::Protocol, "Expected an event stream, got text/html: <html><body>Please log in</body></html>")
    );
    let disguised = whole("200 OK", "content-type: application/json\r\n", r#"{"error":{"type":"overloaded_error"}}"#);
    let message = ask(ClientOptions::default(), disguised).await;
    assert_eq!(failure(&message), (ErrorKind::Overloaded, r#"{"type":"overloaded_error"}"#));
    let message = ask(ClientOptions::default(), event_stream("")).await;
    assert_eq!(failure(&message).1, "Anthropic stream ended without a stop reason");
}

#[tokio::test]
async fn broken_connections_keep_what_came() {
    let text = fixture("anthropic.sse");
    let head = text[..text.find("event: content_block_stop").expect("there")].to_owned();
    for last in [Act::Reset, Act::Close] {
        let mut acts = vec![open_stream(), chunk(&head)];
        // A reset may overtake the bytes before it.
        acts.extend([Act::Pause(Duration::from_millis(30)), last]);
        let message = ask(ClientOptions::default(), acts).await;
        let (kind, text) = failure(&message);
        assert_eq!((kind, message.content.len()), (ErrorKind::Network, 1), "{text}");
        assert!(text.starts_with("Connection lost: "), "{text}");
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let model = Model { api: "anthropic-messages".into(), base_url: format!("http://{address}"), ..Model::default() };
    let message = end(providers(ClientOptions::default()).stream(call(model, vec![]), CancellationToken::new())).await;
    let (kind, text) = failure(&message);
    assert_eq!(kind, ErrorKind::Network);
    assert!(text.starts_with(&format!("Connection error: could not reach {address}: ")), "{text}");
}

#[tokio::test]
async fn a_server_without_tls_is_a_connection_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("https://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let model = Model { api: "anthropic-messages".into(), base_url, ..Model::default() };
    let message = end(providers(ClientOptions::default()).stream(call(model, vec![]), CancellationToken::new())).await;
    let (kind, text) = failure(&message);
    assert_eq!(kind, ErrorKind::Network, "{text}");
    assert!(text.starts_with("Connection error: could not reach 127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn silence_has_a_limit_and_comments_break_it() {
    let limit = Duration::from_millis(200);
    let message = ask(timeouts(|timeouts| timeouts.first_byte = Some(limit)), vec![Act::AwaitClose]).await;
    assert_eq!(failure(&message), (ErrorKind::Timeout, "Request timed out: no data for 0.2 s"));

    let heard: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let ear = heard.clone();
    let mut options = timeouts(|timeouts| timeouts.idle = Some(limit));
    options.notice = Some(Arc::new(move |notice| ear.lock().expect("no panics").push(notice)));
    let message = ask(options.clone(), vec![open_stream(), Act::AwaitClose]).await;
    assert_eq!(failure(&message).0, ErrorKind::Timeout);
    let silence = Notice::Silence { provider: "p".into(), model: "m".into(), elapsed: limit / 2 };
    assert_eq!(*heard.lock().expect("no panics"), [silence]);

    let mut acts = vec![open_stream()];
    for _ in 0..6 {
        acts.extend([Act::Pause(limit / 3), chunk(": still here\n\n")]);
    }
    acts.extend([chunk(&fixture("anthropic.sse")), chunk("")]);
    assert_eq!(ask(options, acts).await.stop_reason, StopReason::ToolUse);
}

#[tokio::test]
async fn fields_a_server_refuses_are_left_out_for_good() {
    // Refuses one thing after the other, as strict servers do.
    let server = serve(|_, body| {
        let text = body.to_string();
        for field in ["developer", "store", "stream_options", "strict"] {
            if text.contains(&format!("\"{field}\"")) {
                return whole(
                    "400 Bad Request",
                    "",
                    &format!(r#"{{"error":{{"message":"Unsupported value: '{field}'"}}}}"#),
                );
            }
        }
        event_stream(&fixture("completions.sse"))
    })
    .await;
    let mut question = question(&server, "openai-completions");
    let compat = json!({"supportsDeveloperRole":true,"supportsStore":true,"supportsStrictMode":true});
    question.model =
        Arc::new(Model { reasoning: true, compat: compat.as_object().cloned(), ..(*question.model).clone() });
    question.system_prompt = Arc::from("be brief");
    question.tools = Arc::from([read_tool()]);
    let providers = providers(ClientOptions::default());
    let requests = || server.requests.lock().expect("no panics").len();
    let message = end(providers.stream(question.clone(), CancellationToken::new())).await;
    assert_eq!((message.stop_reason, requests()), (StopReason::ToolUse, 5));
    end(providers.stream(question, CancellationToken::new())).await;
    assert_eq!(requests(), 6);
}

#[tokio::test]
async fn calls_that_cannot_be_made() {
    let refused = |model: Model, source: Arc<dyn CredentialSource>| async move {
        let providers = Providers::new(source, ClientOptions::default());
        end(providers.stream(call(model, vec![]), CancellationToken::new())).await
    };
    let model =
        |api: &str| Model { api: api.into(), provider: "p".into(), base_url: "http://x".into(), ..Model::default() };
    let message = refused(model("smoke-signals"), Arc::new(Key("k"))).await;
    assert_eq!(failure(&message).1, "No API provider registered for api: smoke-signals");

    struct Locked;
    impl CredentialSource for Locked {
        fn credentials<'a>(&'a self, _: &'a Model) -> BoxFuture<'a, Result<Credentials, String>> {
            Box::pin(async { Err("No API key found for p.".to_owned()) })
        }
    }
    let message = refused(model("openai-completions"), Arc::new(Locked)).await;
    assert_eq!(failure(&message), (ErrorKind::Auth, "No API key found for p."));
    let message = refused(model("anthropic-messages"), Arc::new(Key("line\nbreak"))).await;
    assert_eq!(failure(&message).1, "Header x-api-key: its value cannot be sent");
}

#[tokio::test]
async fn a_whole_request_can_be_limited() {
    let limit = Duration::from_millis(150);
    let mut acts = vec![open_stream()];
    for _ in 0..100 {
        acts.extend([chunk(": busy\n\n"), Act::Pause(Duration::from_millis(10))]);
    }
    let message = ask(timeouts(|timeouts| timeouts.whole = Some(limit)), acts).await;
    assert_eq!(failure(&message), (ErrorKind::Timeout, "Request timed out after 0.15 s"));
}

#[test]
fn settings_become_options() {
    let mut settings = pith_config::Settings::default();
    settings.retry.provider.max_retries = 2;
    settings.http_idle_timeout = None;
    settings.thinking_budgets.high = 5;
    let options = ClientOptions::from(&settings);
    assert_eq!((options.timeouts.retries, options.timeouts.idle, options.timeouts.first_byte), (2, None, None));
    assert_eq!((options.request.budgets.high, options.request.attribution), (5, false));
}

#[tokio::test]
async fn recordings_replay_without_a_network() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = serve(|n, _| match n {
        1 => whole("503 Busy", "x-request-id: r1\r\n", "busy for sk-secret-123456"),
        _ => event_stream(&fixture("anthropic.sse")),
    })
    .await;
    let run = async |tape: Tape| {
        let providers = providers(ClientOptions { tape, ..ClientOptions::default() });
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut message =
                end(providers.stream(question(&server, "anthropic-messages"), CancellationToken::new())).await;
            message.timestamp = 0;
            answers.push(message);
        }
        answers
    };
    let recorded = run(Tape::Record(directory.path().into())).await;
    assert_eq!((recorded[0].stop_reason, recorded[1].stop_reason), (StopReason::Error, StopReason::ToolUse));
    assert_eq!(run(Tape::Replay(directory.path().into())).await, recorded);
    assert_eq!(server.requests.lock().expect("no panics").len(), 2);
    for entry in std::fs::read_dir(directory.path()).expect("files") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("text");
        assert!(!text.contains("sk-secret"), "{text}");
    }
    let providers =
        providers(ClientOptions { tape: Tape::Replay(directory.path().join("none")), ..ClientOptions::default() });
    let message = end(providers.stream(question(&server, "anthropic-messages"), CancellationToken::new())).await;
    assert!(failure(&message).1.starts_with("replay "), "{message:?}");
}
