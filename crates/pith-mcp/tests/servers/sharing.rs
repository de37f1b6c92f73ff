//! Sessions of one process that share their servers.

use std::sync::Arc;

use pith_agent::ToolContext;
use pith_mcp::{Pool, State, Wanted};
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, entry, text, user};

/// Two sessions with equal servers; the user of each says who they are.
fn two(behaviour: &str) -> [Bench; 2] {
    let (directory, pool) = (Arc::new(tempfile::tempdir().expect("a directory")), Pool::default());
    let servers = json!({"s": entry(directory.path(), behaviour)});
    ["Ann", "Bob"].map(|name| session(&directory, &pool, servers.clone(), name))
}

fn session(directory: &Arc<tempfile::TempDir>, pool: &Pool, servers: Value, name: &'static str) -> Bench {
    let user = user(move |dialog, _| {
        let answer = match dialog {
            UiMethod::Input { .. } => name.into(),
            UiMethod::Select { .. } => "Yes".into(),
            _ => UiAnswer::Cancelled,
        };
        Box::pin(async move { answer })
    });
    Bench::sharing(directory.clone(), servers, Some(user), None, Some(pool.clone()))
}

/// How many programs have been started, and how many have ended.
fn started_and_ended(bench: &Bench) -> (usize, usize) {
    let log = bench.log();
    (log.matches("\"initialize\"").count(), log.lines().filter(|line| *line == "ended").count())
}

/// A call that waits until it is cancelled. Returns when the server works on it.
async fn begin_slow(bench: &Bench) -> (CancellationToken, tokio::task::JoinHandle<pith_agent::ToolOutput>) {
    let (cancel, (reports, mut reported)) = (CancellationToken::new(), mpsc::unbounded_channel());
    let update = Arc::new(move |output| drop(reports.send(output)));
    let context = ToolContext { call_id: "slow".into(), cancel: cancel.clone(), update, trace: None };
    let call = tokio::spawn(bench.tool("mcp__s__slow").run(Map::new(), context));
    let progress = reported.recv().await.expect("progress of this call");
    assert_eq!(text(&progress), "1/4 working");
    (cancel, call)
}

#[tokio::test]
async fn one_program_serves_both_sessions_and_ends_with_the_last() {
    let [ann, bob] = two("plain");
    tokio::join!(ann.connect(), bob.connect());
    assert_eq!((ann.state(), bob.state()), (State::Ready, State::Ready));
    assert_eq!(text(&ann.call("echo", json!({"text": "a"})).await), r#"{"text":"a"}"#);
    assert_eq!(text(&bob.call("echo", json!({"text": "b"})).await), r#"{"text":"b"}"#);
    ann.servers.close().await;
    assert_eq!(text(&bob.call("echo", json!({"text": "c"})).await), r#"{"text":"c"}"#);
    assert_eq!(started_and_ended(&bob), (1, 0));
    bob.servers.close().await;
    assert_eq!(started_and_ended(&bob), (1, 1));
    // The next one starts another.
    bob.servers.read();
    bob.connect().await;
    assert_eq!((bob.state(), started_and_ended(&bob)), (State::Ready, (2, 1)));
    bob.servers.close().await;
}

#[tokio::test]
async fn questions_progress_and_aborts_belong_to_their_session() {
    let answer = |name: &str| format!(r#"{{"action":"accept","content":{{"name":"{name}","sure":true}}}}"#);
    let [ann, bob] = two("plain");
    tokio::join!(ann.connect(), bob.connect());
    assert_eq!(text(&ann.call("ask", json!({})).await), answer("Ann"));
    assert_eq!(text(&bob.call("ask", json!({})).await), answer("Bob"));
    let (cancel, slow) = begin_slow(&ann).await;
    // The server does not say for which of the calls it asks.
    assert_eq!(text(&bob.call("ask", json!({})).await), r#"{"action":"decline"}"#);
    cancel.cancel();
    assert_eq!(text(&slow.await.expect("no panic")), "Operation aborted");
    assert_eq!(text(&bob.call("ask", json!({})).await), answer("Bob"));
    assert_eq!(ann.log().matches("notifications/cancelled").count(), 1);
    tokio::join!(ann.servers.close(), bob.servers.close());

    // In the newer era the question is a part of the call.
    let [ann, bob] = two("modern");
    tokio::join!(ann.connect(), bob.connect());
    let (cancel, slow) = begin_slow(&ann).await;
    let said = bob.call("ask", json!({})).await;
    assert!(text(&said).contains(&answer("Bob")), "{}", text(&said));
    cancel.cancel();
    slow.await.expect("no panic");
    tokio::join!(ann.servers.close(), bob.servers.close());
}

#[tokio::test]
async fn both_sessions_hear_of_changed_lists() {
    let [ann, bob] = two("plain");
    tokio::join!(ann.connect(), bob.connect());
    let versions = [ann.servers.version(), bob.servers.version()];
    ann.call("grow", json!({"text": "prompts"})).await;
    while ann.servers.version() == versions[0] || bob.servers.version() == versions[1] {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for bench in [&ann, &bob] {
        assert!(bench.servers.prompts().iter().any(|prompt| prompt.name == "mcp:s:news"));
    }
    tokio::join!(ann.servers.close(), bob.servers.close());
}

#[tokio::test]
async fn a_session_that_wants_its_server_anew_leaves_the_old_one_to_others() {
    let [ann, bob] = two("plain");
    tokio::join!(ann.connect(), bob.connect());
    let server = ann.servers.find("s").expect("configured");
    server.retire();
    server.stop().await;
    assert!(server.connect(Wanted::Asked).await.is_ok());
    assert_eq!(started_and_ended(&ann), (2, 0));
    assert_eq!(text(&bob.call("echo", json!({})).await), "{}");
    bob.servers.close().await;
    assert_eq!(started_and_ended(&ann), (2, 1));
    ann.servers.close().await;
}

#[tokio::test]
async fn what_a_program_could_notice_is_not_shared() {
    let (directory, pool) = (Arc::new(tempfile::tempdir().expect("a directory")), Pool::default());
    let mut entry = entry(directory.path(), "plain");
    let one = session(&directory, &pool, json!({"s": entry.clone()}), "Ann");
    entry["env"]["MORE"] = json!("x");
    let other = session(&directory, &pool, json!({"s": entry.clone()}), "Bob");
    let nobody = Bench::sharing(directory.clone(), json!({"s": entry.clone()}), None, None, Some(pool.clone()));
    let unshared = Bench::sharing(directory.clone(), json!({"s": entry}), None, None, None);
    let all = [one, other, nobody, unshared];
    for bench in &all {
        bench.connect().await;
        assert_eq!(bench.state(), State::Ready);
    }
    assert_eq!(started_and_ended(&all[0]), (4, 0));
    for bench in &all {
        bench.servers.close().await;
    }
    assert_eq!(started_and_ended(&all[0]), (4, 4));
}
