//! What an editor is told while the model works, and that it is told the same when it loads the session later.

use pith_testkit::{Block, Fault, Turn};
use serde_json::{Value, json};

use crate::support::{Editor, fold, text_of, updates};

/// An answer with reasoning, text and one call.
fn working(name: &str, arguments: Value) -> Turn {
    Turn::blocks([Block::thinking("Let me see."), Block::text("Working."), Block::call(name, arguments)])
}

/// A session that uses every tool an editor shows in its own way.
fn tour() -> Vec<Turn> {
    vec![
        working("write", json!({"path": "a.txt", "content": "one\ntwo\nthree\n"})),
        working("edit", json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "TWO"}]})),
        working("read", json!({"path": "a.txt", "offset": 2, "limit": 1})),
        working("bash", json!({"command": "echo out; exit 3"})),
        working("grep", json!({"pattern": "TWO"})),
        Turn::text("Done."),
    ]
}

fn tourist(capabilities: Value) -> Editor {
    Editor::with(tour(), capabilities, |builder| builder.args(["--tools", "read,write,edit,bash,grep"]))
}

#[test]
fn tool_calls_have_kinds_titles_places_and_changes() {
    let mut editor = tourist(json!({}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "Make a file\nplease"), "end_turn");
    let file = editor.home.work().join("a.txt");
    let shown = fold(&editor.updates(&session));
    let calls: Vec<&Value> = shown
        .as_object()
        .expect("an object")
        .iter()
        .filter(|(key, _)| key.starts_with("call "))
        .map(|(_, call)| call)
        .collect();
    let [write, edit, read, bash, grep] = calls[..] else { panic!("five calls: {shown:#}") };
    let about =
        |call: &Value| (call["title"].as_str().unwrap_or("").to_owned(), call["kind"].clone(), call["status"].clone());
    let expected = |title: &str, kind: &str, status: &str| (title.to_owned(), json!(kind), json!(status));
    assert_eq!(about(write), expected("Write a.txt", "edit", "completed"));
    assert_eq!(about(edit), expected("Edit a.txt", "edit", "completed"));
    assert_eq!(about(read), expected("Read a.txt (2–2)", "read", "completed"));
    assert_eq!(about(bash), expected("echo out; exit 3", "execute", "failed"));
    assert_eq!(about(grep), expected("Search \"TWO\"", "search", "completed"));
    assert_eq!(write["content"], json!([{"type": "diff", "path": file, "newText": "one\ntwo\nthree\n"}]));
    let change = json!({"type": "diff", "path": file, "oldText": "one\ntwo\nthree\n", "newText": "one\nTWO\nthree\n"});
    assert_eq!(edit["content"], json!([change]));
    assert_eq!(edit["locations"], json!([{"path": file, "line": 2}]));
    assert_eq!(read["locations"], json!([{"path": file, "line": 2}]));
    assert_eq!(read["rawInput"], json!({"path": "a.txt", "offset": 2, "limit": 1}));
    assert_eq!(bash["rawOutput"]["exitCode"], 3);
    assert_eq!(bash["content"][0]["content"]["text"], "```\nout\n\n\nCommand exited with code 3\n```");
    assert_eq!(
        calls.iter().map(|call| call["name"].as_str()).collect::<Vec<_>>(),
        [Some("write"), Some("edit"), Some("read"), Some("bash"), Some("grep")]
    );
    assert_eq!(shown["info"]["title"], "Make a file");
    assert!(shown["usage_update"]["size"].as_u64().is_some_and(|size| size > 0), "{shown:#}");
    let thoughts = text_of(&editor.updates(&session), "agent_thought_chunk");
    assert!(thoughts.starts_with("Let me see."), "{thoughts}");
    editor.finish();
}

#[test]
fn tools_of_others_are_shown_by_their_labels() {
    let weather = "export default (pi) => pi.registerTool({ name: 'weather', label: 'Look at the sky', \
      description: 'The weather', parameters: { type: 'object', properties: {} }, \
      execute: async () => ({ content: [{ type: 'text', text: 'fine' }], details: { path: 'sky.txt' } }) });";
    let mut editor = Editor::new([working("weather", json!({})), Turn::text("Fine.")]);
    editor.home.write_agent_file("extensions/weather.ts", weather);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "What is it like?"), "end_turn");
    let about = |shown: &Value| {
        let call = shown.as_object().and_then(|all| all.iter().find(|(key, _)| key.starts_with("call ")));
        let (_, call) = call.unwrap_or_else(|| panic!("a call: {shown:#}"));
        json!([call["title"], call["kind"], call["name"], call["locations"]])
    };
    let live = about(&fold(&editor.updates(&session)));
    let place = json!([{"path": editor.home.work().join("sky.txt")}]);
    // The kind `other` is what a call has that names none.
    assert_eq!(live, json!(["Look at the sky", null, "weather", place]));
    editor.ask("session/close", json!({"sessionId": session}));
    let n_told = editor.updates(&session).len();
    let cwd = editor.home.work();
    editor.ask("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert_eq!(about(&fold(&editor.updates(&session)[n_told..])), live);
    editor.finish();
}

#[test]
fn a_loaded_session_shows_what_was_shown_live() {
    check_loaded(json!({}));
}

#[test]
fn a_loaded_session_shows_commands_in_their_terminals_again() {
    let live = check_loaded(json!({"_meta": {"terminal_output": true}}));
    let live = live.as_object().expect("an object");
    let (_, command) = live.iter().find(|(_, shown)| shown["name"] == "bash").expect("a command");
    assert_eq!(command["content"], json!([{"type": "terminal", "terminalId": command["toolCallId"]}]));
    assert_eq!(command["output"], "out\n\n\nCommand exited with code 3");
    assert_eq!(command["terminal_exit"]["exit_code"], 3);
}

/// Shows a session live, open and closed to a client with these capabilities; returns what it shows.
fn check_loaded(capabilities: Value) -> Value {
    let mut editor = tourist(capabilities);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "Make a file\nplease"), "end_turn");
    let live = fold(&editor.updates(&session));
    let cwd = editor.home.work();
    // While it is open it is shown again; after it was closed it is read from its file.
    for closes in [false, true] {
        if closes {
            editor.ask("session/close", json!({"sessionId": session}));
        }
        let start = editor.host.frames().len();
        let id = editor.send("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        editor.result(id);
        let frames = editor.host.frames().split_off(start);
        let answered = frames.iter().position(|frame| frame["id"] == id).expect("the answer");
        let replayed = updates(&frames[..answered], &session);
        assert_eq!(replayed[0]["sessionUpdate"], "user_message_chunk");
        let mut loaded = fold(&replayed);
        // The prompt itself is shown by the editor when it is live.
        let prompts: Vec<String> = loaded
            .as_object()
            .expect("an object")
            .keys()
            .filter(|key| key.starts_with("user_message"))
            .cloned()
            .collect();
        assert_eq!(prompts.len(), 1);
        loaded.as_object_mut().expect("an object").shift_remove(&prompts[0]);
        for (key, value) in live.as_object().expect("an object") {
            assert_eq!(loaded.get(key), Some(value), "{key}, closed: {closes}");
        }
        assert_eq!(loaded.as_object().map(|shown| shown.len()), live.as_object().map(|shown| shown.len()));
    }
    editor.finish();
    live
}

#[test]
fn an_editor_with_terminals_gets_the_output_as_it_comes() {
    let turns = [
        Turn::call("bash", json!({"command": "echo one; exit 2"})),
        Turn::call("bash", json!({"command": "kill -9 $$"})),
        Turn::text("Done."),
    ];
    let mut editor = Editor::with(turns, json!({"_meta": {"terminal_output": true}}), |builder| builder);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    let updates = editor.updates(&session);
    let call = updates.iter().find(|update| update["sessionUpdate"] == "tool_call").expect("a call");
    let id = &call["toolCallId"];
    assert_eq!(call["content"], json!([{"type": "terminal", "terminalId": id}]));
    assert_eq!(call["_meta"]["terminal_info"]["terminal_id"], *id);
    let output: String =
        updates.iter().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect();
    assert!(output.starts_with("one\n"), "{output}");
    let exits = updates.iter().filter_map(|update| update["_meta"].get("terminal_exit"));
    let exits: Vec<_> = exits.map(|exit| json!([exit["exit_code"], exit["signal"]])).collect();
    assert_eq!(exits, [json!([2, null]), json!([null, "SIGKILL"])]);
    editor.finish();
}

#[test]
fn todos_are_a_plan() {
    let ops = json!({"ops": [{"op": "replace", "phases": [{"name": "P", "tasks": [
        {"content": "first", "status": "in_progress"}, {"content": "second"}]}]}]});
    let turns = [Turn::call("todo_write", ops), Turn::text("Done.")];
    let mut editor = Editor::with(turns, json!({}), |builder| builder.args(["--dialect", "xcsh"]));
    let session = editor.new_session();
    editor.prompt(&session, "plan");
    let updates = editor.updates(&session);
    let plan =
        updates.iter().find(|update| update["sessionUpdate"] == "plan").unwrap_or_else(|| panic!("{updates:#?}"));
    assert_eq!(plan["entries"][0], json!({"content": "first", "priority": "high", "status": "in_progress"}));
    assert_eq!(plan["entries"][1]["status"], "pending");
    editor.finish();
}

#[test]
fn updates_follow_the_answer_that_names_the_session() {
    let mut editor = Editor::new([]);
    editor.home.write_agent_file("prompts/greet.md", "---\ndescription: Say hello\n---\nHello $1");
    editor.home.write_agent_file("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nTidy.");
    let session = editor.new_session();
    let commands = editor.wait_update(|update| update["sessionUpdate"] == "available_commands_update");
    let offered = |name: &str| {
        let found = commands["availableCommands"].as_array().expect("a list").iter();
        found.filter(|command| command["name"] == name).map(|command| command["description"].clone()).next()
    };
    assert_eq!(offered("greet"), Some(json!("Say hello")), "{commands}");
    assert_eq!(offered("skill:tidy"), Some(json!("Tidies up")), "{commands}");
    let own = ["compact", "name", "model", "thinking", "stats", "export", "reload", "mcp", "diagnostics"];
    assert!(own.iter().all(|name| offered(name).is_some()), "{commands}");
    let frames = editor.finish();
    let named = frames.iter().position(|frame| frame["result"]["sessionId"] == session.as_str()).expect("the answer");
    let first = frames.iter().position(|frame| frame["method"] == "session/update").expect("an update");
    assert!(named < first);
}

#[test]
fn what_an_extension_says_for_the_user_is_shown() {
    let says = "export default (pi) => pi.registerCommand('ask', { description: 'Asks', \
        handler: async () => pi.sendUserMessage('From the extension') });";
    let mut editor = Editor::new([Turn::text("Heard.")]);
    editor.home.write_agent_file("extensions/says.ts", says);
    let session = editor.new_session();
    editor.prompt(&session, "/ask");
    let shown = editor.wait_update(|update| update["sessionUpdate"] == "user_message_chunk");
    assert_eq!(shown["content"]["text"], "From the extension");
    assert!(shown["messageId"].is_string(), "{shown}");
    // The turn that it begins is nobody's, and streams like any other.
    editor.wait_update(|update| {
        update["sessionUpdate"] == "agent_message_chunk" && update["content"]["text"] == "Heard."
    });
    editor.finish();
}

#[test]
fn what_cannot_be_shown_beside_the_conversation_is_kept() {
    let fails = "export default (pi) => pi.on('agent_start', () => { throw new Error('no luck'); });";
    let mut editor = Editor::new([Turn::text("hello")]);
    editor.home.write_agent_file("extensions/fails.ts", fails);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    let found = editor.ask("_pith/diagnostics", json!({"sessionId": session}))["diagnostics"].to_string();
    assert!(found.contains("fails.ts failed in agent_start") && found.contains("no luck"), "{found}");
    // All sessions share stderr.
    let stderr = editor.host.stderr();
    let name = format!("pith {}: ", &session[session.len() - 8..]);
    let told: Vec<_> = stderr.lines().filter(|line| line.contains("no luck")).collect();
    assert!(!told.is_empty() && told.iter().all(|line| line.starts_with(&name)), "{stderr}");
    editor.finish();
    // An editor that shows notices gets one.
    let mut editor = Editor::with([Turn::text("hello")], json!({"session": {"notices": {}}}), |builder| builder);
    editor.home.write_agent_file("extensions/fails.ts", fails);
    let session = editor.new_session();
    editor.prompt(&session, "hi");
    let notice = editor.wait_update(|update| update["sessionUpdate"] == "notice");
    assert_eq!(
        (&notice["severity"], notice["description"].as_str().map(|text| text.contains("no luck"))),
        (&json!("error"), Some(true))
    );
    editor.finish();
}

#[test]
fn an_editor_that_shows_notices_is_told_of_a_further_try() {
    let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let busy = Turn::failing(Fault::Http { status: 529, body, headers: serde_json::Map::new() });
    let mut editor = Editor::with([busy, Turn::text("hello")], json!({"session": {"notices": {}}}), |builder| builder);
    editor.home.write_settings(&json!({"retry": {"baseDelayMs": 1}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let notices: Vec<Value> =
        editor.updates(&session).into_iter().filter(|update| update["sessionUpdate"] == "notice").collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(
        (&notices[0]["severity"], &notices[0]["title"]),
        (&json!("warning"), &json!("Trying again in 1s (1/3)"))
    );
    assert!(notices[0]["description"].as_str().is_some_and(|text| text.contains("Overloaded")), "{notices:?}");
    editor.finish();
}
