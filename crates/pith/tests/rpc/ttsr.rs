//! Stream rules, beyond what the `xcsh-ttsr` transcript shows.

use pith_testkit::{Block, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_closed, of_type, sent_texts};

/// A session with rules, each with a name, a scope and a pattern.
fn scene(rules: &[(&str, &str, &str)], turns: impl IntoIterator<Item = Turn>) -> Scene {
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&server);
    for (name, scope, pattern) in rules {
        let text = format!("---\ncondition: '{pattern}'\nscope: ['{scope}']\n---\nAdvice of {name}.\n");
        home.write_agent_file(&format!("rules/{name}.md"), text);
    }
    Scene::in_home(server, home, |builder| builder.args(["--dialect", "xcsh"]))
}

fn triggered(frames: &[Value]) -> Vec<String> {
    let names = |event: &&Value| {
        event["rules"]
            .as_array()
            .expect("rules")
            .iter()
            .map(|rule| rule["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
            .join("+")
    };
    of_type(frames, "ttsr_triggered").iter().map(names).collect()
}

#[test]
fn the_model_gets_the_rule_instead_of_its_stopped_answer() {
    let mut scene =
        scene(&[("calm", "text", "!!!")], [Turn::text("great!!! and more").hold_after(2), Turn::text("fine")]);
    let frames = scene.run("go");
    assert_eq!(triggered(&frames), ["calm"]);
    let sent = sent_texts(&scene.server.wait_request(1).body);
    assert!(sent.contains("Advice of calm.") && !sent.contains("great"), "{sent}");
    assert_eq!(of_type(&frames, "agent_settled").len(), 1);
    scene.finish();
}

#[test]
fn an_answer_that_came_all_at_once_ends_at_the_match_too() {
    let call = Block::call("bash", json!({"command": "touch executed"}));
    let blocks = [Block::text("great!!! and more than anybody wants"), call];
    let turns = [Turn::blocks(blocks).chunk(4), Turn::text("fine")];
    let mut scene = scene(&[("calm", "text", "!!!")], turns);
    let frames = scene.run("go");
    assert_eq!(triggered(&frames), ["calm"]);
    let ends = of_type(&frames, "message_end");
    let stopped = &ends.iter().find(|frame| frame["message"]["role"] == "assistant").expect("an answer")["message"];
    assert_eq!(
        (&stopped["stopReason"], &stopped["errorMessage"]),
        (&json!("aborted"), &json!("TTSR matched rule: calm"))
    );
    let said = stopped["content"][0]["text"].as_str().expect("text");
    assert!(said.starts_with("great!!!") && said.len() < 14 && stopped["content"][1].is_null(), "{stopped}");
    let roles: Vec<_> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "custom", "assistant"]);
    assert_eq!(scene.home.read_file("executed"), None);
    assert_closed(&frames);
    scene.finish();
}

#[test]
fn rules_broken_by_one_delta_are_added_together_and_others_later() {
    let rules = [("a", "text", "alpha"), ("b", "text", "beta"), ("c", "text", "gamma")];
    let turns = [
        Turn::text("alphabeta and on").chunk(20).hold_after(1),
        Turn::text("gamma then").chunk(20).hold_after(1),
        Turn::text("alpha gamma, allowed by now"),
    ];
    let mut scene = scene(&rules, turns);
    assert_eq!(triggered(&scene.run("go")), ["a+b", "c"]);
    scene.finish();
}

#[test]
fn a_call_that_a_rule_stops_is_not_executed() {
    let call = Block::call("bash", json!({"command": "rm -rf precious; touch executed"}));
    let mut scene = scene(
        &[("careful", "tool:bash", "rm -rf")],
        [Turn::blocks([call]).chunk(8).hold_after(4), Turn::text("sorry")],
    );
    let frames = scene.run("go");
    assert_eq!(triggered(&frames), ["careful"]);
    assert_eq!(scene.home.read_file("executed"), None);
    // The synthetic result of the call is no longer part of the conversation, like the call.
    let sent = scene.server.wait_request(1).body.to_string();
    assert!(!sent.contains("tool_result") && sent.contains("Advice of careful."), "{sent}");
    assert_closed(&frames);
    scene.finish();
}

#[test]
fn an_answer_that_ends_with_the_match_is_followed_by_the_rule() {
    let mut scene = scene(&[("end", "text", "the end$")], [Turn::text("this is the end"), Turn::text("once more")]);
    let frames = scene.run("go");
    assert_eq!(triggered(&frames), ["end"]);
    assert!(sent_texts(&scene.server.wait_request(1).body).contains("Advice of end."));
    assert_eq!(scene.server.requests().len(), 2);
    scene.finish();
}

#[test]
fn rules_apply_again_in_a_new_session() {
    let turns = [Turn::text("bad"), Turn::text("bad"), Turn::text("bad"), Turn::text("good")];
    let mut scene = scene(&[("r", "text", "bad")], turns);
    assert_eq!(triggered(&scene.run("go")).len(), 1);
    scene.command(json!({"type": "new_session"}));
    assert_eq!(triggered(&scene.run("go")).len(), 1);
    scene.finish();
}

#[test]
fn rules_that_cannot_be_used_are_reported_and_can_be_switched_off() {
    let server = ModelServer::start(Script::of([Turn::text("bad")]));
    let home = TempHome::for_server(&server);
    home.write_agent_file("rules/broken.md", "---\ncondition: '('\n---\nx");
    home.write_agent_file("rules/fine.md", "---\ncondition: bad\n---\nx");
    let mut scene = Scene::in_home(server, home, |builder| builder.args(["--dialect", "xcsh", "--no-rules"]));
    assert!(triggered(&scene.run("go")).is_empty());
    let (server, home) = (ModelServer::start(Script::of([])), scene.home.clone());
    scene.finish();
    let scene = Scene::in_home(server, home, |builder| builder.args(["--dialect", "xcsh"]));
    scene.wait_stderr(|text| text.contains("broken.md is not used"));
    scene.finish();
}

#[test]
fn rules_of_a_project_are_used_only_if_it_is_trusted() {
    let n_hits = |argument: &str| {
        let server = ModelServer::start(Script::of([Turn::text("bad"), Turn::text("good")]));
        let home = TempHome::for_server(&server);
        home.write_file(".xcsh/rules/local.md", "---\ncondition: bad\n---\nx");
        let mut scene = Scene::in_home(server, home, |builder| builder.args(["--dialect", "xcsh", argument]));
        let frames = scene.run("go");
        scene.finish();
        triggered(&frames).len()
    };
    assert_eq!((n_hits("--approve"), n_hits("--no-approve")), (1, 0));
}

#[test]
fn reload_reads_the_rules_again() {
    let mut scene = Scene::xcsh([Turn::text("use a goto here"), Turn::text("use a goto here"), Turn::text("better")]);
    assert_eq!(of_type(&scene.run("go"), "ttsr_triggered").len(), 0);
    scene.home.write_agent_file("rules/goto.md", "---\ncondition: goto\n---\nNo goto.");
    scene.command(json!({"type": "reload"}));
    assert_eq!(of_type(&scene.run("go"), "ttsr_triggered").len(), 1);
    scene.finish();
}
