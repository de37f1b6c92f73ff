//! An editor that loads a session while something happens in it.

use std::fs;

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::{Editor, fold, text_of};

impl Editor {
    /// Loads a session; returns what it was told for that.
    #[track_caller]
    fn load(&mut self, session: &str) -> Vec<Value> {
        let n_told = self.updates(session).len();
        let cwd = self.home.work();
        self.ask("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        self.updates(session).split_off(n_told)
    }
}

#[test]
fn a_command_that_runs_is_shown_as_running() {
    for capabilities in [json!({}), json!({"_meta": {"terminal_output": true}})] {
        // The command waits for the test to write into the pipe.
        let command = "mkfifo gate; echo started; cat gate";
        let turns = [Turn::call("bash", json!({ "command": command })), Turn::text("done")];
        let mut editor = Editor::with(turns, capabilities, |builder| builder);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "go");
        let has_started = |update: &Value| {
            update["sessionUpdate"] == "tool_call_update"
                && (update["content"].to_string().contains("started")
                    || update["_meta"]["terminal_output"]["data"].to_string().contains("started"))
        };
        editor.wait_update(has_started);
        let loaded = editor.load(&session);
        let call = loaded.iter().find(|update| update["sessionUpdate"] == "tool_call").expect("the call");
        assert_eq!((&call["status"], &call["title"]), (&json!("in_progress"), &json!(command)));
        assert_eq!(call["rawInput"]["command"], command);
        assert!(json!(loaded).to_string().contains("started\\n"), "{loaded:?}");
        assert!(!json!(loaded).to_string().contains("Aborted"), "{loaded:?}");
        fs::write(editor.home.work().join("gate"), "ended\n").expect("a reader");
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        // What was loaded and what followed add up to what a later load shows.
        let n_before = editor.updates(&session).len();
        editor.load(&session);
        let all = editor.updates(&session);
        let start = all.iter().rposition(|update| update["status"] == "in_progress").expect("the call");
        let (live, stored) = (fold(&all[start..n_before]), fold(&all[n_before..]));
        let key = format!("call {}", call["toolCallId"].as_str().expect("an id"));
        assert_eq!(live[&key], stored[&key]);
        editor.finish();
    }
}

#[test]
fn an_answer_that_streams_is_shown_from_its_beginning() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let begun = editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let n_told = editor.updates(&session).len();
    let loaded = editor.load(&session);
    assert_eq!(
        (text_of(&loaded, "user_message_chunk"), text_of(&loaded, "agent_message_chunk")),
        ("go".into(), "one".into())
    );
    editor.server.release(0);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let told = editor.updates(&session).split_off(n_told);
    assert_eq!(text_of(&told, "agent_message_chunk"), "one two");
    let mut ids = told.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert!(ids.all(|update| update["messageId"] == begun["messageId"]), "{told:?}");
    editor.finish();
}

#[test]
fn a_call_whose_arguments_stop_coming_is_shown() {
    let turn = Turn::call("write", json!({"path": "a.txt", "content": "a long text"})).hold_after(0);
    let mut editor = Editor::new([turn, Turn::text("done")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    // The model server sends no arguments before it is told to go on.
    let call = editor.wait_update(|update| update["sessionUpdate"] == "tool_call");
    assert_eq!((&call["name"], call.get("rawInput")), (&json!("write"), None));
    editor.server.release(0);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    editor.finish();
}

#[test]
fn a_message_of_an_extension_is_shown_once() {
    let greets = "export default (pi) => pi.on('session_start', () =>
      pi.sendMessage({ customType: 'greeting', content: 'Welcome', display: true }));";
    let mut editor = Editor::new([Turn::text("hi")]);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    editor.ask("session/close", json!({"sessionId": session}));
    editor.home.write_agent_file("extensions/greets.ts", greets);
    let n_told = editor.updates(&session).len();
    editor.load(&session);
    // The list of commands comes after everything else.
    editor.host.wait(|frame| frame["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let told = editor.updates(&session).split_off(n_told);
    let greetings: Vec<_> = told.iter().filter(|update| update["content"]["text"] == "Welcome").collect();
    assert_eq!(greetings.len(), 1, "{told:?}");
    assert!(greetings[0]["messageId"].is_string(), "{greetings:?}");
    editor.finish();
}

#[test]
fn reminders_of_open_tasks_are_shown_live_and_when_loaded() {
    // Only this dialect reminds the model of tasks.
    let turns = [Turn::text("I stop"), Turn::text("Really").times(5)];
    let mut editor = Editor::with(turns, json!({}), |builder| builder.args(["--dialect", "xcsh"]));
    let session = editor.new_session();
    let phases = json!([{"id": "p1", "name": "P", "tasks": [{"id": "t1", "content": "first", "status": "pending"}]}]);
    editor.ask("_pith/command", json!({"sessionId": session, "command": {"type": "set_todos", "phases": phases}}));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let live = text_of(&editor.updates(&session), "user_message_chunk");
    assert!(live.contains("these tasks are not finished"), "{live}");
    let loaded = text_of(&editor.load(&session), "user_message_chunk");
    assert_eq!(loaded, format!("go{live}"));
    editor.finish();
}
