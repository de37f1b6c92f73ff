//! Servers at an address: both eras, sessions, streams, and whatever they do wrong.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pith_agent::ToolContext;
use pith_mcp::State;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, text};
use crate::http_server::{HttpServer, Kind, of};

#[tokio::test]
async fn every_kind_of_server_is_reached_with_equal_results() {
    for (kind, version) in [
        (Kind::Legacy, "2025-11-25"),
        (Kind::Plain, "2025-11-25"),
        (Kind::Modern, "2026-07-28"),
        (Kind::Sse, "2025-11-25"),
        (Kind::Moves, "2025-11-25"),
    ] {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(json!({}));
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()), "{kind:?}");
        assert_eq!(bench.servers.shown()[0].protocol_version.as_deref(), Some(version), "{kind:?}");
        let output = bench.call("echo", json!({"text": "hi"})).await;
        assert_eq!((text(&output), output.is_error), (r#"{"text":"hi"}"#, false), "{kind:?}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn the_old_transport_is_used_at_once_where_the_entry_says_so() {
    let server = HttpServer::start(Kind::Sse).await;
    let bench = server.bench(json!({"type": "sse"}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    assert_eq!(server.log()[..2], ["GET /mcp ", "POST /messages initialize"]);
    // The end of the stream is the end of the session, and the next call opens another one.
    server.streams.lock().expect("no panic").clear();
    while bench.state() == State::Ready {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn requests_carry_the_headers_of_their_era() {
    let server = HttpServer::start(Kind::Modern).await;
    let bench = server.bench(json!({"headers": {"X-Own": "${MY_SECRET}-1"}}));
    bench.connect().await;
    bench.call("echo", json!({"text": "hi"})).await;
    let header = |name: &str| {
        let headers = server.headers.lock().expect("no panic");
        headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(header("mcp-protocol-version"), "2026-07-28");
    assert_eq!([header("mcp-method"), header("mcp-name"), header("mcp-param-text")], ["tools/call", "echo", "hi"]);
    assert_eq!([header("x-own"), header("mcp-session-id")], ["x-1", ""]);
    bench.servers.close().await;

    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.wait_for("GET").await;
    bench.servers.close().await;
    assert_eq!(server.log().last().map(String::as_str), Some("DELETE /mcp "), "the session is ended");
    let headers = server.headers.lock().expect("no panic").clone();
    assert!(headers.contains(&("mcp-session-id".to_owned(), "s-1".to_owned())), "{headers:?}");
    assert!(headers.contains(&("mcp-protocol-version".to_owned(), "2025-11-25".to_owned())), "{headers:?}");
}

#[tokio::test]
async fn an_expired_session_fails_one_call() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.session.store(2, Ordering::SeqCst);
    let output = bench.call("echo", json!({})).await;
    assert_eq!((text(&output), output.is_error), ("s: session expired", true));
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn answers_that_are_none_fail_the_call_and_are_quoted() {
    for (kind, why) in [
        (Kind::Accepts, "s: answered 202 with no type"),
        (Kind::NoType, "s: answered 200 with no type: some words"),
        (
            Kind::CutStream,
            "s: answered 200 and ended its stream before the answer: data: \
             {\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}",
        ),
        (Kind::Huge, "s: sent an event longer than 16 MiB"),
    ] {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(json!({}));
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()), "{kind:?}");
        let output = bench.call("echo", json!({})).await;
        assert_eq!((text(&output), output.is_error), (why, true), "{kind:?}");
        assert_eq!(bench.state(), State::Ready, "{kind:?}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn addresses_that_are_no_servers_say_why() {
    let check = async |kind: Kind, more: Value, state: State, why: &str| {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(more);
        bench.connect().await;
        assert_eq!((bench.state(), &*bench.error()), (state, why), "{kind:?}");
        bench.servers.close().await;
    };
    let html = "answered 200 with text/html: <html>Sign in here: [redacted]</html>";
    check(Kind::Html, json!({}), State::Failed, html).await;
    let away = "sends requests on to http://127.0.0.1:1, which pith does not follow";
    check(Kind::MovesAway, json!({}), State::Failed, away).await;
    check(Kind::Circles, json!({}), State::Failed, "sent the request on more than 3 times").await;
    let future = "speaks 2027-01-01, pith knows 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28";
    check(Kind::Future, json!({}), State::Failed, future).await;
    let unlicensed = "refused the handshake: license expired (-32000)";
    check(Kind::Unlicensed, json!({}), State::Failed, unlicensed).await;
    let sign_in = "wants a sign-in (401): pith mcp login s";
    check(Kind::Guarded, json!({}), State::NeedsAuth, sign_in).await;
    let refused = "wants a sign-in (401): the credentials of its entry were refused";
    check(Kind::Guarded, json!({"bearerToken": "let-me-in-wrong"}), State::NeedsAuth, refused).await;
    check(Kind::Guarded, json!({"bearerToken": "let-me-in-please"}), State::Ready, "").await;
    check(Kind::Guarded, json!({"headers": {"authorization": "Bearer let-me-in-please"}}), State::Ready, "").await;
    check(Kind::Guarded, json!({"bearerTokenEnv": "NOT_SET"}), State::Failed, "needs variable NOT_SET").await;
    let plain = json!({"url": "http://example.com/mcp", "bearerToken": "let-me-in-please"});
    let open = "url: http:// would show the credentials to everybody on the way; use https://";
    check(Kind::Plain, plain, State::Failed, open).await;
    check(Kind::Plain, json!({"url": "http://a-token@example.com/mcp"}), State::Failed, open).await;
    check(
        Kind::Plain,
        json!({"url": "${MY_SECRET}://a"}),
        State::Failed,
        "url: it must begin with http:// or https://",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_wants_a_sign_in_later_needs_one_too() {
    let server = HttpServer::start(Kind::GuardsLists).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), &*bench.error()), (State::NeedsAuth, "wants a sign-in (403): pith mcp login s"));
    let server = HttpServer::start(Kind::GuardsCalls).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let output = bench.call("echo", json!({})).await;
    assert_eq!((text(&output), output.is_error), ("s: wants a sign-in (401)", true));
    while bench.state() == State::Ready {
        tokio::task::yield_now().await;
    }
    assert_eq!((bench.state(), &*bench.error()), (State::NeedsAuth, "wants a sign-in (401): pith mcp login s"));
    // Nothing more is sent until somebody has signed in.
    let output = bench.call("echo", json!({})).await;
    assert_eq!(text(&output), "s: wants a sign-in (401): pith mcp login s");
    assert_eq!(server.log().iter().filter(|line| line.ends_with("tools/call")).count(), 1);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_tool_that_wants_more_leaves_other_calls_alone() {
    let server = HttpServer::start(Kind::GuardsEcho).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    let refused = async {
        server.wait_for("tools/call").await;
        let output = bench.call("echo", json!({})).await;
        assert_eq!(text(&output), "s: wants a sign-in (403)");
        let told = async {
            while bench.state() == State::Ready {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), told).await.expect("the state changes");
        assert_eq!((bench.state(), &*bench.error()), (State::NeedsAuth, "wants a sign-in (403): pith mcp login s"));
        server.log.send_modify(|log| log.push("release".to_owned()));
    };
    let (slow, ()) = tokio::join!(bench.call("slow", json!({"text": "x"})), refused);
    assert_eq!((text(&slow), slow.is_error), (r#"{"text":"x"}"#, false));
    bench.servers.close().await;
}

#[tokio::test]
async fn nobody_there_is_a_failure_with_its_place() {
    let bench = Bench::new(json!({"s": {"url": "http://127.0.0.1:1/mcp?token=secret-token"}}));
    bench.connect().await;
    assert_eq!(bench.state(), State::Failed);
    let error = bench.error();
    assert!(error.contains("127.0.0.1:1") && error.contains("ECONNREFUSED") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn an_abort_ends_the_stream_and_tells_servers_of_the_older_era() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    let cancel = CancellationToken::new();
    let on_progress = cancel.clone();
    let update = Arc::new(move |_| on_progress.cancel());
    let context = ToolContext { call_id: "1".into(), cancel, update, trace: None };
    let output = bench.tool("mcp__s__slow").run(Map::new(), context).await;
    assert_eq!((text(&output), output.is_error), ("Operation aborted", true));
    server.wait_for("notifications/cancelled").await;
    bench.servers.close().await;
}

#[tokio::test]
async fn notices_between_calls_are_heard() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.wait_for("GET").await;
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    let lists = |server: &HttpServer| server.log().iter().filter(|line| line.contains("tools/list")).count();
    let before = lists(&server);
    server.notice(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let mut log = server.log.subscribe();
    while lists(&server) == before {
        log.changed().await.expect("the server lives");
    }
    bench.servers.close().await;
}

#[tokio::test]
async fn servers_of_the_newer_era_are_listened_to_and_again_when_the_stream_was_cut() {
    let server = HttpServer::start(Kind::Tells).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    let has = |called: &'static str, n: usize| {
        move |log: &Vec<String>| log.iter().filter(|line| line.ends_with(called)).count() == n
    };
    let request = server.unsent.lock().expect("no panic").take().expect("the client listens");
    let change =
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": of(&request)}});
    server.notice(&change);
    server.log.subscribe().wait_for(has("tools/list", 2)).await.expect("the server lives");
    server.streams.lock().expect("no panic").clear();
    server.log.subscribe().wait_for(has("subscriptions/listen", 2)).await.expect("the server lives");
    // What changed in between nobody has told.
    server.log.subscribe().wait_for(has("tools/list", 3)).await.expect("the server lives");
    bench.servers.close().await;
}

#[tokio::test]
async fn what_a_server_spoke_last_is_tried_first() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    let handshakes = |server: &HttpServer| -> Vec<String> {
        let is_handshake = |line: &&String| line.ends_with("initialize") || line.ends_with("server/discover");
        server.log().iter().filter(is_handshake).cloned().collect()
    };
    bench.connect().await;
    assert_eq!(handshakes(&server), ["POST /mcp server/discover", "POST /mcp initialize"]);
    bench.servers.find("s").expect("configured").stop().await;
    bench.connect().await;
    assert_eq!((bench.state(), handshakes(&server).len()), (State::Ready, 3));
    assert_eq!(handshakes(&server)[2], "POST /mcp initialize");
    bench.servers.close().await;
}

#[tokio::test]
async fn the_old_transport_is_remembered() {
    let server = HttpServer::start(Kind::Sse).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    bench.servers.find("s").expect("configured").stop().await;
    let before = server.log().len();
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    assert_eq!(server.log()[before..before + 2], ["GET /mcp ", "POST /messages initialize"]);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_hangs_on_the_newer_era_is_asked_in_the_older_one() {
    let server = HttpServer::start(Kind::Hangs).await;
    let bench = server.bench(json!({"startupTimeoutMs": 600_000}));
    let connecting = async {
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    };
    let waiting = async {
        server.wait_for("server/discover").await;
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(301)).await;
        tokio::time::resume();
    };
    tokio::join!(connecting, waiting);
    assert_eq!(server.log()[..2], ["POST /mcp server/discover", "POST /mcp initialize"]);
    bench.servers.close().await;
}

#[tokio::test]
async fn lists_and_resources_are_asked_for_again_and_calls_are_not() {
    let server = HttpServer::start(Kind::Busy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let count = |called: &str| server.log().iter().filter(|line| line.ends_with(called)).count();
    assert_eq!(count("tools/list"), 2);
    let read = bench.run("read_mcp_resource", json!({"server": "s", "uri": "test://a"})).await;
    assert_eq!((text(&read), count("resources/read")), ("the text of a", 2));
    let output = bench.call("echo", json!({})).await;
    assert_eq!((text(&output), count("tools/call")), ("s: answered 503: come back later", 1));
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_stream_that_is_cut_goes_on_and_the_call_is_made_once() {
    let server = HttpServer::start(Kind::Resumes).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    let output = bench.call("echo", json!({"text": "hi"})).await;
    assert_eq!((text(&output), output.is_error), (r#"{"text":"hi"}"#, false));
    let log = server.log();
    let of = |what: &str| log.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!([of("tools/call"), of("after call-1"), of("after call-2"), of("after call-9")], [1, 1, 1, 0], "{log:?}");
    bench.servers.close().await;
}

#[tokio::test]
async fn the_stream_of_notices_goes_on_where_it_was_cut() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    server.notice(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let lists = |log: &Vec<String>| log.iter().filter(|line| line.ends_with("tools/list")).count() > 1;
    server.log.subscribe().wait_for(lists).await.expect("the server lives");
    server.streams.lock().expect("no panic").clear();
    server.wait_for("GET /mcp after notice-1").await;
    bench.servers.close().await;
}
