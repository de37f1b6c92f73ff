//! A sign-in that the host shows to its user.

use pith_testkit::{GuardedServer, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, texts};

#[test]
fn a_host_shows_the_page_of_a_sign_in_and_hears_when_the_server_is_there() {
    let guarded = GuardedServer::start();
    let mut scene = Scene::new([Turn::call("mcp__far__look", json!({})), Turn::text("done")]);
    let set = json!({"type": "set_mcp_servers", "servers": {"far": {"url": guarded.url()}}, "wait": true});
    let state = scene.host.data(set)["servers"][0].clone();
    assert_eq!(
        (&state["state"], &state["error"]),
        (&json!("needs_auth"), &json!("wants a sign-in (401): pith mcp login far"))
    );
    assert_eq!(state["hint"], "pith mcp login far");
    // A second page takes the place of the first.
    let first = scene.host.data(json!({"type": "mcp_login", "name": "far"}))["url"].clone();
    let second = scene.host.data(json!({"type": "mcp_login", "name": "far"}))["url"].clone();
    assert_ne!(first, second);
    let shown = guarded.sign_in(second.as_str().expect("an address"));
    assert!(shown.contains("the sign-in is done"), "{shown}");
    scene.host.wait(|frame| frame["type"] == "mcp_server_update" && frame["state"] == "ready");
    scene.run("look");
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "seen");
    let secret = "token-of-the-guarded-server";
    assert!(!scene.host.frames().iter().any(|frame| frame.to_string().contains(secret)));
    scene.finish();
}

#[test]
fn a_sign_in_that_cannot_begin_is_refused_and_one_that_waits_holds_nothing_up() {
    let guarded = GuardedServer::start();
    let mut scene = Scene::new([]);
    let servers =
        json!({"far": {"url": guarded.url()}, "near": {"command": "sh"}, "gone": {"url": "http://127.0.0.1:1/mcp"}});
    scene.command(json!({"type": "set_mcp_servers", "servers": servers}));
    let mut refusal = |name: &str| scene.refusal(json!({"type": "mcp_login", "name": name}));
    assert_eq!(refusal("none"), "There is no MCP server \"none\"");
    assert_eq!(refusal("near"), "near is a program; only servers with a url take a sign-in");
    assert!(refusal("gone").contains("127.0.0.1:1"), "{}", refusal("gone"));
    scene.command(json!({"type": "mcp_login", "name": "far"}));
    // The session ends at once, although nobody has signed in.
    let frames: Vec<Value> = scene.finish();
    assert!(!frames.is_empty());
}
