//! Servers that ask the user something during a call.

use std::sync::Arc;
use std::time::Duration;

use pith_agent::ToolContext;
use pith_mcp::Ask;
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, entry, text};

/// A session whose user answers every dialog of a kind in the same way.
fn answered(behaviour: &str) -> Bench {
    let ask: Ask = Arc::new(|dialog| {
        let answer = match dialog {
            UiMethod::Input { .. } => "Ann".into(),
            UiMethod::Select { .. } => "Yes".into(),
            _ => UiAnswer::Cancelled,
        };
        Box::pin(async move { answer })
    });
    asking(behaviour, Some(ask))
}

/// Calls may take a minute.
fn asking(behaviour: &str, ask: Option<Ask>) -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    let mut entry = entry(directory.path(), behaviour);
    entry["requestTimeoutMs"] = json!(60_000);
    Bench::asking(directory, json!({ "s": entry }), ask)
}

#[tokio::test]
async fn servers_of_both_eras_get_the_answer_of_the_user() {
    let accepted = r#"{"action":"accept","content":{"name":"Ann","sure":true}}"#;
    let bench = answered("plain");
    bench.connect().await;
    assert_eq!(text(&bench.call("ask", json!({})).await), accepted);
    bench.servers.close().await;
    let bench = answered("modern");
    bench.connect().await;
    let output = bench.call("ask", json!({})).await;
    let said = text(&output);
    assert!(said.contains(&format!(r#""who":{accepted}"#)) && said.ends_with("\"state-1\""), "{said}");
    assert!(said.contains(r#""where":{"roots":[{"uri":"file:///"#), "{said}");
    assert!(said.contains(r#"{"uri":"file:///srv/more%20things","name":"more things"}]"#), "{said}");
    bench.servers.close().await;
}

#[tokio::test]
async fn without_a_user_nothing_is_announced_and_questions_are_declined() {
    for behaviour in ["plain", "modern"] {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        let output = bench.call("ask", json!({})).await;
        assert!(text(&output).contains(r#"{"action":"decline"}"#), "{}", text(&output));
        assert!(!bench.log().contains("\"elicitation\":"), "{}", bench.log());
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn a_call_does_not_time_out_while_the_user_thinks() {
    let ask: Ask = Arc::new(move |_| {
        Box::pin(async move {
            // The user thinks for longer than a call may take; whoever waits for that moment gets to run.
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(90)).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            tokio::time::resume();
            UiAnswer::Cancelled
        })
    });
    let bench = asking("plain", Some(ask));
    bench.connect().await;
    let output = bench.call("ask", json!({})).await;
    assert_eq!(text(&output), r#"{"action":"cancel"}"#);
    bench.servers.close().await;
}

#[tokio::test]
async fn an_aborted_call_takes_its_question_back() {
    struct Gone(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let cancel = CancellationToken::new();
    let (gone, mut taken_back) = tokio::sync::mpsc::unbounded_channel();
    let on_question = cancel.clone();
    let ask: Ask = Arc::new(move |_| {
        let gone = Gone(gone.clone());
        let on_question = on_question.clone();
        Box::pin(async move {
            let _gone = gone;
            on_question.cancel();
            std::future::pending().await
        })
    });
    let bench = asking("modern", Some(ask));
    bench.connect().await;
    let context = ToolContext { call_id: "1".into(), cancel, update: Arc::new(|_| {}), trace: None };
    let output = bench.tool("mcp__s__ask").run(Map::new(), context).await;
    assert_eq!(text(&output), "Operation aborted");
    taken_back.recv().await.expect("the question is dropped");
    bench.servers.close().await;
}
