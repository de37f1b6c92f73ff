//! Servers that ask the session's model.

use std::sync::{Arc, Mutex};

use pith_mcp::{Sample, SampleRequest, State, User};
use pith_protocol::host::{UiAnswer, UiMethod};
use pith_protocol::{AssistantMessage, Block, StopReason, Usage};
use serde_json::{Value, json};

use crate::bench::{self, Bench, entry, text};

/// A session whose model answers "4", and what it was asked.
fn sampling(behaviour: &str, consent: Value, ask: Option<Arc<dyn User>>) -> (Bench, Arc<Mutex<Vec<SampleRequest>>>) {
    let asked: Arc<Mutex<Vec<SampleRequest>>> = Arc::default();
    let seen = asked.clone();
    let sample: Sample = Arc::new(move |request| {
        seen.lock().expect("no panic").push(request);
        let answer = AssistantMessage {
            content: vec![Block::text("4")],
            model: "m".to_owned(),
            stop_reason: StopReason::Stop,
            usage: Usage { input: 5, output: 1, ..Usage::default() },
            ..AssistantMessage::default()
        };
        Box::pin(async move { Ok(answer) })
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut entry = entry(directory.path(), behaviour);
    entry["sampling"] = consent;
    (Bench::sampling(directory, json!({ "s": entry }), ask, Some(sample)), asked)
}

/// A user who answers whether servers may ask the model, and what was shown to them.
fn user(answer: bool) -> (Arc<dyn User>, Arc<Mutex<Vec<UiMethod>>>) {
    let shown: Arc<Mutex<Vec<UiMethod>>> = Arc::default();
    let seen = shown.clone();
    let ask = bench::user(move |dialog, _| {
        seen.lock().expect("no panic").push(dialog);
        Box::pin(async move { UiAnswer::Confirmed(answer) })
    });
    (ask, shown)
}

const ANSWER: &str = r#"{"content":{"text":"4","type":"text"},"model":"m","role":"assistant","stopReason":"endTurn"}"#;

/// The same JSON, whatever the order of its members.
fn sorted(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn servers_of_both_eras_get_an_answer_of_the_model_and_the_call_counts_it() {
    for behaviour in ["plain", "modern"] {
        let (bench, asked) = sampling(behaviour, json!("allow"), None);
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
        let output = bench.call("sample", json!({})).await;
        let said = text(&output);
        if behaviour == "plain" {
            assert_eq!(sorted(said), sorted(ANSWER));
        } else {
            let (responses, state) = said.rsplit_once(' ').expect("two parts");
            assert_eq!((&sorted(responses)["model"], state), (&sorted(ANSWER), "\"state-1\""));
        }
        assert_eq!(output.usage.map(|usage| (usage.input, usage.output)), Some((5, 1)));
        assert_eq!(bench.call("echo", json!({})).await.usage, None);
        let asked = asked.lock().expect("no panic").clone();
        assert_eq!((asked.len(), &*asked[0].system_prompt, asked[0].max_tokens), (1, "Be brief.", 50));
        assert!(bench.log().contains(r#""sampling":{}"#), "{}", bench.log());
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn the_user_sees_what_is_asked_and_may_refuse_it() {
    let (ask, shown) = user(true);
    let (bench, _) = sampling("plain", json!("ask"), Some(ask));
    bench.connect().await;
    assert_eq!(sorted(text(&bench.call("sample", json!({})).await)), sorted(ANSWER));
    let shown = shown.lock().expect("no panic").pop();
    let Some(UiMethod::Confirm { title, message, .. }) = shown else { panic!("{shown:?}") };
    assert_eq!(title, "s asks the model, for at most 50 tokens");
    assert_eq!(message, "system: Be brief.\n\nuser: What is 2 + 2?");
    bench.servers.close().await;
    for behaviour in ["plain", "modern"] {
        let (bench, asked) = sampling(behaviour, json!("ask"), Some(user(false).0));
        bench.connect().await;
        let output = bench.call("sample", json!({})).await;
        assert!(text(&output).contains("the user does not want this request"), "{}", text(&output));
        assert!(asked.lock().expect("no panic").is_empty());
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn nothing_is_announced_or_answered_unless_the_user_allows_it() {
    for (consent, ask) in [(Value::Null, Some(user(true).0)), (json!("ask"), None)] {
        for behaviour in ["plain", "modern"] {
            let (bench, asked) = sampling(behaviour, consent.clone(), ask.clone());
            bench.connect().await;
            let output = bench.call("sample", json!({})).await;
            assert!(text(&output).contains("sampling is not offered"), "{}", text(&output));
            assert!(!bench.log().contains("\"sampling\":"), "{}", bench.log());
            assert!(asked.lock().expect("no panic").is_empty());
            bench.servers.close().await;
        }
    }
}
