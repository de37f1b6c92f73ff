//! Which servers of a project are started: those that somebody has agreed to.

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::{entry, file, finish, home_answering, log, offered};
use crate::support::Scene;

const TOOLS: [&str; 3] = ["mcp__theirs__greet", "mcp__theirs__visit", "mcp__theirs__wait"];

#[test]
fn servers_of_an_untrusted_project_are_not_started() {
    let (model, home, server) = home_answering([Turn::text("fine"), Turn::text("fine")], |_| json!({}));
    home.write_file(".mcp.json", file(json!({"theirs": entry(&server)})));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!((offered(&scene, 0), log(&server, "pids")), (Vec::<String>::new(), String::new()));
    assert_eq!(left_out(&mut scene), "servers left out because the project is not trusted (pith trust): theirs");
    let mut approved = scene.again(&["--approve"]);
    approved.data(json!({"type": "prompt", "message": "go"}));
    approved.wait_type("agent_settled");
    assert_eq!(offered(&scene, 1), TOOLS);
    approved.finish();
    finish(scene, &server);
}

#[test]
fn a_server_that_comes_to_a_trusted_directory_later_is_not_started() {
    let (model, home, server) = home_answering(std::iter::repeat_n(Turn::text("fine"), 3), |_| json!({}));
    let above = home.work().parent().expect("above").canonicalize().expect("there");
    home.write_agent_file("trust.json", json!({above.to_str().expect("UTF-8"): true}).to_string());
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    scene.home.write_file(".mcp.json", file(json!({"theirs": entry(&server)})));
    let mut second = scene.again(&[]);
    second.data(json!({"type": "prompt", "message": "go"}));
    second.wait_type("agent_settled");
    assert_eq!((offered(&scene, 1), log(&server, "pids")), (Vec::<String>::new(), String::new()));
    second.finish();
    // Whoever answers the question about trust agrees to what is there.
    std::fs::remove_file(scene.home.agent().join("trust.json")).expect("there");
    let mut asked = scene.again(&[]);
    asked.data(json!({"type": "get_state", "ui": true}));
    let question = asked.wait_type("extension_ui_request");
    asked.send(json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    asked.data(json!({"type": "prompt", "message": "go"}));
    asked.wait_type("agent_settled");
    assert_eq!(offered(&scene, 2), TOOLS);
    asked.finish();
    finish(scene, &server);
}

#[test]
fn a_file_that_comes_while_pith_runs_is_not_trusted_because_there_was_none() {
    let (model, home, server) = home_answering([Turn::text("fine"), Turn::text("fine")], |_| json!({}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    scene.home.write_file(".mcp.json", file(json!({"theirs": entry(&server)})));
    // The host's servers change, so all files are read again.
    scene.command(json!({"type": "set_mcp_servers", "servers": {}}));
    scene.run("go on");
    assert_eq!((offered(&scene, 1), log(&server, "pids")), (Vec::<String>::new(), String::new()));
    assert_eq!(left_out(&mut scene), "servers left out because the project is not trusted (pith trust): theirs");
    scene.finish();
}

/// What is said of servers that are not used.
fn left_out(scene: &mut Scene) -> Value {
    let found = scene.host.data(json!({"type": "get_diagnostics"}));
    let found = found["diagnostics"].as_array().expect("a list");
    found.iter().find(|found| found["code"] == "mcp_config").expect("reported")["message"].clone()
}
