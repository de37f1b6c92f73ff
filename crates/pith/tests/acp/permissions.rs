//! Modes, and whether a tool call may run.

use std::fs;
use std::path::Path;

use pith_testkit::{Block, Turn};
use serde_json::{Value, json};

use crate::support::Editor;

fn editor(turns: impl IntoIterator<Item = Turn>) -> (Editor, String) {
    let mut editor = Editor::new(turns);
    let session = editor.new_session();
    (editor, session)
}

fn command() -> Turn {
    Turn::call("bash", json!({"command": "echo ran > out.txt"}))
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn set_mode(editor: &mut Editor, session: &str, mode: &str) {
    editor.ask("session/set_mode", json!({"sessionId": session, "modeId": mode}));
}

#[test]
fn in_mode_ask_the_editor_is_asked_about_a_command() {
    let (mut editor, session) = editor([command(), Turn::text("Then not."), command(), Turn::text("Done.")]);
    set_mode(&mut editor, &session, "ask");
    editor.wait_update(|update| update["sessionUpdate"] == "current_mode_update" && update["currentModeId"] == "ask");
    editor.wait_update(|update| update["sessionUpdate"] == "config_option_update");
    for (option, text) in [("dance", None), ("once", Some("ran\n"))] {
        let prompt = editor.send_prompt(&session, "go");
        let asked = editor.asked("session/request_permission");
        let call = &asked["params"]["toolCall"];
        assert_eq!((&call["name"], &call["kind"]), (&json!("bash"), &json!("execute")));
        assert_eq!((&call["status"], &call["title"]), (&json!("pending"), &json!("echo ran > out.txt")));
        assert_eq!(call["rawInput"]["command"], "echo ran > out.txt");
        assert_eq!(call["content"][0]["content"]["text"], "Mode: ask");
        let kinds: Vec<&Value> =
            asked["params"]["options"].as_array().expect("options").iter().map(|option| &option["kind"]).collect();
        // No rule says just this command: it writes a file.
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
        editor.reply(&asked, selected(option));
        // The run goes on after a no.
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        assert_eq!(editor.home.read_file("out.txt").as_deref(), text);
    }
    editor.finish();
}

#[test]
fn who_approves_a_write_sees_what_it_replaces() {
    let write = Turn::call("write", json!({"path": "a.txt", "content": "new\n"}));
    let (mut editor, session) = editor([write, Turn::text("Done.")]);
    editor.home.write_file("a.txt", "old\n");
    let path = editor.home.work().join("a.txt");
    let change = json!({"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"});
    set_mode(&mut editor, &session, "ask");
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let shown = asked["params"]["toolCall"]["content"].as_array().expect("content");
    assert!(shown.contains(&change), "{shown:?}");
    editor.reply(&asked, selected("once"));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert_eq!(editor.home.read_file("a.txt").as_deref(), Some("new\n"));
    let end = editor.updates(&session).into_iter().rfind(|update| update["status"] == "completed").expect("an end");
    assert_eq!(end["content"], json!([change]));
    editor.finish();
}

#[test]
fn who_approves_a_write_sees_the_file_that_the_tool_means() {
    let write = |path: &str, content: &str| Block::call("write", json!({"path": path, "content": content}));
    let home_file =
        Turn::blocks([write("~/notes.txt", "new"), write("~/notes.txt", "newer"), write("@same.txt", "same")]);
    let (mut editor, session) = editor([home_file, Turn::text("Done.")]);
    let path = editor.home.home().join("notes.txt");
    fs::write(&path, "old").expect("a file");
    editor.home.write_file("same.txt", "same");
    set_mode(&mut editor, &session, "ask");
    let prompt = editor.send_prompt(&session, "go");
    let change =
        |path: &Path, old: &str, new: &str| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    // The first is refused, so the second replaces what was there before both.
    let same = editor.home.work().join("same.txt");
    for (expected, answer) in [
        (change(&path, "old", "new"), "deny"),
        (change(&path, "old", "newer"), "once"),
        (change(&same, "same", "same"), "once"),
    ] {
        let asked = editor.asked("session/request_permission");
        let shown = asked["params"]["toolCall"]["content"].as_array().expect("content");
        assert!(shown.contains(&expected), "{expected}: {shown:?}");
        editor.reply(&asked, selected(answer));
    }
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert_eq!(fs::read_to_string(path).expect("a file"), "newer");
    editor.finish();
}

#[test]
fn the_second_write_of_a_file_replaces_the_text_of_the_first() {
    let write = |content: &str| Block::call("write", json!({"path": "a.txt", "content": content}));
    let (mut editor, session) = editor([Turn::blocks([write("one"), write("two")]), Turn::text("Done.")]);
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let updates = editor.updates(&session);
    let ends: Vec<_> = updates.iter().filter(|update| update["status"] == "completed").collect();
    let texts: Vec<_> =
        ends.iter().map(|end| json!([end["content"][0]["oldText"], end["content"][0]["newText"]])).collect();
    assert_eq!(texts, [json!([null, "one"]), json!(["one", "two"])]);
    editor.finish();
}

#[test]
fn a_cancelled_permission_cancels_the_turn() {
    let (mut editor, session) = editor([command(), Turn::text("never")]);
    let set = json!({"sessionId": session, "configId": "mode", "value": "ask"});
    let changed = editor.ask("session/set_config_option", set);
    let mode = changed["configOptions"].as_array().expect("options").iter().find(|option| option["id"] == "mode");
    assert_eq!(mode.expect("a mode")["currentValue"], "ask");
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    editor.reply(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    assert_eq!(editor.home.read_file("out.txt"), None);
    editor.finish();
}

#[test]
fn a_cancelled_turn_withdraws_the_question() {
    let (mut editor, session) = editor([command(), Turn::text("never")]);
    set_mode(&mut editor, &session, "ask");
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.withdrawn(&asked);
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn in_mode_read_only_nothing_is_asked_and_nothing_changes() {
    let (mut editor, session) = editor([command(), Turn::text("Then not.")]);
    set_mode(&mut editor, &session, "read-only");
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(editor.home.read_file("out.txt"), None);
    let frames = editor.finish();
    assert!(!frames.iter().any(|frame| frame["method"] == "session/request_permission"));
}

#[test]
fn the_mode_belongs_to_the_session() {
    let mut editor = Editor::new([Turn::text("hello")]);
    editor.home.write_settings(&json!({"approvalMode": "write"}));
    let cwd = editor.home.work();
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    assert_eq!(opened["modes"]["currentModeId"], "write");
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    // Whoever changes it, the editor is told.
    for (command, mode) in [("set_permissions", "read-only"), ("set_approval_mode", "ask")] {
        let command = json!({"type": command, "mode": mode});
        let answer = editor.ask("_pith/command", json!({"sessionId": session, "command": command}));
        assert_eq!(answer["mode"], mode);
        editor.wait_update(|update| {
            let options = update["configOptions"].as_array().cloned().unwrap_or_default();
            options.iter().any(|option| option["id"] == "mode" && option["currentValue"] == mode)
        });
        editor
            .wait_update(|update| update["sessionUpdate"] == "current_mode_update" && update["currentModeId"] == mode);
    }
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    editor.ask("session/close", json!({"sessionId": session}));
    let loaded = editor.ask("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert_eq!(loaded["modes"]["currentModeId"], "ask");
    editor.finish();
}

#[test]
fn a_question_about_a_command_keeps_its_terminal_and_an_approved_call_runs() {
    let turns = [Turn::call("bash", json!({"command": "echo ran"})), Turn::text("Done.")];
    let mut editor = Editor::with(turns, json!({"_meta": {"terminal_output": true}}), |builder| builder);
    let session = editor.new_session();
    set_mode(&mut editor, &session, "ask");
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let call = &asked["params"]["toolCall"];
    assert_eq!(call["content"][0]["content"]["text"], "Mode: ask");
    assert_eq!(call["content"][1], json!({"type": "terminal", "terminalId": call["toolCallId"]}));
    let n_before = editor.updates(&session).len();
    editor.reply(&asked, selected("once"));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let updates = editor.updates(&session);
    let statuses: Vec<&str> = updates[n_before..].iter().filter_map(|update| update["status"].as_str()).collect();
    assert_eq!(statuses, ["in_progress", "completed"]);
    editor.finish();
}
