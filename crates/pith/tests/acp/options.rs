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
    let listed = editor.ask("session/list", json!({"cwd": cwd}));
    let directories = |id: &str| {
        let session = listed["sessions"].as_array().expect("a list").iter().find(|session| session["sessionId"] == id);
        session.expect("it is listed").get("additionalDirectories").cloned()
    };
    assert_eq!((directories(&session), directories(&second)), (Some(json!([cwd.join("more")])), None));
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

#[test]
fn an_editor_is_told_at_once_what_others_select() {
    let selects = "export default (pi) => {
      pi.registerCommand('choose', { handler: async (_, ctx) => {
        await pi.setModel(ctx.modelRegistry.getAvailable().find((model) => model.id !== ctx.model.id));
      } });
      pi.registerCommand('think', { handler: async (level) => pi.setThinkingLevel(level) });
      pi.registerCommand('offer', { handler: async () => pi.registerProvider('late', {
        baseUrl: 'https://example.invalid', apiKey: 'k', api: 'anthropic-messages', models: [{ id: 'm', name: 'Late' }],
      }) });
    };";
    let mut editor = Editor::new([Turn::text("hi")]);
    editor.home.write_agent_file("extensions/selects.ts", selects);
    let cwd = editor.home.work();
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let value = |options: &Value, id: &str| option(options, id).map(|option| option["currentValue"].clone());
    let (model, level) = (value(&opened["configOptions"], "model"), value(&opened["configOptions"], "thought_level"));
    let wanted = if level == Some(json!("high")) { "low" } else { "high" };
    // No turn follows that could tell it.
    let mut told = |prompt: &str| {
        assert_eq!(editor.prompt(&session, prompt), "end_turn");
        editor.wait_update(|update| update["sessionUpdate"] == "config_option_update")["configOptions"].take()
    };
    assert_eq!(value(&told(&format!("/think {wanted}")), "thought_level"), Some(json!(wanted)));
    assert_ne!(value(&told("/choose"), "model"), model);
    assert!(told("/offer").to_string().contains("late/m"));
    // The editor is told of its own change by the answer alone.
    editor.ask("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model}));
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    let frames = editor.finish();
    let told = frames.iter().filter(|frame| frame["params"]["update"]["sessionUpdate"] == "config_option_update");
    assert_eq!(told.count(), 3);
}

#[test]
fn a_system_prompt_replaces_or_extends_the_own_one() {
    let prompt = |mode: &str| json!({"mode": mode, "content": [{"type": "text", "text": "Speak like a pirate."}]});
    let ways = [
        (json!({"systemPrompt": prompt("append")}), true),
        (json!({"systemPrompt": prompt("override")}), false),
        (json!({"_meta": {"systemPrompt": {"append": "Speak like a pirate."}}}), true),
        (json!({"_meta": {"systemPrompt": "Speak like a pirate."}}), false),
    ];
    let mut editor = Editor::new(std::iter::repeat_n(Turn::text("Arr"), ways.len()));
    let cwd = editor.home.work();
    for (mut params, has_own) in ways {
        params["cwd"] = json!(cwd);
        params["mcpServers"] = json!([]);
        let opened = editor.ask("session/new", params.clone());
        editor.prompt(opened["sessionId"].as_str().expect("an id"), "hi");
        let system = editor.server.requests().last().expect("a request").body["system"].to_string();
        assert!(system.contains("Speak like a pirate."), "{params}: {system}");
        assert_eq!(system.contains("coding agent"), has_own, "{params}: {system}");
    }
    let wrong = json!({"cwd": cwd, "mcpServers": [], "_meta": {"systemPrompt": 5}});
    assert_eq!(editor.refusal("session/new", wrong).0, -32602);
    editor.finish();
}

#[test]
fn a_change_in_the_middle_of_a_turn_holds_from_the_next_request_on() {
    let mut editor = Editor::new([Turn::call("ls", json!({})).hold_after(1), Turn::text("done")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    editor.server.wait_request(0);
    let set = json!({"sessionId": session, "configId": "model", "value": "mock-anthropic/plain-mock"});
    editor.ask("session/set_config_option", set);
    editor.server.release(0);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let models: Vec<Value> = editor.server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["claude-mock", "plain-mock"]);
    editor.finish();
}

#[test]
fn the_command_line_narrows_the_models() {
    let mut editor =
        Editor::with([], json!({}), |builder| builder.args(["--models", "mock-anthropic/plain-mock,gpt-mock"]));
    let cwd = editor.home.work();
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let groups = option(&opened["configOptions"], "model").expect("a model")["options"].clone();
    let models = groups.as_array().expect("groups").iter().flat_map(|group| group["options"].as_array());
    let mut values: Vec<_> = models.flatten().filter_map(|model| model["value"].as_str()).collect();
    values.sort_unstable();
    // The one in use is a choice, too.
    assert_eq!(values, ["mock-anthropic/claude-mock", "mock-anthropic/plain-mock", "mock-openai/gpt-mock"]);
    let set = json!({"sessionId": opened["sessionId"], "configId": "model", "value": "mock-openai-responses/gpt-mock"});
    assert_eq!(editor.refusal("session/set_config_option", set).0, -32602);
    editor.finish();
}

#[test]
fn a_change_that_is_withdrawn_does_not_silence_later_ones() {
    // The handler of the prompt holds up the change of the model until the editor answers its question.
    let holds = "export default (pi) => {
      pi.on('model_select', () => {});
      pi.on('input', async (_, ctx) => { await ctx.ui.confirm('Sure?', 'It takes long.'); });
    };";
    let mut editor = Editor::new([Turn::text("hi")]);
    editor.home.write_agent_file("extensions/holds.ts", holds);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let set = json!({"sessionId": session, "configId": "model", "value": "mock-anthropic/plain-mock"});
    let change = editor.send("session/set_config_option", set);
    // The change asks the session four things first. Each round gives it time for one.
    for _ in 0..8 {
        editor.ask("_pith/state", json!({"sessionId": session}));
    }
    // What is changed meanwhile is not told, because the answer would tell it.
    let level = json!({"type": "set_thinking_level", "level": "low"});
    editor.ask("_pith/command", json!({"sessionId": session, "command": level}));
    editor.notify("$/cancel_request", json!({"requestId": change}));
    assert_eq!(editor.answer(change)["error"]["code"], -32800);
    let value = |update: &Value, id: &str| {
        let is_told = update["sessionUpdate"] == "config_option_update";
        is_told.then(|| option(&update["configOptions"], id).map(|option| option["currentValue"].clone())).flatten()
    };
    editor.wait_update(|update| value(update, "thought_level") == Some(json!("low")));
    editor.reply(&asked, json!({"outcome": {"outcome": "selected", "optionId": "allow"}}));
    editor.wait_update(|update| value(update, "model") == Some(json!("mock-anthropic/plain-mock")));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    editor.finish();
}
