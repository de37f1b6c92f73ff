//! `reload` with extensions.

use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{notes, reporting, scene};
use crate::support::{Scene, assert_like, of_type};

/// A command that tells which version of the file it is from.
fn edition(n: u32) -> String {
    format!(
        r#"export default (pi) => {{
            pi.registerCommand("edition", {{ handler: (args, ctx) => ctx.ui.notify("edition {n}") }});
            pi.registerCommand("again", {{ handler: async (args, ctx) => {{ await ctx.reload(); console.error("back in {n}"); }} }});
        }};"#
    )
}

#[test]
fn a_changed_file_is_used_after_a_reload() {
    let mut scene = scene([], &[("edition.js", &edition(1))]);
    scene.slash("/edition");
    scene.home.write_agent_file("extensions/edition.js", edition(2));
    scene.command(json!({"type": "reload"}));
    scene.slash("/edition");
    scene.home.write_agent_file("extensions/edition.js", edition(3));
    scene.slash("/again");
    scene.wait_stderr(|text| text.contains("back in 2"));
    scene.slash("/edition");
    assert_eq!(notes(&scene.host.frames()), ["edition 1", "edition 2", "edition 3"]);
    scene.finish();
}

#[test]
fn a_reload_is_announced_and_keeps_the_conversation() {
    let events = ["session_before_switch", "session_shutdown", "session_start", "resources_discover"];
    let mut scene = scene([Turn::text("one")], &[("reporting.js", &reporting(&events))]);
    scene.run("first");
    let (before, seen) = (scene.state(), notes(&scene.host.frames()).len());
    let response = scene.ask(json!({"type": "reload"}));
    assert_like(&response, &json!({"success": true, "data": {"changes": []}}));
    let cwd = scene.home.work();
    assert_eq!(
        notes(&scene.host.frames())[seen..],
        [
            json!({"type": "session_shutdown", "reason": "reload"}),
            json!({"type": "session_start", "reason": "reload"}),
            json!({"type": "resources_discover", "reason": "reload", "cwd": cwd}),
        ]
    );
    assert_eq!(scene.state(), before);
    assert_eq!(scene.messages().len(), 2);
}

#[test]
fn a_reload_loads_new_and_drops_removed_extensions() {
    let mut scene = Scene::new([Turn::text("as a text"), Turn::text("again")]);
    assert_eq!(scene.data(json!({"type": "prompt", "message": "/edition"})), json!({"disposition": "started"}));
    scene.wait_type("agent_settled");
    scene.home.write_agent_file("extensions/edition.js", edition(1));
    scene.command(json!({"type": "reload"}));
    scene.slash("/edition");
    scene.wait_note("edition 1");
    std::fs::remove_file(scene.home.agent().join("extensions/edition.js")).expect("it was written");
    scene.command(json!({"type": "reload"}));
    assert_eq!(scene.data(json!({"type": "prompt", "message": "/edition"})), json!({"disposition": "started"}));
    scene.wait_type("agent_settled");
    scene.finish();
}

#[test]
fn a_file_that_became_broken_is_reported_and_left_out() {
    let mut scene = scene([], &[("edition.js", &edition(1))]);
    // Answered once they are loaded.
    scene.data(json!({"type": "get_commands"}));
    scene.home.write_agent_file("extensions/edition.js", "export default 5;");
    scene.command(json!({"type": "reload"}));
    let frames = scene.host.frames();
    let errors = of_type(&frames, "extension_error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["event"], "load");
    scene.home.write_agent_file("extensions/edition.js", edition(2));
    scene.command(json!({"type": "reload"}));
    scene.slash("/edition");
    scene.wait_note("edition 2");
}

#[test]
fn commands_after_a_reload_use_the_new_extensions() {
    let scene = scene([], &[("edition.js", &edition(1))]);
    scene.home.write_agent_file("extensions/edition.js", edition(2));
    scene.send_all([
        json!({"id": "r", "type": "reload"}),
        json!({"id": "p", "type": "prompt", "message": "/edition"}),
        json!({"id": "s", "type": "get_state"}),
    ]);
    assert_like(&scene.response("p"), &json!({"data": {"disposition": "handled"}}));
    assert_eq!(notes(&scene.host.frames()), ["edition 2"]);
    let ids: Vec<Value> = of_type(&scene.host.frames(), "response")
        .iter()
        .filter(|frame| ["r", "p", "s"].iter().any(|id| frame["id"] == *id))
        .map(|frame| frame["id"].clone())
        .collect();
    // Queries about the session need not wait.
    assert_eq!(ids, ["s", "r", "p"]);
}

#[test]
fn extensions_of_a_project_are_loaded_when_it_is_trusted() {
    let server = pith_testkit::ModelServer::start(Script::of([]));
    let home = pith_testkit::TempHome::for_server(&server);
    home.write_agent_file("extensions/reporting.js", reporting(&["session_start"]));
    home.write_file(".pi/extensions/edition.js", edition(1));
    let mut scene = Scene::in_home(server, home, |builder| builder);
    scene.send(json!({"id": "s", "type": "get_state", "ui": true}));
    let id = scene.wait_dialog("confirm");
    scene.reply(&id, json!({"confirmed": true}));
    scene.slash("/edition");
    scene.wait_note("edition 1");
    let reasons: Vec<Value> =
        notes(&scene.host.frames()).iter().filter_map(|note| note.get("reason").cloned()).collect();
    assert_eq!(reasons, ["startup", "reload"]);
}
