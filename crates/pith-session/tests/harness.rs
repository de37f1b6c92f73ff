//! What the harness itself guarantees to tests.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use pith_agent::ToolOutput;
use serde_json::json;
use std::time::Duration;
use support::{Harness, Script, Turn};

#[tokio::test(start_paused = true)]
async fn a_steering_message_is_delivered_after_the_answer_it_interrupted() {
    let mut host = Harness::new([Turn::gated("first"), Turn::text("second")]);
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    let placed = host.data(json!({"type": "steer", "message": "wait"})).await;
    assert_eq!(placed["disposition"], "queued");
    host.model.release();
    host.wait_type("agent_settled").await;
    assert_eq!(host.model.calls().len(), 2);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn retries_take_no_real_time() {
    let began = std::time::Instant::now();
    let mut host = Harness::new([Turn::overloaded("503 one"), Turn::overloaded("503 two"), Turn::text("there")]);
    let started = tokio::time::Instant::now();
    host.run("go").await;
    assert_eq!(host.count(json!({"type": "auto_retry_start"})), 2);
    assert!(started.elapsed() >= Duration::from_secs(6), "two waits of two and four seconds");
    assert!(began.elapsed() < Duration::from_secs(5), "on another clock");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_first_matching_frame() {
    let mut host = Harness::new([Turn::overloaded("503 one")]);
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_type("auto_retry_start").await;
    assert_eq!(host.ask(json!({"type": "abort_retry"})).await["success"], true);
    let end = host.wait_type("auto_retry_end").await;
    assert_eq!(end["finalError"], "Retry cancelled");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_can_be_sent_between_two_frames() {
    let mut host = Harness::new([Turn::text("one").and_gate().and_text("two")]);
    let pattern = json!({"type": "message_update", "assistantMessageEvent": {"type": "text_end", "content": "one"}});
    let abort = host.send_when(pattern, json!({"type": "abort"}));
    host.send(json!({"type": "prompt", "message": "go"}));
    host.response(&abort).await;
    let end = host.frames().into_iter().find(|frame| frame["type"] == "agent_end").unwrap();
    assert_eq!(end["messages"][1]["stopReason"], "aborted");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_suspends_the_answer() {
    let mut host = Harness::new([Turn::text("one").and_text("two")]);
    host.reader.stop();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.settle().await;
    assert_eq!(host.count(json!({"type": "message_update"})), 0);
    host.reader.resume();
    host.wait_type("agent_settled").await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn extensions_are_given_as_text() {
    let gate = "export default (pi) => pi.on('tool_call', async (event, ctx) => {
        if (!(await ctx.ui.confirm('Run it?', event.toolName))) return { block: true, reason: 'refused' };
    });";
    let mut host = Harness::builder([Turn::call("echo", json!({"text": "hi"}))])
        .tool("echo", |arguments, _| async move { ToolOutput::text(arguments["text"].to_string()) })
        .extension("gate.ts", gate)
        .start()
        .await;
    host.send(json!({"type": "prompt", "message": "go"}));
    let dialog = host.wait(json!({"method": "confirm"})).await;
    host.answer(&dialog, json!({"confirmed": false}));
    let end = host.wait_type("tool_execution_end").await;
    assert_eq!(end["result"]["content"][0]["text"], "refused");
    host.wait_type("agent_settled").await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_host_answers_calls_of_its_own_tools() {
    let mut host = Harness::new([Turn::call("lookup", json!({"name": "x"}))]);
    let tool = json!({"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}});
    host.data(json!({"type": "set_host_tools", "tools": [tool]})).await;
    host.send(json!({"type": "prompt", "message": "go"}));
    let call = host.wait_type("host_tool_call").await;
    assert_eq!(call["arguments"], json!({"name": "x"}));
    host.answer(&call, json!({"result": {"content": [{"type": "text", "text": "found"}]}}));
    let end = host.wait_type("tool_execution_end").await;
    assert_eq!(end["result"]["content"][0]["text"], "found");
    host.wait_type("agent_settled").await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn commands_of_the_host_are_real_processes() {
    let mut host = Harness::builder([]).saved().open();
    let data = host.data(json!({"type": "bash", "command": "echo real"})).await;
    assert_eq!(data["output"], "real\n");
    host.run("go").await;
    let file = host.state().await["sessionFile"].as_str().unwrap().to_owned();
    assert!(std::fs::read_to_string(file).unwrap().contains("echo real"));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn summaries_have_a_script_of_their_own() {
    let script = Script::of([Turn::text(&"word ".repeat(2000))]).summaries([Turn::text("what was said")]);
    let mut host = Harness::builder(script).window(8000).open();
    host.run(&"long ".repeat(2000)).await;
    let data = host.data(json!({"type": "compact"})).await;
    assert!(data["summary"].as_str().unwrap().ends_with("what was said"), "{data}");
    host.finish().await;
}

#[test]
fn the_example_in_the_docs_is_a_test() {
    let docs = include_str!("../../../docs/testing.md");
    let example = docs.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    assert!(include_str!("harness.rs").contains(example), "this file has no such test:\n{example}");
}
