//! Commands of the model in terminals of the editor.

use std::path::Path;

use pith_sandbox::{Profile, Require, Support};
use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::{Editor, updates};

fn bash(command: &str) -> Turn {
    Turn::call("bash", json!({ "command": command }))
}

/// An editor with terminals, whose user wants commands to run in them.
fn editor(turns: impl IntoIterator<Item = Turn>) -> Editor {
    let editor = Editor::with(turns, json!({"terminal": true}), |builder| builder);
    editor.home.write_settings(&json!({"acp": {"clientTerminal": true}}));
    editor
}

impl Editor {
    /// Gives the command of the model a terminal; returns what was asked for.
    fn create_terminal(&mut self) -> Value {
        let create = self.asked("terminal/create");
        self.reply(&create, json!({"terminalId": "t1"}));
        create["params"].clone()
    }

    /// What the model was told about its last call.
    fn result_of_call(&self) -> String {
        let requests = self.server.requests();
        let messages = requests.last().expect("a request").body["messages"].clone();
        messages.as_array().and_then(|messages| messages.last()).expect("a message").to_string()
    }
}

/// The methods about terminals, in order.
fn methods(frames: &[Value]) -> Vec<&str> {
    let named = frames.iter().filter_map(|frame| frame["method"].as_str());
    named.filter_map(|method| method.strip_prefix("terminal/")).collect()
}

#[test]
fn a_command_runs_where_the_user_watches_it() {
    let mut editor = editor([bash("echo hi"), Turn::text("done")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let create = editor.create_terminal();
    assert_eq!(create["args"], json!(["-c", "echo hi"]));
    assert_eq!(create["cwd"], json!(editor.home.work()));
    assert_eq!(create["outputByteLimit"], 1 << 20);
    assert!(Path::new(create["command"].as_str().expect("a program")).is_absolute(), "{create}");
    let variables = create["env"].as_array().expect("variables");
    assert!(variables.iter().any(|variable| *variable == json!({"name": "PI_SESSION_ID", "value": session})));
    let wait = editor.asked("terminal/wait_for_exit");
    assert_eq!(wait["params"], json!({"sessionId": session, "terminalId": "t1"}));
    // The terminal is in the call while the command runs.
    editor.wait_update(|update| update["content"] == json!([{"type": "terminal", "terminalId": "t1"}]));
    editor.reply(&wait, json!({"exitCode": 0}));
    let output = editor.asked("terminal/output");
    editor.reply(&output, json!({"output": "the last hi\n", "truncated": true}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let told = editor.result_of_call();
    assert!(told.contains("the last hi") && told.contains("kept only the end of the output"), "{told}");
    let frames = editor.finish();
    assert_eq!(methods(&frames), ["create", "wait_for_exit", "output", "release"]);
    let updates = updates(&frames, &session);
    let end = updates.iter().find(|update| update["status"] == "completed").expect("an end");
    // Said again, because an editor that reads slowly may not have got the update before.
    assert_eq!(end["content"], json!([{"type": "terminal", "terminalId": "t1"}]));
    assert_eq!(end["rawOutput"]["exitCode"], 0);
}

#[test]
fn the_model_is_told_how_a_command_ended() {
    for (status, expected) in [
        (json!({"exitCode": 3}), "some\\n\\n\\nCommand exited with code 3"),
        (json!({"signal": "SIGKILL"}), "some\\n\\n\\nCommand was ended by SIGKILL"),
        (json!({}), "The terminal of the editor failed: it does not tell how the command ended"),
    ] {
        let mut editor = editor([bash("false"), Turn::text("done")]);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "go");
        editor.create_terminal();
        let wait = editor.asked("terminal/wait_for_exit");
        editor.reply(&wait, status);
        let output = editor.asked("terminal/output");
        editor.reply(&output, json!({"output": "some\n", "truncated": false}));
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        let told = editor.result_of_call();
        assert!(told.contains(expected), "{told}");
        editor.finish();
    }
}

#[test]
fn a_cancel_kills_the_command_and_releases_its_terminal() {
    let mut editor = editor([bash("sleep 1000")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    editor.create_terminal();
    let wait = editor.asked("terminal/wait_for_exit");
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.withdrawn(&wait);
    // The editor answers none of what follows, and the turn ends all the same.
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    let frames = editor.finish();
    assert_eq!(methods(&frames), ["create", "wait_for_exit", "kill", "output", "release"]);
}

#[test]
fn a_terminal_that_comes_after_the_cancel_is_released() {
    let mut editor = editor([bash("sleep 1000")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let create = editor.asked("terminal/create");
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    let created = json!({"jsonrpc": "2.0", "id": create["id"], "result": {"terminalId": "late"}});
    // In one piece: pith waits only a moment for the answer once it knows of the cancel.
    editor.host.send_raw(format!("{cancel}\n{created}\n"));
    let release = editor.asked("terminal/release");
    assert_eq!(release["params"], json!({"sessionId": session, "terminalId": "late"}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn a_command_that_is_out_of_time_is_killed() {
    let mut editor =
        editor([Turn::call("bash", json!({"command": "sleep 1000", "timeout": 0.05})), Turn::text("done")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    editor.create_terminal();
    let kill = editor.asked("terminal/kill");
    editor.reply(&kill, json!({}));
    let output = editor.asked("terminal/output");
    editor.reply(&output, json!({"output": "so far", "truncated": false}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    // A busy machine may take longer to read that answer than pith waits for it.
    let told = editor.result_of_call();
    assert!(told.contains("Command timed out after 0.05 seconds"), "{told}");
    let frames = editor.finish();
    assert_eq!(methods(&frames), ["create", "wait_for_exit", "kill", "output", "release"]);
}

#[test]
fn an_editor_that_starts_nothing_leaves_the_command_to_pith() {
    let mut editor = editor([bash("echo from $((40 + 2))"), Turn::text("done")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let create = editor.asked("terminal/create");
    editor.refuse(&create, "no terminals today");
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert!(editor.result_of_call().contains("from 42"));
    let frames = editor.finish();
    assert_eq!(methods(&frames), ["create"]);
}

#[test]
fn a_command_that_may_have_run_is_not_repeated() {
    // The first answer names no terminal; the other editor loses the one it has.
    for names_terminal in [false, true] {
        let mut editor = editor([bash("touch ran"), Turn::text("done")]);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "go");
        if names_terminal {
            editor.create_terminal();
            let wait = editor.asked("terminal/wait_for_exit");
            editor.refuse(&wait, "lost it");
            let kill = editor.asked("terminal/kill");
            editor.refuse(&kill, "lost it");
            let output = editor.asked("terminal/output");
            editor.refuse(&output, "lost it");
        } else {
            let create = editor.asked("terminal/create");
            editor.reply(&create, json!({"terminal": 5}));
        }
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        let told = editor.result_of_call();
        let expected = if names_terminal { "terminal/wait_for_exit: lost it" } else { "its answer to terminal/create" };
        assert!(told.contains("The terminal of the editor failed") && told.contains(expected), "{told}");
        assert!(editor.home.read_file("ran").is_none());
        editor.finish();
    }
}

#[test]
fn a_closed_session_leaves_no_terminal() {
    let mut editor = editor([bash("sleep 1000")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    editor.create_terminal();
    editor.asked("terminal/wait_for_exit");
    editor.ask("session/close", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    let frames = editor.finish();
    assert_eq!(methods(&frames).last(), Some(&"release"));
}

#[test]
fn commands_run_here_unless_the_user_wants_terminals() {
    let credentials_hidden = json!({"acp": {"clientTerminal": true}, "bash": {"inheritSecrets": false}});
    for (has_terminals, settings) in [
        (true, json!({})),
        (false, json!({"acp": {"clientTerminal": true}})),
        // An editor would give its terminals all variables it has.
        (true, credentials_hidden),
    ] {
        let capabilities = json!({"terminal": has_terminals});
        let mut editor = Editor::with([bash("echo $((40 + 2))"), Turn::text("done")], capabilities, |builder| builder);
        editor.home.write_settings(&settings);
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "go"), "end_turn");
        assert!(editor.result_of_call().contains("42"), "{settings}");
        let frames = editor.finish();
        assert!(methods(&frames).is_empty(), "{settings}");
    }
}

#[test]
fn a_sandbox_keeps_commands_out_of_terminals() {
    if let Err(why) = Support::of_this_kernel().check(Profile::WorkspaceWrite, Require::Full) {
        return pith_testkit::skip(&why);
    }
    let turns = [bash("echo $((40 + 2))"), Turn::text("done")];
    let mut editor =
        Editor::with(turns, json!({"terminal": true}), |builder| builder.args(["--sandbox", "workspace-write"]));
    editor.home.write_settings(&json!({"acp": {"clientTerminal": true}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let frames = editor.finish();
    assert!(methods(&frames).is_empty());
}
