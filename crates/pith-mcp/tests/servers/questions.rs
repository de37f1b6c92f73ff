//! Servers that ask the user something during a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pith_agent::ToolContext;
use pith_mcp::{State, User, Wanted};
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, entry, text, user};

/// A session whose user answers every dialog of a kind in the same way.
fn answered(behaviour: &str) -> Bench {
    let ask = user(|dialog, call| {
        assert_eq!(call, Some("1"), "the call during which the server asks");
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
fn asking(behaviour: &str, user: Option<Arc<dyn User>>) -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    let mut entry = entry(directory.path(), behaviour);
    entry["requestTimeoutMs"] = json!(60_000);
    Bench::asking(directory, json!({ "s": entry }), user)
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
    let ask = user(move |_, _| {
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
    let ask = user(move |_, _| {
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

/// A user who is asked for values, and how often that has happened.
fn asked_for_values(answer: Option<&'static str>) -> (Arc<dyn User>, Arc<Mutex<Vec<UiMethod>>>) {
    let shown: Arc<Mutex<Vec<UiMethod>>> = Arc::default();
    let seen = shown.clone();
    let asked = user(move |dialog, _| {
        seen.lock().expect("no panic").push(dialog);
        Box::pin(async move { answer.into() })
    });
    (asked, shown)
}

/// Two servers of the host that need the same value, and one that has it from a variable.
fn needing(user: Option<Arc<dyn User>>) -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    let entry = |value: &str| {
        let mut entry = entry(directory.path(), "plain");
        entry["env"] = json!({"KEY": value, "WHERE": "Bearer ${input:key}"});
        entry
    };
    let (needs, mut has) = (entry("${input:key}"), entry("${input:my-secret}"));
    has["env"]["WHERE"] = json!("here");
    Bench::asking(directory, json!({"s": needs.clone(), "t": needs, "u": has}), user)
}

#[tokio::test]
async fn a_value_that_servers_need_is_asked_for_once_in_a_session() {
    // What is typed is a value, whatever it looks like.
    let (user, shown) = asked_for_values(Some("!echo ${HOME}"));
    let bench = needing(Some(user));
    bench.connect().await;
    for tool in ["mcp__s__environment", "mcp__t__environment"] {
        let said = bench.run(tool, json!({})).await;
        assert!(text(&said).contains("KEY=!echo ${HOME}\n"), "{}", text(&said));
        assert!(text(&said).contains("WHERE=Bearer !echo ${HOME}"), "{}", text(&said));
    }
    assert!(
        text(&bench.run("mcp__u__environment", json!({})).await).contains("KEY=x\n"),
        "from the variable MY_SECRET"
    );
    let server = bench.servers.find("s").expect("configured");
    server.stop().await;
    assert!(server.connect(Wanted::Asked).await.is_ok());
    let dialogs = std::mem::take(&mut *shown.lock().expect("no panic"));
    let title = |server: &str| format!("{server} needs key");
    let [UiMethod::Input { title: asked, .. }] = dialogs.as_slice() else { panic!("{dialogs:?}") };
    assert!([title("s"), title("t")].contains(asked), "{asked}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_whose_value_nobody_gives_needs_it_until_somebody_asks_for_the_server() {
    let bench = needing(None);
    bench.connect().await;
    assert_eq!((bench.state(), bench.error().as_str()), (State::NeedsInput, "needs input key: set the variable KEY"));
    bench.servers.close().await;
    let (user, shown) = asked_for_values(None);
    let bench = needing(Some(user));
    let server = bench.servers.find("s").expect("configured");
    let n_asked = || shown.lock().expect("no panic").len();
    for (wanted, n_questions) in [(Wanted::Used, 1), (Wanted::Used, 1), (Wanted::Asked, 2)] {
        let failure = server.connect(wanted).await.err().expect("nothing was said");
        assert_eq!((failure.state, failure.why.as_str()), (State::NeedsInput, "needs input key, which was not given"));
        assert_eq!(n_asked(), n_questions);
    }
    bench.servers.close().await;
}

#[tokio::test]
async fn inputs_of_a_file_say_what_the_user_is_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = entry(directory.path(), "plain");
    server["env"] = json!({"PLACE": "${input:place}"});
    let inputs = json!([{"id": "place", "type": "pickString", "description": "a place", "options": ["eu", "us"]},
        {"id": "other", "type": "promptString"}]);
    let file = json!({"servers": {"s": server}, "inputs": inputs}).to_string();
    std::fs::create_dir_all(directory.path().join("agent")).expect("made");
    std::fs::write(directory.path().join("agent/mcp.json"), file).expect("written");
    let (user, shown) = asked_for_values(Some("us"));
    let bench = Bench::asking(directory, json!({}), Some(user));
    bench.connect().await;
    assert!(text(&bench.call("environment", json!({})).await).contains("PLACE=us"));
    let dialogs = std::mem::take(&mut *shown.lock().expect("no panic"));
    let [UiMethod::Select { title, options, .. }] = dialogs.as_slice() else { panic!("{dialogs:?}") };
    assert_eq!((title.as_str(), options.as_slice()), ("s needs a place", &["eu".to_owned(), "us".to_owned()][..]));
    bench.servers.close().await;
}
