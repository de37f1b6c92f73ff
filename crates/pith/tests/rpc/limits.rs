//! Limits of a session as a host sees them: counted again after a kill, and commands that use more than they may.

use pith_testkit::{Block, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, of_type};

fn command(command: &str) -> Turn {
    Turn::blocks([Block::call("bash", json!({ "command": command }))])
}

#[test]
fn counters_are_the_same_after_a_kill() {
    let limits = json!({"limits": {"turns": 100, "tokens": 1_000_000, "outputTokens": 1_000_000}});
    let mut scene = Scene::with_settings([command("echo hi"), Turn::text("done"), Turn::text("on")], &limits);
    scene.run("go");
    let state = scene.state();
    let before = state["limits"].clone();
    assert_eq!(before[0], json!({"name": "turns", "used": 2, "max": 100}));
    scene.host.kill();
    let mut host = scene.again(&["--session", state["sessionFile"].as_str().expect("a file")]);
    assert_eq!(host.data(json!({"type": "get_state"}))["limits"], before);
    host.finish();
}

#[test]
fn a_command_that_passes_a_limit_ends_and_the_work_goes_on() {
    let limits = json!({"limits": {"outputMb": 1, "processes": 50}});
    let mut scene = Scene::with_settings([command("yes"), Turn::text("I see")], &limits);
    let frames = scene.run("go");
    let reached = of_type(&frames, "limit_reached");
    assert_eq!((&reached[0]["limit"], &reached[0]["phase"]), (&json!("outputMb"), &json!("hard")));
    let end = of_type(&frames, "tool_execution_end")[0];
    let text = end["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.ends_with("Command ended: limits.outputMb (1)"), "{text}");
    let audit = scene.data(json!({"type": "get_audit"}));
    let record: &Value = &audit["entries"][0]["data"];
    assert_eq!((&record["kind"], &record["toolCallId"]), (&json!("limit"), &end["toolCallId"]));
    scene.finish();
}

#[test]
fn a_frozen_command_goes_on_after_resume() {
    let mut scene =
        Scene::new([command("echo begun; while [ ! -e go ]; do sleep 0.01; done; echo over"), Turn::text("I see")]);
    scene.prompt("go");
    scene.wait_output("begun");
    scene.command(json!({"type": "pause", "freeze": true}));
    assert_eq!(scene.state()["isPaused"], true);
    scene.home.write_file("go", "");
    scene.command(json!({"type": "resume"}));
    let end = scene.host.wait_type("tool_execution_end");
    assert_eq!(end["result"]["content"][0]["text"], "begun\nover\n");
    scene.host.wait_type("agent_settled");
    assert!(scene.state().get("isPaused").is_none());
    scene.finish();
}
