//! Config options and modes.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::Editor;

fn option<'o>(options: &'o Value, id: &str) -> Option<&'o Value> {
    options.as_array()?.iter().find(|option| option["id"] == id)
}

#[test]
fn model_and_thinking_are_options() {
    let capabilities = json!({"session": {"configOptions": {"boolean": {}}}});
    let mut editor = Editor::with([Turn::text("hi")], capabilities, |builder| builder);
    let cwd = editor.home.work();
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let options = &opened["configOptions"];
    let model = option(options, "model").expect("a model");
    assert_eq!(model["category"], "model");
    let current = model["currentValue"].as_str().expect("a value").to_owned();
    let values: Vec<&Value> = model["options"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["options"].as_array().expect("options"))
        .map(|option| &option["value"])
        .collect();
    assert!(values.contains(&&json!(current)), "{model}");
    assert_eq!(opened["modes"]["availableModes"].as_array().map(Vec::len), Some(4));
    assert_eq!(opened["modes"]["currentModeId"], "full");
    assert_eq!(option(options, "auto_compact").expect("a switch")["currentValue"], true);
    let set = |id: &str, value: Value| json!({"sessionId": session, "configId": id, "value": value});
    let changed = editor.ask(
        "session/set_config_option",
        json!({"sessionId": session, "configId": "auto_compact", "type": "boolean", "value": false}),
    );
    assert_eq!(option(&changed["configOptions"], "auto_compact").expect("a switch")["currentValue"], false);
    if let Some(other) = values.iter().find(|value| ***value != json!(current)) {
        let changed = editor.ask("session/set_config_option", set("model", (*other).clone()));
        assert_eq!(option(&changed["configOptions"], "model").expect("a model")["currentValue"], **other);
        editor.ask("session/set_model", json!({"sessionId": session, "modelId": current}));
        let told = editor.wait_update(|update| update["sessionUpdate"] == "config_option_update");
        assert_eq!(option(&told["configOptions"], "model").expect("a model")["currentValue"], current.as_str());
    }
    let (code, message) = editor.refusal("session/set_config_option", set("model", json!("nobody/nothing")));
    assert!(code == -32602 && message.contains(&current), "{message}");
    assert_eq!(editor.refusal("session/set_config_option", set("dance", json!("x"))).0, -32602);
    editor.ask("session/set_mode", json!({"sessionId": session, "modeId": "full"}));
    let refused = editor.refusal("session/set_mode", json!({"sessionId": session, "modeId": "dance"}));
    let known = "Unknown value \"dance\". There are: full, write, ask, read-only";
    assert_eq!(refused, (-32602, known.to_owned()));
    editor.finish();
}

#[test]
fn an_editor_may_say_more_about_a_new_session() {
    let mut editor = Editor::new([Turn::text("hi"), Turn::text("ho"), Turn::text("hey")]);
    let cwd = editor.home.work();
    std::fs::create_dir_all(cwd.join("more")).expect("a directory");
    let system = json!({"mode": "append", "content": [{"type": "text", "text": "Speak like a pirate."}]});
    let opened = editor.ask(
        "session/new",
        json!({"cwd": cwd, "mcpServers": [], "systemPrompt": system,
        "additionalDirectories": [cwd.join("more")], "_meta": {"pith": {"name": "Ship"}}}),
    );
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    editor.prompt(&session, "hi");
    let body = editor.server.requests().last().expect("a request").body.to_string();
    assert!(body.contains("Speak like a pirate.") && body.contains("Further directories of this project:"), "{body}");
    // The way acpx says it: a text replaces. It is a text even if it names a file.
    editor.home.write_file("secret.txt", "the content of a file");
    let opened =
        editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [], "_meta": {"systemPrompt": "secret.txt"}}));
    let second = opened["sessionId"].as_str().expect("an id").to_owned();
    editor.prompt(&second, "hi");
    let body = editor.server.requests().last().expect("a request").body.to_string();
    assert!(body.contains("secret.txt") && !body.contains("the content of a file"), "{body}");
    assert_eq!(editor.ask("session/list", json!({"cwd": cwd}))["sessions"].as_array().map(Vec::len), Some(2));
    let own = json!({"pith": {"tools": ["read"], "thinkingLevel": "off"}});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [], "_meta": own}));
    let third = opened["sessionId"].as_str().expect("an id").to_owned();
    editor.prompt(&third, "hi");
    let tools = editor.server.requests().last().expect("a request").body["tools"].clone();
    assert_eq!(
        tools.as_array().map(|tools| tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>()),
        Some(vec![&json!("read")])
    );
    let refused = editor
        .refusal("session/new", json!({"cwd": cwd, "mcpServers": [], "systemPrompt": {"mode": "sing", "content": []}}));
    assert_eq!(refused.0, -32602);
    editor.finish();
}
