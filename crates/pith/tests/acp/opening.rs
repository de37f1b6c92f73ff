//! What an opened session begins with, what stays of one that cannot be opened, and what a refusal says.

use std::path::Path;

use pith_testkit::{TempHome, Turn, eventually};
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

fn option(opened: &Value, id: &str) -> Value {
    let mut options = opened["configOptions"].as_array().expect("options").iter();
    options.find(|option| option["id"] == id).map_or(Value::Null, |option| option["currentValue"].clone())
}

/// How many session files there are. Unlike `sessions`, it does not mind that one is removed meanwhile.
fn n_files(home: &TempHome) -> usize {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries(&home.agent().join("sessions")).flat_map(|directory| entries(&directory).collect::<Vec<_>>());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).count()
}

impl Editor {
    /// Sends a request about a session, or for one, in the home's directory.
    fn open(&mut self, method: &str, session: &str) -> Value {
        let cwd = self.home.work();
        self.ask(method, json!({"sessionId": session, "cwd": cwd, "mcpServers": []}))
    }

    fn set(&mut self, session: &str, id: &str, value: &str) {
        self.ask("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}));
    }

    fn close(&mut self, session: &str) {
        self.ask("session/close", json!({"sessionId": session}));
    }

    /// Sends a request that must fail; returns code, message and the field it names.
    #[track_caller]
    fn refused_field(&mut self, method: &str, params: Value) -> (i64, String, Value) {
        let id = self.send(method, params);
        let error = self.answer(id)["error"].take();
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{method} succeeded")).to_owned();
        (error["code"].as_i64().expect("a code"), message, error["data"]["field"].clone())
    }

    fn n_listed(&mut self) -> usize {
        self.ask("session/list", json!({}))["sessions"].as_array().expect("a list").len()
    }
}

#[test]
fn flags_do_not_undo_what_was_chosen_in_a_session() {
    let flags = ["--thinking", "low", "--approval-mode", "full"];
    let mut editor = Editor::with([Turn::text("hi")], json!({}), |builder| builder.args(flags));
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    editor.set(&session, "thought_level", "high");
    editor.set(&session, "mode", "ask");
    editor.close(&session);
    for method in ["session/load", "session/resume", "session/fork"] {
        let opened = editor.open(method, &session);
        assert_eq!(
            (option(&opened, "thought_level"), option(&opened, "mode")),
            (json!("high"), json!("ask")),
            "{method}"
        );
        assert_eq!(option(&opened, "model"), "mock-anthropic/claude-mock");
        editor.close(opened["sessionId"].as_str().unwrap_or(&session));
    }
    editor.open("session/load", &session);
    editor.set(&session, "model", "mock-anthropic/plain-mock");
    editor.close(&session);
    let opened = editor.open("session/load", &session);
    assert_eq!(option(&opened, "model"), "mock-anthropic/plain-mock");
    editor.close(&session);
    // What the request itself says comes before what the session remembers.
    let own = json!({"pith": {"model": "mock-anthropic/claude-mock", "thinkingLevel": "medium"}});
    let cwd = editor.home.work();
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": own});
    let opened = editor.ask("session/load", load);
    assert_eq!(option(&opened, "model"), "mock-anthropic/claude-mock");
    assert_eq!(option(&opened, "thought_level"), "medium");
    // New sessions begin with the flags.
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    assert_eq!((option(&opened, "thought_level"), option(&opened, "mode")), (json!("low"), json!("full")));
    editor.finish();
}

#[test]
fn nothing_stays_of_a_copy_that_is_refused() {
    let mut editor = Editor::new([Turn::text("hi")]);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    let cwd = editor.home.work();
    let wrong = json!([{"type": "http", "name": "a", "url": "nowhere", "headers": []}]);
    let fork = json!({"sessionId": session, "cwd": cwd, "mcpServers": wrong});
    assert_eq!(editor.refusal("session/fork", fork).0, -32602);
    let own = json!({"pith": {"model": "nobody/nothing"}});
    let fork = json!({"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": own});
    let (code, message, field) = editor.refused_field("session/fork", fork);
    assert_eq!((code, field), (-32602, json!("_meta.pith.model")), "{message}");
    eventually("the files of the copies are removed", || n_files(&editor.home) == 1);
    assert_eq!(editor.n_listed(), 1);
    // A session that was there before stays.
    editor.close(&session);
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": wrong});
    let before = editor.updates(&session).len();
    assert_eq!(editor.refusal("session/load", load).0, -32602);
    assert_eq!(editor.updates(&session).len(), before, "a session that is refused is not shown");
    editor.open("session/load", &session);
    editor.finish();
}

#[test]
fn requests_that_open_one_session_at_once_share_it() {
    let mut editor = Editor::new([Turn::text("hello"), Turn::text("again")]);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    editor.close(&session);
    let before = editor.updates(&session).len();
    let open = json!({"sessionId": session, "cwd": editor.home.work(), "mcpServers": []});
    let methods = ["session/resume", "session/load", "session/resume", "session/load"];
    let sent: Vec<u64> = methods.iter().map(|method| editor.send(method, open.clone())).collect();
    for id in sent {
        editor.result(id);
    }
    assert_eq!(text_of(&editor.updates(&session)[before..], "agent_message_chunk"), "hellohello");
    // One that is being closed is opened again.
    let closed = editor.send("session/close", json!({"sessionId": session}));
    let loaded = editor.send("session/load", open);
    editor.result(closed);
    editor.result(loaded);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    editor.finish();
}

#[test]
fn a_copy_before_a_prompt_can_be_withdrawn() {
    let mut editor = Editor::new([Turn::text("hello")]);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    let tree = editor.ask("_pith/entries", json!({"sessionId": session}));
    let is_prompt = |entry: &&Value| entry["message"]["role"] == "user";
    let entry = tree["entries"].as_array().expect("entries").iter().find(is_prompt).expect("a prompt")["id"].clone();
    let hangs = "export default (pi) => pi.on('session_start', () => new Promise(() => {}));";
    editor.home.write_agent_file("extensions/hangs.ts", hangs);
    let id = editor.send("_pith/fork", json!({"sessionId": session, "entryId": entry}));
    editor.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(editor.answer(id)["error"]["code"], -32800);
    eventually("the file of the copy is removed", || n_files(&editor.home) == 1);
    // One that is under way when the editor leaves holds nothing up.
    editor.send("_pith/fork", json!({"sessionId": session, "entryId": entry}));
    let home = editor.home.clone();
    editor.finish();
    assert_eq!(n_files(&home), 1);
}

#[test]
fn a_copy_of_a_session_without_a_prompt_is_a_new_one_like_it() {
    let mut editor = Editor::new([Turn::text("hi")]);
    let session = editor.new_session();
    editor.set(&session, "thought_level", "high");
    editor.set(&session, "mode", "read-only");
    let copy = editor.open("session/fork", &session);
    assert_eq!((option(&copy, "thought_level"), option(&copy, "mode")), (json!("high"), json!("read-only")));
    let copy = copy["sessionId"].as_str().expect("an id").to_owned();
    assert_ne!(copy, session);
    assert_eq!(editor.prompt(&copy, "hi"), "end_turn");
    editor.finish();
}

#[test]
fn a_session_whose_header_is_destroyed_is_not_said_to_be_missing() {
    let mut editor = Editor::new([Turn::text("hi")]);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    editor.close(&session);
    let file = editor.home.sessions().remove(0).path;
    let text = std::fs::read_to_string(&file).expect("the session");
    let (_, rest) = text.split_once('\n').expect("lines");
    std::fs::write(&file, format!("{{\n{rest}")).expect("it can be written");
    let cwd = editor.home.work();
    for method in ["session/load", "session/resume", "session/fork"] {
        let refused = editor.refusal(method, json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        let why = format!("Session file {}: its header cannot be read", file.display());
        assert_eq!(refused, (-32603, why), "{method}");
    }
    editor.finish();
}

#[test]
fn wrong_models_are_named() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    let (code, message, field) =
        editor.refused_field("session/set_model", json!({"sessionId": session, "modelId": "nobody"}));
    assert_eq!((code, field), (-32602, json!("modelId")), "{message}");
    let own = json!({"pith": {"model": "nobody/nothing"}});
    let new = json!({"cwd": editor.home.work(), "mcpServers": [], "_meta": own});
    let (code, message, field) = editor.refused_field("session/new", new);
    assert_eq!((code, field), (-32602, json!("_meta.pith.model")), "{message}");
    let set = json!({"sessionId": session, "configId": "mode"});
    let (code, message, field) = editor.refused_field("session/set_config_option", set);
    assert_eq!((code, message, field), (-32602, "Missing parameter: value".to_owned(), json!("value")));
    editor.finish();
}

#[test]
fn an_open_session_is_not_attached_to_with_wrong_parameters() {
    let mut editor = Editor::new([Turn::text("hi")]);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    let cwd = editor.home.work();
    for method in ["session/load", "session/resume"] {
        let mut check = |key: &str, value: Value, field: &str| {
            let mut params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
            params[key] = value;
            let (code, message, found) = editor.refused_field(method, params);
            assert_eq!((code, found), (-32602, json!(field)), "{method}: {message}");
            message
        };
        check("cwd", json!("."), "cwd");
        check("additionalDirectories", json!([cwd.join("nowhere")]), "additionalDirectories[0]");
        let message = check("systemPrompt", json!({"mode": "zz", "content": []}), "systemPrompt.mode");
        assert_eq!(message, "Unknown mode of the system prompt: \"zz\". There are: append, override");
    }
    let (code, message, field) = editor.refused_field("session/list", json!({"cwd": "."}));
    assert_eq!((code, field), (-32602, json!("cwd")), "{message}");
    let absent = json!({"systemPrompt": null, "pith": {"tools": null, "model": null}});
    editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [], "_meta": absent}));
    editor.finish();
}
