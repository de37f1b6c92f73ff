//! Shell commands of the host that extensions handle.

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::scene;
use crate::support::{assert_like, of_type};

const SHELL: &str = r#"export default (pi) => {
    pi.on("user_bash", (event, ctx) => {
        const [kind] = event.command.split(" ");
        if (kind === "result") {
            return { result: { output: JSON.stringify(event), exitCode: 3, cancelled: false, truncated: false } };
        }
        if (kind === "throw") throw new Error("not this one");
        if (kind === "nonsense") return { result: { exitCode: 0 } };
        if (kind === "elsewhere") {
            return { operations: { exec: async (command, cwd, { onData, signal }) => {
                onData(Buffer.from("ran \x1b[31m" + command));
                await new Promise((resolve) => setTimeout(resolve, 20));
                onData("\nthere\n");
                return { exitCode: 7 };
            } } };
        }
        if (kind === "broken") return { operations: { exec: async () => { throw new Error("no connection") } } };
        if (kind === "endless") {
            return { operations: { exec: (command, cwd, { onData, signal }) => new Promise((resolve, reject) => {
                onData("began\n");
                signal.addEventListener("abort", () => reject(new Error("aborted")));
            }) } };
        }
        if (kind === "undecided") { ctx.ui.notify("asked"); return new Promise(() => {}); }
    });
};"#;

fn bash(command: &str) -> Value {
    json!({"type": "bash", "command": command})
}

#[test]
fn a_command_that_no_extension_handles_runs_locally() {
    let mut scene = scene([], &[("shell.js", SHELL)]);
    assert_like(&scene.data(bash("echo here")), &json!({"output": "here\n", "exitCode": 0}));
}

#[test]
fn a_result_is_recorded_and_returned_as_it_is() {
    let mut scene = scene([Turn::text("ok")], &[("shell.js", SHELL)]);
    let data = scene.data(json!({"type": "bash", "command": "result 1", "excludeFromContext": true}));
    let event =
        json!({"type": "user_bash", "command": "result 1", "excludeFromContext": true, "cwd": scene.home.work()});
    assert_like(&data, &json!({"exitCode": 3, "cancelled": false, "truncated": false}));
    let told: Value = serde_json::from_str(data["output"].as_str().unwrap()).expect("what the handler got");
    assert_eq!(told, event);
    assert_like(
        &scene.messages()[0],
        &json!({"role": "bashExecution", "command": "result 1", "output": data["output"], "exitCode": 3,
            "excludeFromContext": true}),
    );
}

#[test]
fn operations_of_an_extension_run_it_elsewhere() {
    let mut scene = scene([Turn::text("ok")], &[("shell.js", SHELL)]);
    let data = scene.data(bash("elsewhere now"));
    assert_like(&data, &json!({"output": "ran elsewhere now\nthere\n", "exitCode": 7, "cancelled": false}));
    let frames = scene.host.frames();
    let deltas: Vec<&str> =
        of_type(&frames, "bash_execution_update").iter().filter_map(|frame| frame["delta"].as_str()).collect();
    assert_eq!(deltas.concat(), "ran elsewhere now\nthere\n");
    assert_like(&scene.messages()[0], &json!({"role": "bashExecution", "command": "elsewhere now", "exitCode": 7}));
}

#[test]
fn a_command_fails_with_the_extension_and_nothing_is_run() {
    let mut scene = scene([], &[("shell.js", SHELL)]);
    assert_eq!(scene.refusal(bash("throw 1; touch run")), "not this one");
    let frames = scene.host.frames();
    let errors = of_type(&frames, "extension_error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_like(errors[0], &json!({"event": "user_bash", "error": "not this one"}));
    assert!(scene.refusal(bash("nonsense")).contains("output"));
    assert_eq!(scene.refusal(bash("broken")), "no connection");
    assert!(scene.messages().is_empty());
    assert!(scene.home.read_file("run").is_none());
}

#[test]
fn commands_of_extensions_can_be_aborted() {
    let mut scene = scene([], &[("shell.js", SHELL)]);
    scene.send(json!({"id": "e", "type": "bash", "command": "endless"}));
    scene.wait_type("bash_execution_update");
    scene.command(json!({"type": "abort_bash"}));
    assert_like(&scene.response("e"), &json!({"data": {"output": "began\n", "cancelled": true}}));
    // The same while a handler has not decided yet.
    scene.send(json!({"id": "u", "type": "bash", "command": "undecided"}));
    scene.wait_note("asked");
    scene.command(json!({"type": "abort_bash"}));
    assert_like(&scene.response("u"), &json!({"data": {"output": "", "cancelled": true}}));
}
