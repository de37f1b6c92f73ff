//! Servers that have moved.

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, StopReason};
use tokio_util::sync::CancellationToken;

use super::server::{Server, ask, end, event_stream, failure, providers, question, serve, whole};
use crate::client::ClientOptions;
use crate::testing::fixture;

fn redirect(status: &str, to: &str) -> Vec<super::server::Act> {
    whole(status, &format!("location: {to}\r\n"), "moved")
}

async fn converse(server: &Server) -> AssistantMessage {
    let call = question(server, "anthropic-messages");
    end(providers(ClientOptions::default()).stream(call, CancellationToken::new())).await
}

#[tokio::test]
async fn a_request_follows_its_server_with_method_and_body() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = serve(move |n, _| match n {
            1 => redirect(status, "/moved/v1/messages?x=1"),
            _ => event_stream(&fixture("anthropic.sse")),
        })
        .await;
        assert_eq!(converse(&server).await.stop_reason, StopReason::ToolUse);
        assert!(server.head(1).starts_with("post /moved/v1/messages?x=1 "), "{}", server.head(1));
        assert!(server.head(1).contains("x-api-key: sk-secret-123456"), "{}", server.head(1));
        let requests = server.requests.lock().expect("no panics");
        assert_eq!(requests[0], requests[1]);
    }
}

#[tokio::test]
async fn credentials_do_not_follow_a_request_to_another_origin() {
    let other = serve(|_, _| whole("401 Unauthorized", "", "who are you")).await;
    let to = format!("{}/v1/messages", other.base_url);
    let location = to.clone();
    let server = serve(move |_, _| redirect("307 Temporary Redirect", &location)).await;
    let message = converse(&server).await;
    let (kind, text) = failure(&message);
    assert_eq!(kind, ErrorKind::Auth);
    assert!(text.starts_with("401 who are you"), "{text}");
    assert!(text.contains(&format!("redirected to {to}")) && text.contains("credentials were not sent"), "{text}");
    assert!(!other.head(0).contains("sk-secret"), "{}", other.head(0));
    assert!(other.head(0).contains("anthropic-version"), "{}", other.head(0));
}

#[tokio::test]
async fn a_request_follows_five_times_and_no_more() {
    let server = serve(|n, _| redirect("307 Temporary Redirect", &format!("/{n}"))).await;
    let message = converse(&server).await;
    assert_eq!(failure(&message), (ErrorKind::InvalidRequest, "307: redirected more than 5 times, last to /6"));
    assert_eq!(server.n_requests(), 6);
}

#[tokio::test]
async fn redirects_that_drop_the_body_are_refused_with_their_address() {
    for status in ["301 Moved", "302 Found", "303 See Other"] {
        let message = ask(ClientOptions::default(), redirect(status, "https://login.test/start?from=api")).await;
        let (kind, text) = failure(&message);
        assert_eq!(kind, ErrorKind::InvalidRequest);
        assert!(text.starts_with(&status[..3]) && text.contains("https://login.test/start?from=api"), "{text}");
    }
    let message = ask(ClientOptions::default(), whole("302 Found", "", "")).await;
    assert_eq!(failure(&message), (ErrorKind::InvalidRequest, "302 status code (no body)"));
}

#[tokio::test]
async fn unsafe_redirects_are_refused() {
    for (to, why) in [("ftp://files.test/", "scheme ftp"), ("http://[::bad/", "Invalid redirect")] {
        let message = ask(ClientOptions::default(), redirect("307 Temporary Redirect", to)).await;
        let (kind, text) = failure(&message);
        assert_eq!(kind, ErrorKind::InvalidRequest);
        assert!(text.contains(why) && text.contains(to), "{text}");
    }
}
