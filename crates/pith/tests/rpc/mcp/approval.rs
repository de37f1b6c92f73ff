//! Whether calls of servers' tools run: what the user is asked, and what is approved in advance.

use std::time::Instant;

use pith_testkit::{Turn, timeout};
use serde_json::{Value, json};

use super::{entry, finish, home_answering, log};
use crate::support::{Scene, texts};

/// A session that asks, in which the model calls a tool that may destroy something.
fn scene(more: Value) -> (Scene, std::path::PathBuf) {
    let turns = [Turn::call("mcp__shell__wait", json!({"fail": true})), Turn::text("done")];
    let (model, home, server) = home_answering(turns, |server| {
        let mut entry = entry(server);
        for (key, value) in more.as_object().expect("an object") {
            entry[key] = value.clone();
        }
        json!({"shell": entry})
    });
    (Scene::in_home(model, home, |builder| builder.args(["--permission-mode", "ask"])), server)
}

#[test]
fn the_user_sees_server_tool_and_arguments_before_a_call_runs() {
    let (mut scene, server) = scene(json!({"approveTools": ["greet"]}));
    scene.prompt("go");
    let question = scene.wait_type("extension_ui_request").to_string().replace('\\', "");
    for part in ["wait of the server shell", r#"{"fail":true}"#, "It may destroy something."] {
        assert!(question.contains(part), "{part}: {question}");
    }
    assert!(!log(&server, "log").contains("tools/call"), "nobody has agreed yet");
    scene.command(json!({"type": "abort"}));
    finish(scene, &server);
}

#[test]
fn a_call_that_the_user_has_approved_in_advance_runs() {
    let (mut scene, server) = scene(json!({"approveTools": ["wa*"]}));
    scene.run("go");
    let result = scene.tool_results().remove(0);
    assert_eq!((texts(&result["content"]), &result["isError"]), ("no".to_owned(), &json!(true)));
    let is_question = |frame: &Value| frame["type"] == "extension_ui_request";
    assert!(!scene.host.frames().iter().any(is_question));
    finish(scene, &server);
}

#[test]
fn a_host_waits_for_its_servers_and_reads_their_remarks_without_secrets() {
    let mut scene = Scene::new([Turn::text("fine")]);
    let server = pith_testkit::shell_server(&scene.home.agent());
    let mut entry = entry(&server);
    entry["env"] = json!({"TOKEN": "hush-4711-hush"});
    let set = scene.host.data(json!({"type": "set_mcp_servers", "servers": {"shell": entry}, "wait": true}));
    assert_eq!(set["servers"][0]["state"], "ready");
    let remarks = |scene: &mut Scene| {
        let found = scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
        let found = found.as_array().expect("a list").iter().find(|found| found["code"] == "mcp_stderr").cloned();
        found.map(|found| found["message"].as_str().expect("a text").to_owned())
    };
    // Its stderr is read beside its answers.
    let deadline = Instant::now() + timeout();
    let message = loop {
        if let Some(message) = remarks(&mut scene) {
            break message;
        }
        assert!(Instant::now() < deadline, "nothing is told");
    };
    assert_eq!(message, "server \"shell\": a remark with [redacted]");
    finish(scene, &server);
}
