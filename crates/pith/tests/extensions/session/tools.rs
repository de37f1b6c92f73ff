//! The tools that an extension has chosen, in every session that goes on from there.

use pith_testkit::{Host, Turn};
use serde_json::json;

use super::{file, notes, scene};
use crate::support::Scene;

const CHOOSER: &str = r#"
    import { readFileSync } from "node:fs";
    const tool = (name) => ({ name, label: name, description: name, parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });
    export default (pi) => {
        pi.registerTool(tool("own"));
        try { pi.registerTool(tool(readFileSync("later", "utf8"))); } catch {}
        pi.registerCommand("only", { handler: async (names) => pi.setActiveTools(names.split(",")) });
        pi.registerCommand("active", { handler: async (_, ctx) => ctx.ui.notify(`active: ${pi.getActiveTools().join(" ")}`) });
    };"#;
const ALL: &str = "read bash edit write own";

/// The active tools, as an extension sees them.
fn active(host: &mut Host) -> String {
    let start = host.frames().len();
    host.data(json!({"type": "prompt", "message": "/active"}));
    let told = |frame: &serde_json::Value| frame["message"].as_str().is_some_and(|text| text.starts_with("active: "));
    let note = host.find_within(start, pith_testkit::timeout(), told).expect("the extension answers");
    notes(&[note])[0].as_str().expect("a text").replace("active: ", "")
}

fn choose(scene: &mut Scene, names: &str) {
    scene.command(json!({"type": "prompt", "message": format!("/only {names}")}));
}

/// The tools of a further process that gets these flags.
fn active_again(scene: &Scene, flags: &[&str]) -> String {
    let mut host = scene.again(flags);
    active(&mut host)
}

#[test]
fn a_restriction_goes_wherever_its_session_goes() {
    let mut scene = scene((0..3).map(|_| Turn::text("done")), &[("chooser.js", CHOOSER)]);
    assert_eq!(active(&mut scene.host), ALL);
    scene.run("first");
    choose(&mut scene, "read");
    scene.run("second");
    let restricted = file(&mut scene);
    let path = restricted.as_str().expect("a path").to_owned();

    scene.command(json!({"type": "new_session"}));
    assert_eq!(active(&mut scene.host), ALL, "a new session begins as it would without the other");
    scene.command(json!({"type": "switch_session", "sessionPath": restricted}));
    assert_eq!(active(&mut scene.host), "read", "after switch_session");
    scene.command(json!({"type": "reload"}));
    scene.command(json!({"type": "clone"}));
    assert_eq!(active(&mut scene.host), "read own", "reloaded extensions have their tools again; clone keeps that");
    scene.command(json!({"type": "switch_session", "sessionPath": restricted}));
    let prompts = scene.data(json!({"type": "get_fork_messages"}))["messages"].clone();
    scene.command(json!({"type": "fork", "entryId": prompts[1]["entryId"]}));
    assert_eq!(active(&mut scene.host), "read", "a fork behind the choice");
    scene.command(json!({"type": "switch_session", "sessionPath": restricted}));
    scene.command(json!({"type": "fork", "entryId": prompts[0]["entryId"]}));
    assert_eq!(active(&mut scene.host), ALL, "a fork before the choice");

    scene.command(json!({"type": "switch_session", "sessionPath": restricted}));
    choose(&mut scene, "read,ls");
    scene.command(json!({"type": "navigate_tree", "targetId": prompts[1]["entryId"]}));
    assert_eq!(active(&mut scene.host), "read", "the branch that is gone to counts");
    choose(&mut scene, "ls,read");
    assert_eq!(active(&mut scene.host), "read ls", "tools that stay keep their places");

    let again = |flags: &[&str]| active_again(&scene, &[&["--session", &path], flags].concat());
    assert_eq!(again(&[]), "read ls");
    assert_eq!(again(&["--tools", "bash,own"]), "bash own");
    assert_eq!(again(&["--tools", "+grep,-read"]), "ls grep");
    assert_eq!(again(&["--no-builtin-tools"]), "own");
    assert_eq!(again(&["--no-tools"]), "");
    assert_eq!(again(&["--exclude-tools", "ls"]), "read");
    std::fs::write(scene.home.work().join("later"), "later").expect("written");
    assert_eq!(again(&[]), "read ls later", "a tool that the session never knew");
    scene.finish();
}

#[test]
fn a_choice_that_changes_nothing_leaves_no_entry() {
    let mut scene = scene([Turn::text("done")], &[("chooser.js", CHOOSER)]);
    choose(&mut scene, "write,own,read,bash,edit");
    assert_eq!(active(&mut scene.host), ALL);
    choose(&mut scene, "read");
    choose(&mut scene, "read");
    assert!(scene.home.sessions().is_empty(), "a session without a prompt has no file");
    scene.run("go");
    choose(&mut scene, "read");
    let entries = scene.data(json!({"type": "get_entries"}))["entries"].clone();
    let chosen = entries.as_array().expect("a list").iter().filter(|entry| entry["customType"] == "pith.tools");
    let data: Vec<_> = chosen.map(|entry| entry["data"]["active"].clone()).collect();
    assert_eq!(data, [json!(["read"])]);
    scene.finish();
}
