//! Tools the host offers, beyond what the `host-tool*` transcripts show.

use pith_testkit::{Block, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, texts};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "does things", "parameters": {"type": "object"}})
}

fn set(scene: &mut Scene, tools: Value) {
    scene.command(json!({"type": "set_host_tools", "tools": tools}));
}

fn answer(scene: &Scene, call: &Value, text: &str) {
    scene.send(
        json!({"type": "host_tool_result", "id": call["id"], "result": {"content": [{"type": "text", "text": text}]}}),
    );
}

/// The names of the tools the model was offered with its n-th request.
fn offered(scene: &Scene, request: usize) -> Vec<String> {
    let body = scene.server.wait_request(request).body;
    let tools = body["tools"].as_array().expect("tools are a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn calls_run_side_by_side_and_are_told_apart_by_id() {
    let calls = [
        Block::call("host", json!({"n": 1})),
        Block::call("host", json!({"n": 2})),
        Block::call("bash", json!({"command": "echo mine"})),
    ];
    let mut scene = Scene::new([Turn::blocks(calls), Turn::text("done")]);
    set(&mut scene, json!([tool("host")]));
    scene.prompt("go");
    let first = scene.wait_type("host_tool_call");
    let second = scene.wait_type("host_tool_call");
    assert_eq!((&first["arguments"]["n"], &second["arguments"]["n"]), (&json!(1), &json!(2)));
    assert_ne!(first["id"], second["id"]);
    answer(&scene, &second, "two");
    scene.wait(|frame| frame["type"] == "tool_execution_end" && frame["toolCallId"] == second["toolCallId"]);
    answer(&scene, &first, "one");
    scene.wait_type("agent_settled");
    let results: Vec<_> = scene.tool_results().iter().map(|result| texts(&result["content"])).collect();
    assert_eq!(results, ["one", "two", "mine\n"], "results follow the order of the calls");
    scene.finish();
}

#[test]
fn a_set_replaced_in_a_run_counts_from_the_next_request_and_leaves_running_calls_alone() {
    let mut scene = Scene::new([Turn::call("old", json!({})), Turn::call("old", json!({})), Turn::text("done")]);
    set(&mut scene, json!([tool("old")]));
    scene.prompt("go");
    let call = scene.wait_type("host_tool_call");
    set(&mut scene, json!([tool("new")]));
    answer(&scene, &call, "from the old tool");
    scene.wait_type("agent_settled");
    let last = |names: Vec<String>| names.last().cloned().expect("tools");
    assert_eq!((last(offered(&scene, 0)), last(offered(&scene, 1))), ("old".to_owned(), "new".to_owned()));
    let results: Vec<_> = scene.tool_results().iter().map(|result| texts(&result["content"])).collect();
    assert_eq!(results, ["from the old tool", "Tool old not found"]);
    scene.finish();
}

#[test]
fn hidden_tools_and_excluded_ones_are_not_offered() {
    let mut scene = Scene::with(Script::of([Turn::text("done")]), |builder| {
        builder.args(["--exclude-tools", "barred", "--no-tools"])
    });
    let mut hidden = tool("hidden");
    hidden["hidden"] = json!(true);
    set(&mut scene, json!([tool("shown"), hidden, tool("barred")]));
    scene.run("go");
    assert_eq!(offered(&scene, 0), ["shown"]);
    scene.finish();
}

#[test]
fn a_host_that_disconnects_fails_its_calls() {
    let mut scene = Scene::new([Turn::call("host", json!({}))]);
    set(&mut scene, json!([tool("host")]));
    scene.prompt("go");
    scene.wait_type("host_tool_call");
    let home = scene.home.clone();
    scene.finish();
    let session = home.sessions().remove(0);
    let result =
        session.messages().into_iter().find(|message| message["role"] == "toolResult").expect("recorded").clone();
    let text = "RPC client disconnected before host tool execution completed";
    assert_like(&result, &json!({"isError": true, "content": [{"type": "text", "text": text}]}));
}

#[test]
fn a_new_session_in_the_middle_of_a_call_withdraws_it_and_keeps_the_tools() {
    let mut scene = Scene::new([Turn::call("host", json!({})), Turn::text("fresh")]);
    set(&mut scene, json!([tool("host")]));
    scene.prompt("go");
    let call = scene.wait_type("host_tool_call");
    scene.command(json!({"type": "new_session"}));
    let frames = scene.frames();
    assert_order(
        &frames,
        &[
            json!({"type": "host_tool_cancel", "targetId": call["id"]}),
            json!({"type": "tool_execution_end", "isError": true}),
            json!({"type": "agent_settled", "aborted": true}),
            json!({"type": "response", "command": "new_session", "success": true}),
        ],
    );
    scene.run("again");
    assert!(offered(&scene, 1).contains(&"host".to_owned()));
    scene.finish();
}

/// A run whose host tool has answered with this.
fn with_result(content: &Value) -> Scene {
    let mut scene = Scene::new([Turn::call("host", json!({})), Turn::text("seen")]);
    set(&mut scene, json!([tool("host")]));
    scene.prompt("go");
    let call = scene.wait_type("host_tool_call");
    scene.send(json!({"type": "host_tool_result", "id": call["id"], "result": {"content": content}}));
    scene
}

#[test]
fn an_invalid_image_becomes_a_note() {
    let content = json!([{"type": "image", "data": "bm90IGEgcGljdHVyZQ==", "mimeType": "image/png"}]);
    let mut scene = with_result(&content);
    let end = scene.wait_type("tool_execution_end");
    let blocks = end["result"]["content"].as_array().expect("blocks");
    assert!(blocks.len() == 1 && blocks[0]["type"] == "text", "{end}");
    scene.wait_type("agent_settled");
    scene.finish();
}

#[test]
fn pictures_of_the_host_reach_the_model() {
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let content =
        json!([{"type": "text", "text": "a picture"}, {"type": "image", "data": pixel, "mimeType": "image/png"}]);
    let mut scene = with_result(&content);
    scene.wait_type("agent_settled");
    assert!(scene.server.wait_request(1).body.to_string().contains(pixel));
    scene.finish();
}
