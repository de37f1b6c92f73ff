//! Signing in: keys, not accounts.

use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Terminal, Turn};
use serde_json::{Value, json};

use crate::support::Editor;

const PITH: &str = env!("CARGO_BIN_EXE_pith");

/// An editor with these capabilities, and no key anywhere; returns what it is offered.
fn keyless(capabilities: Value) -> (Editor, Value) {
    let home = TempHome::new();
    let host = Host::builder(PITH).home(&home).arg("acp").spawn();
    let mut editor = Editor::of(host, home, ModelServer::start(Script::of([])));
    let greeting = editor.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
    (editor, greeting["authMethods"].clone())
}

/// The error of a session that cannot be opened.
fn refused(editor: &mut Editor) -> Value {
    let id = editor.send("session/new", json!({"cwd": editor.home.work(), "mcpServers": []}));
    editor.answer(id)["error"].clone()
}

#[test]
fn editors_are_offered_the_sign_in_that_they_can_show() {
    let terminal = json!([
        {"type": "terminal", "id": "setup", "name": "Set up a model provider", "args": ["auth", "setup"]},
    ]);
    let start = json!({"command": PITH, "args": ["auth", "setup"], "label": "Set up a model provider"});
    let older = json!([{"id": "setup", "name": "Set up a model provider", "_meta": {"terminal-auth": start}}]);
    for (capabilities, expected) in [
        (json!({}), json!([])),
        (json!({"auth": {"terminal": true}}), terminal.clone()),
        (json!({"auth": {"terminal": true}, "_meta": {"terminal-auth": true}}), terminal),
        (json!({"_meta": {"terminal-auth": true}}), older),
    ] {
        let (mut editor, offered) = keyless(capabilities);
        assert_eq!(offered, expected);
        let error = refused(&mut editor);
        assert_eq!((&error["code"], &error["data"]["authMethods"]), (&json!(-32000), &expected), "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with("No model has a key.")), "{error}");
        // What needs no model needs no key.
        assert_eq!(editor.ask("session/list", json!({}))["sessions"], json!([]));
        editor.ask("session/delete", json!({"sessionId": "nobody"}));
        editor.finish();
    }
}

#[test]
fn a_session_opens_after_the_sign_in() {
    let (mut editor, _) = keyless(json!({"_meta": {"terminal-auth": true}}));
    assert_eq!(refused(&mut editor)["code"], -32000);
    editor.home.write_agent_file("auth.json", r#"{"anthropic": {"type": "api_key", "key": "sk-1"}}"#);
    assert_eq!(editor.ask("authenticate", json!({"methodId": "setup"})), json!({}));
    let unknown = editor.refusal("authenticate", json!({"methodId": "oauth"}));
    assert_eq!(unknown, (-32602, "Unknown method of authentication: oauth".to_owned()));
    editor.new_session();
    editor.finish();
}

#[test]
fn a_key_is_tried_before_it_is_stored() {
    let server = ModelServer::start(Script::of([Turn::status(401), Turn::text("hello"), Turn::status(400)]));
    let home = TempHome::for_server(&server);
    let provider = Api::Anthropic.provider();
    let stored = || {
        let text = std::fs::read_to_string(home.agent().join("auth.json")).unwrap_or_else(|_| "{}".to_owned());
        serde_json::from_str::<Value>(&text).expect("JSON")[provider]["key"].clone()
    };
    let sign_in = |key: &str, said: &str, code: i32| {
        // As an editor starts it: behind the command line of its agent.
        let mut terminal = Terminal::spawn(PITH, &["acp", "--thinking", "low", "auth", "setup"], &home);
        terminal.wait("Provider: ");
        terminal.type_keys(&format!("{provider}\r"));
        terminal.wait("Key of ");
        terminal.type_keys(&format!("{key}\r"));
        terminal.wait(said);
        assert_eq!(terminal.exit_code(), code, "{}", terminal.screen());
        assert!(!terminal.screen().contains(key));
    };
    sign_in("sk-wrong", "does not accept the key, which was not stored", 1);
    assert_eq!(stored(), Value::Null);
    sign_in("sk-right", "The key of ", 0);
    assert_eq!(stored(), "sk-right");
    // A provider that cannot say whether the key is right does not keep it out.
    sign_in("sk-other", "The key could not be tried: ", 0);
    assert_eq!(stored(), "sk-other");
    let keys: Vec<_> = server.requests().iter().map(|request| request.header("x-api-key").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("sk-wrong".to_owned()), Some("sk-right".to_owned()), Some("sk-other".to_owned())]);

    let mut terminal = Terminal::spawn(PITH, &["auth", "setup"], &home);
    terminal.wait("Provider: ");
    terminal.type_keys("\r");
    terminal.wait("nothing was changed");
    assert_eq!(terminal.exit_code(), 1);
}

#[test]
fn a_sign_in_without_a_terminal_is_refused() {
    let home = TempHome::new();
    let output = std::process::Command::new(PITH)
        .args(["acp", "auth", "setup"])
        .env_clear()
        .envs(home.environment())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("auth setup asks on a terminal"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_key_that_the_provider_refuses_fails_the_prompt() {
    let mut editor = Editor::new([Turn::status(401)]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "hi");
    let error = editor.answer(prompt)["error"].clone();
    assert_eq!((&error["code"], &error["data"]["status"]), (&json!(-32000), &json!(401)), "{error}");
    editor.finish();
}
