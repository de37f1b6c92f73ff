//! What the model that writes a summary is shown, and how much it may write.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use pith_protocol::{LlmCall, Message};
use serde_json::json;
use support::{Harness, Turn, is_summary};

fn long(n_words: usize) -> String {
    "word ".repeat(n_words)
}

/// Returns the requests for summaries, and their texts.
fn summaries(host: &Harness) -> Vec<(LlmCall, String)> {
    let text = |call: &LlmCall| match &*call.messages[0] {
        Message::User(user) => user.content.text(),
        other => panic!("a summary is asked for by a user message, not {other:?}"),
    };
    host.model.calls().into_iter().filter(is_summary).map(|call| (call.clone(), text(&call))).collect()
}

#[tokio::test(start_paused = true)]
async fn the_focus_of_a_compaction_reaches_every_summary() {
    let turns = [Turn::text(&long(1500)), Turn::call("look", json!({})), Turn::text(&long(3000))];
    let mut host = Harness::builder(turns)
        .window(8000)
        .tool("look", |_, _| async { pith_agent::ToolOutput::text(long(1500)) })
        .open();
    host.run(&long(500)).await;
    host.run(&long(500)).await;
    host.data(json!({"type": "compact", "customInstructions": "the blue whale"})).await;
    let asked = summaries(&host);
    assert!(asked.iter().any(|(_, text)| text.contains("the beginning of a turn")), "a turn was cut");
    for (call, text) in &asked {
        assert_eq!(call.max_tokens, None, "as long as the model can write");
        assert!(text.ends_with("Additional focus of this summary: the blue whale"), "{text}");
    }
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn summaries_do_not_quote_thinking() {
    let mut host = Harness::builder([Turn::thinking("a secret plan").and_text(&long(3000))]).window(8000).open();
    host.run("go").await;
    let target = host.data(json!({"type": "get_entries"})).await["entries"][0]["id"].clone();
    host.data(json!({"type": "navigate_tree", "targetId": target, "summarize": true})).await;
    host.run(&long(3000)).await;
    host.data(json!({"type": "compact"})).await;
    let asked = summaries(&host);
    assert!(asked.len() > 1);
    assert!(asked.iter().all(|(_, text)| !text.contains("secret plan")), "{asked:?}");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_summary_of_a_branch_leaves_out_answers_that_were_retried() {
    let turns = [Turn::text("half an answer").and_overload("503"), Turn::text("a whole answer")];
    let mut host = Harness::new(turns);
    host.run("go").await;
    let target = host.data(json!({"type": "get_entries"})).await["entries"][0]["id"].clone();
    host.data(json!({"type": "navigate_tree", "targetId": target, "summarize": true})).await;
    let [(call, text)] = &summaries(&host)[..] else { panic!("one summary") };
    assert!(text.contains("a whole answer") && !text.contains("half an answer"), "{text}");
    assert_eq!(call.max_tokens, None, "as long as the model can write");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_level_is_recorded_on_a_branch_that_says_another_one() {
    let mut host = Harness::builder([]).saved().open();
    host.run("one").await;
    let leaf = host.data(json!({"type": "get_entries"})).await["leafId"].clone();
    host.run("two").await;
    host.data(json!({"type": "set_thinking_level", "level": "high"})).await;
    host.data(json!({"type": "navigate_tree", "targetId": leaf})).await;
    host.run("three").await;
    let entries = host.data(json!({"type": "get_entries"})).await["entries"].as_array().unwrap().clone();
    let at = |text: &str| {
        let has = |entry: &serde_json::Value| entry["type"] == "message" && entry["message"].to_string().contains(text);
        entries.iter().position(has).unwrap()
    };
    let recorded = &entries[at("\"three\"") - 1];
    assert_eq!((&recorded["type"], &recorded["thinkingLevel"]), (&json!("thinking_level_change"), &json!("high")));
    host.run("four").await;
    let n_levels =
        host.data(json!({"type": "get_entries"})).await["entries"].to_string().matches("level_change").count();
    assert_eq!(n_levels, 3, "the first, the one that was set, the one of the branch");
    host.finish().await;
}
