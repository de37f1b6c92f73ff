//! Host commands while extensions decide.

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use serde_json::json;

use crate::state::{extension, told, with_extension};
use crate::support::{Scene, assert_like, of_type, position, sent_texts};

/// An `input` handler that asks before it lets anything through.
const GATE: &str = r#"
    pi.on("input", async (event, ctx) => {
        if (!(await ctx.ui.confirm("Send?", event.text))) return { action: "handled" };
    });
"#;

const GIVEN_UP: &str = "Aborted before the prompt was started";

#[test]
fn commands_cannot_be_queued() {
    let mut scene = with_extension(r#"pi.registerCommand("x", { handler: async () => {} });"#, []);
    for kind in ["steer", "follow_up"] {
        let why = scene.refusal(json!({"type": kind, "message": "/x now"}));
        assert_eq!(
            why,
            "Extension command \"/x\" cannot be queued. Use prompt() or execute the command when not streaming."
        );
    }
    scene.finish();
}

#[test]
fn abort_cancels_a_prompt_that_handlers_are_deciding_about() {
    let mut scene = with_extension(GATE, [Turn::text("never"), Turn::text("later")]);
    scene.send(json!({"id": "first", "type": "prompt", "message": "one"}));
    scene.wait(|frame| frame["method"] == "confirm");
    scene.send_all([
        json!({"id": "second", "type": "prompt", "message": "two"}),
        json!({"id": "third", "type": "steer", "message": "three"}),
    ]);
    assert_like(&scene.ask(json!({"type": "abort"})), &json!({"success": true}));
    for (id, command) in [("first", "prompt"), ("second", "prompt"), ("third", "steer")] {
        assert_like(&scene.response(id), &json!({"command": command, "success": false, "error": GIVEN_UP}));
    }
    assert!(scene.messages().is_empty());
    // The handler's answer comes too late and has no effect.
    let frames = scene.frames();
    let dialog = frames[position(&frames, &json!({"method": "confirm"}))]["id"].clone();
    scene.send(json!({"type": "extension_ui_response", "id": dialog, "confirmed": true}));
    scene.send(json!({"id": "fourth", "type": "prompt", "message": "four"}));
    let dialog = scene.wait(|frame| frame["method"] == "confirm" && frame["message"] == "four");
    scene.send(json!({"type": "extension_ui_response", "id": dialog["id"], "confirmed": true}));
    assert_like(&scene.response("fourth"), &json!({"success": true, "data": {"disposition": "started"}}));
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "four");
    let frames = scene.finish();
    assert_eq!(of_type(&frames, "agent_start").len(), 1);
}

#[test]
fn abort_and_prompt_replaces_a_prompt_that_handlers_are_deciding_about() {
    let server = ModelServer::start(Script::of([Turn::text("fine")]));
    let home = TempHome::for_server(&server);
    home.write_agent_file("extensions/own.ts", extension(GATE));
    let mut scene = Scene::in_home(server, home, |builder| builder.args(["--dialect", "xcsh"]));
    scene.send(json!({"id": "first", "type": "prompt", "message": "one"}));
    scene.wait(|frame| frame["method"] == "confirm" && frame["message"] == "one");
    scene.send(json!({"id": "second", "type": "abort_and_prompt", "message": "two"}));
    let dialog = scene.wait(|frame| frame["method"] == "confirm" && frame["message"] == "two");
    assert_like(&scene.response("first"), &json!({"success": false, "error": GIVEN_UP}));
    scene.send(json!({"type": "extension_ui_response", "id": dialog["id"], "confirmed": true}));
    assert_like(&scene.response("second"), &json!({"success": true}));
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "two");
    scene.finish();
}

#[test]
fn runs_of_extensions_wait_for_a_prompt_being_decided() {
    let body = r#"
        pi.on("input", async (event, ctx) => {
            if (event.source === "extension") return tell(ctx, "second");
            pi.sendUserMessage("from the handler", { deliverAs: "followUp" });
            await ctx.ui.confirm("Send?", event.text);
        });
    "#;
    let mut scene = with_extension(body, [Turn::text("one"), Turn::text("two")]);
    scene.send(json!({"id": "first", "type": "prompt", "message": "from the host"}));
    let dialog = scene.wait(|frame| frame["method"] == "confirm");
    assert_eq!(scene.state()["isStreaming"], false, "the state is served meanwhile");
    scene.send(json!({"type": "extension_ui_response", "id": dialog["id"], "confirmed": true}));
    assert_eq!(told(&mut scene), "second");
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(1).body), "from the host\none\nfrom the handler");
    scene.finish();
}
