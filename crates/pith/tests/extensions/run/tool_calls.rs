//! Tool calls that extensions observe and change.

use pith_testkit::{Block, Script, Turn};
use serde_json::{Value, json};

use super::{failures, notes, scene, scene_with};
use crate::support::{Scene, assert_like, of_type, texts};

fn ends(frames: &[Value]) -> Vec<(String, bool)> {
    let ends = of_type(frames, "tool_execution_end");
    ends.iter().map(|end| (texts(&end["result"]["content"]), end["isError"] == true)).collect()
}

fn write(path: &str, content: &str) -> Turn {
    Turn::call("write", json!({"path": path, "content": content}))
}

fn exists(scene: &Scene, name: &str) -> bool {
    scene.home.work().join(name).exists()
}

#[test]
fn a_blocked_call_does_not_run() {
    let body = r#"
        pi.on("tool_call", (event) => event.input.path === "secret" ? { block: true, reason: "hands off" } : undefined);
        pi.on("tool_call", (event) => event.input.path === "quiet" ? { block: true } : undefined);
        pi.on("tool_call", (event) => { if (event.input.path === "error") throw new Error("I am broken"); });
        pi.on("tool_call", (event) => { if (event.input.path === "value") throw "a word"; });
        pi.on("tool_result", (event, ctx) => note(ctx, `result ${event.input.path}`));"#;
    let turns = ["secret", "quiet", "error", "value", "fine"]
        .map(|path| write(path, "x"))
        .into_iter()
        .chain([Turn::text("done")]);
    let mut scene = scene(body, turns);
    let frames = scene.run("go");
    let expected = [
        ("hands off".to_owned(), true),
        ("Tool execution was blocked".to_owned(), true),
        ("I am broken".to_owned(), true),
        ("Extension failed, blocking execution: a word".to_owned(), true),
    ];
    assert_eq!(ends(&frames)[..4], expected);
    assert!(!ends(&frames)[4].1);
    for (name, is_there) in [("secret", false), ("quiet", false), ("error", false), ("value", false), ("fine", true)] {
        assert_eq!(exists(&scene, name), is_there, "{name}");
    }
    // Blocked calls have no result to show.
    assert_eq!(notes(&frames), ["result fine"]);
    let errors: Vec<_> = failures(&frames).into_iter().map(|(_, event, error)| (event, error)).collect();
    assert_eq!(errors, [("tool_call", "I am broken"), ("tool_call", "a word")]);
    assert!(scene.server.requests()[1].body.to_string().contains("hands off"));
    scene.finish();
}

#[test]
fn tool_call_handlers_decide_one_by_one_before_anything_runs() {
    let body = r#"
        pi.on("tool_call", async (event, ctx) => {
            note(ctx, `ask ${event.input.path}`);
            await new Promise((resolve) => setTimeout(resolve, 20));
            note(ctx, `answer ${event.input.path}`);
        });
        pi.on("tool_result", (event, ctx) => note(ctx, "ran"));"#;
    let calls = ["a", "b"].map(|path| Block::call("write", json!({"path": path, "content": "x"})));
    let mut scene = scene(body, [Turn::blocks(calls), Turn::text("done")]);
    assert_eq!(notes(&scene.run("go")), ["ask a", "answer a", "ask b", "answer b", "ran", "ran"]);
    scene.finish();
}

#[test]
fn arguments_and_results_can_be_changed() {
    let body = r#"
        pi.on("tool_call", (event) => { event.input.path = "moved"; event.input.mystery = 1; });
        pi.on("tool_call", (event, ctx) => note(ctx, event.input));
        pi.on("tool_result", (event, ctx) => { note(ctx, event.input); return { content: [{ type: "text", text: "all well" }], details: { by: "me" } }; });
        pi.on("tool_result", (event) => { if (event.details.by === "me") return { isError: true }; });
        pi.on("tool_result", () => { throw new Error("late"); });"#;
    let mut scene = scene(body, [write("first", "x"), Turn::text("done")]);
    let frames = scene.run("go");
    assert!(exists(&scene, "moved") && !exists(&scene, "first"));
    let input = r#"{"path":"moved","content":"x","mystery":1}"#;
    assert_eq!(notes(&frames), [input, input]);
    assert_like(
        of_type(&frames, "tool_execution_end")[0],
        &json!({"isError": true, "result": {"content": [{"type": "text", "text": "all well"}], "details": {"by": "me"}}}),
    );
    // The host sees the arguments the model sent.
    assert_like(of_type(&frames, "tool_execution_start")[0], &json!({"args": {"path": "first"}}));
    assert_eq!(failures(&frames).len(), 1);
    assert!(scene.server.requests()[1].body.to_string().contains("all well"));
    scene.finish();
}

#[test]
fn unknown_and_invalid_calls_pass_no_handler() {
    let body = r#"
        pi.on("tool_call", (event, ctx) => note(ctx, "call"));
        pi.on("tool_result", (event, ctx) => note(ctx, "result"));"#;
    let turns = [Turn::call("nothing", json!({})), Turn::call("write", json!({"path": "a"})), Turn::text("done")];
    let mut scene = scene(body, turns);
    let frames = scene.run("go");
    assert_eq!(ends(&frames)[0], ("Tool nothing not found".to_owned(), true));
    assert!(ends(&frames)[1].1);
    assert_eq!(notes(&frames), [""; 0]);
    scene.finish();
}

#[test]
fn a_run_ends_when_every_call_of_a_batch_is_blocked_for_good() {
    let body = r#"pi.on("tool_call", (event) => event.input.path === "no" ? { block: true, reason: "stop", terminate: true } : undefined);"#;
    let call = |path: &str| Block::call("write", json!({"path": path, "content": "x"}));
    let script = Script::of([Turn::blocks([call("no"), call("yes")]), Turn::blocks([call("no")]), Turn::text("never")]);
    let mut scene = scene_with(body, script, |builder| builder);
    let frames = scene.run("go");
    assert_eq!(scene.server.requests().len(), 2);
    assert_like(
        of_type(&frames, "tool_execution_end").last().expect("it ended"),
        &json!({"result": {"terminate": true}}),
    );
    scene.finish();
}

#[test]
fn an_abort_withdraws_the_dialog_of_a_verdict_and_the_call_never_runs() {
    let body = r#"pi.on("tool_call", async (event, ctx) => {
        const choice = await ctx.ui.select("May I?", ["Yes", "No"]);
        if (choice !== "Yes") return { block: true, reason: "refused" };
    });"#;
    let mut scene = scene(body, [write("gone", "x"), Turn::text("never")]);
    scene.prompt("go");
    let dialog = scene.wait(|frame| frame["method"] == "select");
    scene.command(json!({"type": "abort"}));
    scene.send(json!({"type": "extension_ui_response", "id": dialog["id"], "value": "Yes"}));
    assert_eq!(scene.state()["isStreaming"], false);
    assert!(!exists(&scene, "gone"));
    assert_eq!(scene.server.requests().len(), 1);
    let frames = scene.finish();
    assert_eq!(ends(&frames), [("Operation aborted".to_owned(), true)]);
}
