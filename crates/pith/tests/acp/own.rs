//! What the protocol has no words for: slash commands and methods of pith's own.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

/// What a slash command answers.
fn said(editor: &mut Editor, session: &str, command: &str) -> String {
    let before = text_of(&editor.updates(session), "agent_message_chunk").len();
    assert_eq!(editor.prompt(session, command), "end_turn");
    text_of(&editor.updates(session), "agent_message_chunk").split_off(before)
}

#[test]
fn slash_commands_of_pith_are_no_part_of_the_conversation() {
    let mut editor = Editor::new([Turn::text("hi"), Turn::text("a file")]);
    let session = editor.new_session();
    let offered = editor.wait_update(|update| update["sessionUpdate"] == "available_commands_update");
    let names: Vec<_> =
        offered["availableCommands"].as_array().expect("a list").iter().map(|command| &command["name"]).collect();
    assert_eq!(names, ["compact", "name", "model", "thinking", "stats", "export", "reload", "mcp", "diagnostics"]);
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    assert_eq!(said(&mut editor, &session, "/name The ship"), "The session is called The ship.");
    editor.wait_update(|update| update["sessionUpdate"] == "session_info_update" && update["title"] == "The ship");
    assert!(said(&mut editor, &session, "/stats").starts_with("1 prompts, 1 answers, 0 tool calls; "));
    assert_eq!(said(&mut editor, &session, "/model"), "The model is mock-anthropic/claude-mock.");
    assert_eq!(said(&mut editor, &session, "/model plain-mock"), "The model is mock-anthropic/plain-mock.");
    editor.wait_update(|update| {
        update["sessionUpdate"] == "config_option_update" && update.to_string().contains("mock-anthropic/plain-mock")
    });
    assert_eq!(said(&mut editor, &session, "/thinking"), "The thinking level is off.");
    assert_eq!(said(&mut editor, &session, "/mcp"), "No MCP server is configured.");
    assert_eq!(said(&mut editor, &session, "/diagnostics"), "Nothing is wrong.");
    assert_eq!(
        said(&mut editor, &session, "/export page.html"),
        format!("Written to {}.", editor.home.work().join("page.html").display())
    );
    assert!(editor.home.read_file("page.html").is_some());
    // A mistake is told in the same way, and what only looks like a command is a prompt.
    let mistakes = [
        ("/model nobody/nothing", "nobody/nothing"),
        ("/thinking loudly", "loudly"),
        ("/name", "/name needs a name"),
        ("/compact", "Nothing to compact"),
    ];
    for (text, expected) in mistakes {
        let told = said(&mut editor, &session, text);
        assert!(told.contains(expected), "{text}: {told}");
    }
    assert_eq!(said(&mut editor, &session, "/etc/passwd is what?"), "a file");
    let request = editor.server.requests().last().expect("a request").body.to_string();
    assert!(request.contains("/etc/passwd is what?") && !request.contains("/stats"), "{request}");
    editor.finish();
}

#[test]
fn templates_come_before_commands_of_that_name() {
    let mut editor = Editor::new([Turn::text("from the model")]);
    editor.home.write_agent_file("prompts/stats.md", "---\ndescription: Mine\n---\nCount the lines.");
    let session = editor.new_session();
    let offered = editor.wait_update(|update| update["sessionUpdate"] == "available_commands_update");
    let commands = offered["availableCommands"].as_array().expect("a list");
    let stats: Vec<_> = commands.iter().filter(|command| command["name"] == "stats").collect();
    assert_eq!((stats.len(), &stats[0]["description"]), (1, &json!("Mine")));
    assert_eq!(said(&mut editor, &session, "/stats"), "from the model");
    // What was read again is offered, too.
    editor.home.write_agent_file("prompts/greet.md", "Hello");
    said(&mut editor, &session, "/reload");
    editor.wait_update(|update| {
        update["sessionUpdate"] == "available_commands_update" && update.to_string().contains("\"greet\"")
    });
    editor.finish();
}

#[test]
fn a_command_may_stand_beside_other_blocks() {
    let mut editor = Editor::new([Turn::text("from the template"), Turn::text("again")]);
    editor.home.write_agent_file("prompts/greet.md", "Greet $1.");
    let session = editor.new_session();
    editor.wait_update(|update| update.to_string().contains("\"greet\""));
    let link = json!({"type": "resource_link", "name": "a.rs", "uri": "file:///a.rs"});
    let text = |text: &str| json!({"type": "text", "text": text});
    for prompt in [json!([link, text("/stats")]), json!([text("/stats"), link])] {
        editor.ask("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    }
    assert_eq!(editor.server.requests().len(), 0);
    for prompt in [json!([link, text("/greet Ada")]), json!([text("/greet Ada"), link])] {
        editor.ask("session/prompt", json!({"sessionId": session, "prompt": prompt}));
        let request = editor.server.requests().last().expect("a request").body["messages"].to_string();
        assert!(request.contains("Greet Ada.") && !request.contains("/greet"), "{request}");
    }
    editor.finish();
}

#[test]
fn a_cancel_ends_a_compaction() {
    let mut editor = Editor::new([Turn::text("hi"), Turn::text("a summary").chunk(3).hold_after(1)]);
    editor.home.write_settings(&json!({"compaction": {"keepRecentTokens": 1}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    let id = editor.send_prompt(&session, "/compact the tests");
    editor.server.wait_request(1);
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(id)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn commands_of_rpc_mode_are_methods() {
    let mut editor = Editor::new([Turn::text("one"), Turn::text("two")]);
    let session = editor.new_session();
    editor.prompt(&session, "first");
    editor.prompt(&session, "second");
    let ask = |editor: &mut Editor, method: &str, mut params: Value| {
        params["sessionId"] = json!(session);
        editor.ask(method, params)
    };
    assert_eq!(ask(&mut editor, "_pith/state", json!({}))["sessionId"], session.as_str());
    assert_eq!(ask(&mut editor, "_pith/stats", json!({}))["userMessages"], 2);
    let bash = ask(&mut editor, "_pith/bash", json!({"command": "echo $((6 * 7))"}));
    assert_eq!(bash["output"], "42\n", "{bash}");
    let entries = ask(&mut editor, "_pith/entries", json!({}))["entries"].clone();
    let prompts: Vec<_> = entries
        .as_array()
        .expect("a list")
        .iter()
        .filter(|entry| entry["message"]["role"] == "user")
        .map(|entry| entry["id"].as_str().expect("an id"))
        .collect();
    ask(&mut editor, "_pith/label", json!({"entryId": prompts[1], "label": "here"}));
    assert!(ask(&mut editor, "_pith/tree", json!({"flat": true})).to_string().contains("\"here\""));
    let last = ask(&mut editor, "_pith/command", json!({"command": {"type": "get_last_assistant_text"}}));
    assert_eq!(last["text"], "two");
    assert_eq!(ask(&mut editor, "_pith/diagnostics", json!({})), json!({"diagnostics": []}));
    assert_eq!(editor.ask("_pith/diagnostics", json!({})), json!({"diagnostics": []}));
    // A fork is another session; the first one stays as it is.
    let fork = ask(&mut editor, "_pith/fork", json!({"entryId": prompts[1]}));
    assert_eq!(fork["text"], "second");
    let other = fork["sessionId"].as_str().expect("an id").to_owned();
    assert_ne!(other, session);
    let state = editor.ask("_pith/command", json!({"sessionId": other, "command": {"type": "get_fork_messages"}}));
    assert!(state.to_string().contains("first"), "{state}");
    let last = editor.ask("_pith/command", json!({"sessionId": other, "command": {"type": "get_last_assistant_text"}}));
    assert_eq!(last["text"], "one");
    editor.finish();
}

#[test]
fn wrong_requests_of_own_methods_are_refused() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    let command = |command: Value| json!({"sessionId": session, "command": command});
    let refused = [
        ("_pith/dance", json!({"sessionId": session}), -32601, "_pith/dance"),
        ("_pith/state", json!({}), -32602, "sessionId"),
        ("_pith/state", json!({"sessionId": "nobody"}), -32002, "nobody"),
        ("_pith/bash", json!({"sessionId": session}), -32602, "command"),
        ("_pith/fork", json!({"sessionId": session, "entryId": "nothing"}), -32602, "nothing"),
        ("_pith/command", command(json!("get_state")), -32602, "command"),
        ("_pith/command", command(json!({"type": "dance"})), -32602, "dance"),
        ("_pith/command", command(json!({"type": "new_session"})), -32602, "session/new"),
        ("_pith/command", command(json!({"type": "set_label"})), -32602, "entryId"),
        ("_pith/set_mcp_servers", json!({"sessionId": session, "servers": {"x": {}}}), -32603, "x"),
    ];
    for (method, params, code, text) in refused {
        let (found, message) = editor.refusal(method, params.clone());
        assert_eq!(found, code, "{method} {params}: {message}");
        assert!(message.contains(text), "{method} {params}: {message}");
    }
    editor.finish();
}

#[test]
fn the_model_calls_tools_of_the_editor() {
    let turns = [
        Turn::call("weather", json!({"town": "Bern"})),
        Turn::text("It rains."),
        Turn::call("weather", json!({"town": "Rome"})),
        Turn::text("Nobody knows."),
        Turn::call("weather", json!({"town": "Oslo"})),
    ];
    let mut editor = Editor::new(turns);
    let session = editor.new_session();
    let parameters = json!({"type": "object", "properties": {"town": {"type": "string"}}});
    let tool = json!({"name": "weather", "description": "The weather", "parameters": parameters});
    let set = editor.ask("_pith/host_tools", json!({"sessionId": session, "tools": [tool]}));
    assert_eq!(set["toolNames"], json!(["weather"]), "{set}");
    let asked = |editor: &mut Editor, town: &str| {
        let asked = editor.host.wait(|frame| frame["method"] == "_pith/host_tool_call");
        assert_eq!(asked["params"]["toolName"], "weather");
        assert_eq!(asked["params"]["arguments"], json!({"town": town}));
        asked["id"].clone()
    };
    let prompt = editor.send_prompt(&session, "Bern?");
    let id = asked(&mut editor, "Bern");
    let result = json!({"content": [{"type": "text", "text": "rain"}]});
    editor.host.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert!(editor.server.requests()[1].body.to_string().contains("rain"));
    let prompt = editor.send_prompt(&session, "Rome?");
    let id = asked(&mut editor, "Rome");
    let error = json!({"code": -32603, "message": "the sensor is broken"});
    editor.host.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert!(editor.server.requests()[3].body.to_string().contains("the sensor is broken"));
    // A call that is never answered ends with the turn.
    let prompt = editor.send_prompt(&session, "Oslo?");
    let id = asked(&mut editor, "Oslo");
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.host.wait(|frame| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == id);
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn an_editor_that_asks_for_it_hears_events_of_pith() {
    for wants in [true, false] {
        let capabilities = json!({"_meta": {"pith": {"events": wants}}});
        let mut editor = Editor::with([Turn::text("hi")], capabilities, |builder| builder);
        let shows = "export default (pi) => pi.on('session_start', (event, ctx) => ctx.ui.setStatus('k', 'busy'));";
        editor.home.write_agent_file("extensions/shows.ts", shows);
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "hello"), "end_turn");
        editor.ask("_pith/bash", json!({"sessionId": session, "command": "echo out"}));
        let frames = editor.finish();
        let own: Vec<_> = frames
            .iter()
            .filter(|frame| frame["method"].as_str().is_some_and(|name| name.starts_with("_pith/")))
            .collect();
        if !wants {
            assert!(own.is_empty(), "{own:?}");
            continue;
        }
        assert!(own.iter().all(|frame| frame["params"]["sessionId"] == session.as_str()));
        let params = |method: &str| -> Vec<&Value> {
            own.iter().filter(|frame| frame["method"] == method).map(|frame| &frame["params"]).collect()
        };
        let running: Vec<_> = params("_pith/turn").iter().map(|turn| turn["running"].clone()).collect();
        assert_eq!(running, [true, false]);
        assert_eq!(params("_pith/status")[0]["statusText"], "busy");
        assert!(params("_pith/bash_update").iter().any(|update| update.to_string().contains("out")));
    }
}

#[test]
fn what_a_command_changes_is_shown() {
    let mut editor = Editor::with([], json!({"session": {"configOptions": {"boolean": {}}}}), |builder| builder);
    let session = editor.new_session();
    let command = |editor: &mut Editor, command: Value| {
        editor.ask("_pith/command", json!({"sessionId": session, "command": command}));
    };
    let phases = json!([{"name": "Now", "tasks": [{"content": "Write it", "status": "in_progress"}]}]);
    command(&mut editor, json!({"type": "set_todos", "phases": phases}));
    let plan = editor.wait_update(|update| update["sessionUpdate"] == "plan");
    assert_eq!(plan["entries"], json!([{"content": "Write it", "priority": "high", "status": "in_progress"}]));
    command(&mut editor, json!({"type": "set_auto_compaction", "enabled": false}));
    let options = editor.wait_update(|update| update["sessionUpdate"] == "config_option_update");
    let is_off = |option: &Value| option["id"] == "auto_compact" && option["currentValue"] == false;
    assert!(options["configOptions"].as_array().is_some_and(|options| options.iter().any(is_off)), "{options}");
    editor.finish();
}

#[test]
fn a_compaction_is_shown_as_the_editor_can_show_it() {
    for (capabilities, expected) in
        [(json!({"session": {"compaction": {}}}), &["in_progress", "completed"][..]), (json!({}), &[])]
    {
        let mut editor = Editor::with([Turn::text("hi"), Turn::text("a summary")], capabilities, |builder| builder);
        editor.home.write_settings(&json!({"compaction": {"keepRecentTokens": 1}}));
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "hello"), "end_turn");
        let text = said(&mut editor, &session, "/compact");
        assert!(text.starts_with("Summarised: ") && !text.contains("a summary"), "{text}");
        let updates = editor.updates(&session);
        let shown: Vec<_> = updates.iter().filter(|update| update["sessionUpdate"] == "compaction_update").collect();
        let states: Vec<_> = shown.iter().filter_map(|update| update["status"].as_str()).collect();
        assert_eq!(states, expected);
        if let [start, end] = shown[..] {
            assert_eq!(start["compactionId"], end["compactionId"]);
            assert!(end["summary"][0]["text"].as_str().is_some_and(|text| text.contains("a summary")), "{end}");
        }
        editor.finish();
    }
}

#[test]
fn an_extension_cannot_put_another_session_in_the_place_of_its_own() {
    let asks = "export default (pi) => pi.registerCommand('other', { handler: async (_, ctx) =>
      ctx.ui.notify('answer ' + JSON.stringify(await ctx.newSession())) });";
    let mut editor = Editor::new([Turn::text("still here")]);
    editor.home.write_agent_file("extensions/asks.ts", asks);
    let session = editor.new_session();
    assert_eq!(said(&mut editor, &session, "/other"), "answer {\"cancelled\":true}\n");
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    assert!(editor.host.stderr().contains("cannot take the place of this session"));
    said(&mut editor, &session, "/other");
    let found = editor.ask("_pith/diagnostics", json!({"sessionId": session}))["diagnostics"].take();
    let kept = found.as_array().expect("a list").iter().filter(|found| found["code"] == "session_kept");
    assert_eq!(kept.count(), 1, "{found}");
    editor.finish();
}
