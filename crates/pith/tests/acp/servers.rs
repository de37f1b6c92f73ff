//! MCP servers that the editor sends with a session.

use std::path::Path;

use pith_testkit::{GuardedServer, Turn, shell_server};
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

fn stdio(script: &Path) -> Value {
    let env = json!([{"name": "WHO", "value": "the editor"}, {"name": "TOKEN", "value": SECRET}]);
    json!({"name": "shell", "command": "sh", "args": [script], "env": env})
}

/// A value that nobody but the server may see.
const SECRET: &str = "hush-4711";

/// Whether a file below a directory contains a text.
fn is_kept(directory: &Path, text: &str) -> bool {
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.any(|path| {
        let is_in = || std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text));
        if path.is_dir() { is_kept(&path, text) } else { is_in() }
    })
}

#[test]
fn a_session_uses_the_servers_of_its_editor() {
    let turns = [Turn::call("mcp__shell__greet", json!({})), Turn::text("Greeted.")];
    let mut editor = Editor::with(turns, json!({}), |builder| builder.env("PITH_LOG", "debug"));
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "greet"), "end_turn");
    let requests = editor.server.requests();
    assert!(requests[0].body["tools"].to_string().contains("mcp__shell__greet"));
    assert!(requests[1].body.to_string().contains("Hello from the editor"));
    editor.ask("_pith/mcp", json!({"sessionId": session}));
    editor.ask("_pith/state", json!({"sessionId": session}));
    let pid: i32 = editor.home.read_file("server.sh.pids").expect("it has run").trim().parse().expect("a number");
    // Another session has none of them, and nothing of them is left behind the close.
    let other = editor.new_session();
    assert_eq!(editor.ask("_pith/mcp", json!({"sessionId": other}))["servers"], json!([]));
    editor.ask("session/close", json!({"sessionId": session}));
    assert!(!Path::new("/proc").join(pid.to_string()).exists());
    let (home, stderr) = (editor.home.clone(), editor.host.stderr());
    let frames = editor.finish();
    assert!(!stderr.contains(SECRET), "{stderr}");
    assert!(!frames.iter().any(|frame| frame.to_string().contains(SECRET)));
    assert!(is_kept(&home.home(), "Hello from the editor") && !is_kept(&home.home(), SECRET));
}

#[test]
fn tools_of_servers_are_shown_as_what_they_do() {
    let calls =
        ["wait", "greet", "visit"].map(|tool| Turn::call(&format!("mcp__shell__{tool}"), json!({"fail": true})));
    let mut editor = Editor::new(calls.into_iter().chain([Turn::text("Done.")]));
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let updates = editor.updates(&session);
    let shown = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call");
    let kinds: Vec<Value> = shown.map(|call| json!([call["title"], call["kind"]])).collect();
    // A call that names no kind is of the kind `other`.
    assert_eq!(
        kinds,
        [json!(["shell: wait", null]), json!(["shell: greet", "read"]), json!(["shell: visit", "fetch"])]
    );
    editor.finish();
}

#[test]
fn prompts_of_servers_are_commands_of_the_editor() {
    let mut editor = Editor::new([Turn::text("hi"), Turn::text("hailed")]);
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    editor.wait_update(|update| {
        update["sessionUpdate"] == "available_commands_update" && update.to_string().contains("mcp:shell:hail")
    });
    assert_eq!(editor.prompt(&session, "/mcp:shell:hail Ann"), "end_turn");
    assert!(editor.server.requests()[1].body.to_string().contains("Hail them all"));
    editor.finish();
}

#[test]
fn a_page_that_a_server_names_is_opened_by_the_editor() {
    let turns = [Turn::call("mcp__shell__greet", json!({"page": true})), Turn::text("Paid.")];
    let mut editor = Editor::with(turns, json!({"elicitation": {"url": {}}}), |builder| builder);
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let prompt = editor.send_prompt(&session, "pay");
    let asked = editor.asked("elicitation/create");
    let page = &asked["params"];
    assert_eq!((&page["mode"], &page["url"]), (&json!("url"), &json!("https://pay.example.com/x")));
    assert!(
        page["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("shell asks you to open a page of pay.example.com")),
        "{page}"
    );
    editor.reply(&asked, json!({"action": "accept"}));
    let complete = editor.host.wait(|frame| frame["method"] == "elicitation/complete");
    assert_eq!(complete["params"]["elicitationId"], page["elicitationId"]);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert!(editor.server.requests()[1].body.to_string().contains("opened"));
    editor.finish();
}

/// Lets a server ask with its form, and returns what the editor was asked and what the server was answered.
fn fill_in(capabilities: Value, mut fill: impl FnMut(&mut Editor, Value)) -> Value {
    let turns = [Turn::call("mcp__shell__greet", json!({"form": true})), Turn::text("Filled.")];
    let mut editor = Editor::with(turns, capabilities, |builder| builder);
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let prompt = editor.send_prompt(&session, "fill");
    let asked = editor.asked("elicitation/create");
    assert_eq!(asked["params"]["sessionId"], json!(session));
    fill(&mut editor, asked);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let got = editor.home.read_file("server.sh.form").expect("it was answered");
    editor.finish();
    serde_json::from_str::<Value>(&got).expect("JSON")["result"].clone()
}

#[test]
fn an_editor_shows_the_whole_form_of_a_server() {
    let forms = || json!({"elicitation": {"form": {}}});
    let got = fill_in(forms(), |editor, asked| {
        let form = &asked["params"];
        assert_eq!((&form["mode"], &form["message"]), (&json!("form"), &json!("shell asks: Who?")));
        assert!(form["toolCallId"].is_string(), "{form}");
        let choices = json!([{"const": "a", "title": "Ay"}, {"const": "b", "title": "Bee"}]);
        let properties = json!({"name": {"type": "string", "title": "Name"}, "age": {"type": "integer", "maximum": 150},
            "kind": {"type": "string", "oneOf": choices}});
        let schema = json!({"type": "object", "properties": properties, "required": ["name"]});
        assert_eq!(form["requestedSchema"], schema);
        // What does not fit is asked for again.
        editor.reply(&asked, json!({"action": "accept", "content": {"name": "Ann", "age": 151}}));
        let again = editor.asked("elicitation/create");
        let message = again["params"]["message"].as_str().expect("a text");
        assert!(message.starts_with("shell asks: Who?\n(") && message.contains("150"), "{message}");
        editor.reply(&again, json!({"action": "accept", "content": {"name": "Ann", "age": 50}}));
    });
    assert_eq!(got, json!({"action": "accept", "content": {"name": "Ann", "age": 50}}));
    for action in ["decline", "cancel"] {
        let got = fill_in(forms(), |editor, asked| editor.reply(&asked, json!({"action": action})));
        assert_eq!(got, json!({"action": action}));
    }
}

#[test]
fn an_editor_is_told_of_what_a_server_asks_and_it_cannot_show() {
    let turn = |what: &str| Turn::call("mcp__shell__greet", json!({what: true}));
    let turns = [turn("form"), turn("page"), Turn::text("Done.")];
    let mut editor = Editor::with(turns, json!({"session": {"notices": {}}}), |builder| builder);
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "fill, then pay"), "end_turn");
    for (file, action) in [("server.sh.form", "decline"), ("server.sh.page", "cancel")] {
        let got: Value = serde_json::from_str(&editor.home.read_file(file).expect("it was answered")).expect("JSON");
        assert_eq!(got["result"], json!({"action": action}));
    }
    let notices: Vec<Value> = editor
        .updates(&session)
        .iter()
        .filter(|update| update["sessionUpdate"] == "notice")
        .map(|notice| json!([notice["title"], notice["description"]]))
        .collect();
    let page = "shell asks you to open a page of pay.example.com\n\nPlease pay\n\nhttps://pay.example.com/x";
    let expected = [
        json!(["An MCP server asked for a form, which this client cannot show", "shell asks: Who?"]),
        json!(["An MCP server asked for a page, which this client cannot open", page]),
    ];
    assert_eq!(notices, expected);
    let asked = editor.finish().iter().any(|frame| frame["method"] == "session/request_permission");
    assert!(!asked, "a form is not taken apart");
}

#[test]
fn an_editor_is_asked_whether_a_server_may_use_the_model() {
    let forms = json!({"elicitation": {"form": {}}});
    let yes = [
        (forms, "elicitation/create", json!({"action": "accept", "content": {"answer": true}})),
        (json!({}), "session/request_permission", json!({"outcome": {"outcome": "selected", "optionId": "allow"}})),
    ];
    for (capabilities, method, answer) in yes {
        let turns = [Turn::call("mcp__shell__greet", json!({"sample": true})), Turn::text("four"), Turn::text("Done.")];
        let mut editor = Editor::with(turns, capabilities, |builder| builder);
        let entry = json!({"command": "sh", "args": [shell_server(&editor.home.work())], "sampling": "ask"});
        editor.home.write_agent_file("mcp.json", json!({"mcpServers": {"shell": entry}}).to_string());
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "go");
        let asked = editor.asked(method);
        assert!(asked.to_string().contains("shell asks the model, for at most 50 tokens"), "{asked}");
        editor.reply(&asked, answer);
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        assert!(editor.server.requests()[2].body.to_string().contains("noted"));
        editor.finish();
    }
}

#[test]
fn sessions_of_an_editor_share_a_server_if_settings_say_so() {
    for (is_shared, n_programs) in [(true, 1), (false, 2)] {
        let call = || Turn::call("mcp__shell__greet", json!({}));
        let mut editor = Editor::with([call(), Turn::text("1"), call(), Turn::text("2")], json!({}), |builder| builder);
        editor.home.write_settings(&json!({"mcp": {"share": is_shared}}));
        let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [stdio(&script)]}));
            let session = opened["sessionId"].as_str().expect("an id").to_owned();
            assert_eq!(editor.prompt(&session, "greet"), "end_turn");
            sessions.push(session);
        }
        let is_running = |pid: &str| Path::new("/proc").join(pid).exists();
        let noted = editor.home.read_file("server.sh.pids").expect("it has run");
        let pids: Vec<&str> = noted.lines().collect();
        assert_eq!((pids.len(), pids.iter().all(|pid| is_running(pid))), (n_programs, true), "{is_shared}");
        editor.ask("session/close", json!({"sessionId": sessions[0]}));
        assert_eq!(is_running(pids[0]), is_shared, "the other session uses it");
        editor.ask("session/close", json!({"sessionId": sessions[1]}));
        assert!(!pids.iter().any(|pid| is_running(pid)));
        editor.finish();
    }
}

#[test]
fn wrong_servers_are_refused_by_their_place() {
    let mut editor = Editor::new([]);
    let cwd = editor.home.work();
    let good = json!({"name": "a", "command": "sh", "args": [], "env": []});
    let refused = [
        (json!([good, good]), "mcpServers[1].name"),
        (json!([good, {"name": "b"}]), "mcpServers[1]"),
        (json!([{"name": "b", "command": 5, "args": [], "env": []}]), "mcpServers[0]"),
        (json!([{"type": "acp", "name": "b", "id": "x"}]), "mcpServers[0]"),
        (json!([good, {"name": "", "command": "sh", "args": [], "env": []}]), "mcpServers[1]"),
        (json!([{"name": "b", "command": "", "args": [], "env": []}]), "mcpServers[0]"),
        (json!("none"), "mcpServers"),
    ];
    for (servers, field) in refused {
        let id = editor.send("session/new", json!({"cwd": cwd, "mcpServers": servers}));
        let error = editor.answer(id)["error"].clone();
        assert_eq!(error["code"], -32602, "{servers}: {error}");
        assert!(error["data"]["field"].as_str().is_some_and(|named| named.starts_with(field)), "{servers}: {error}");
    }
    editor.finish();
}

#[test]
fn servers_at_an_address_are_taken() {
    let mut editor = Editor::new([]);
    let greeting = editor.ask("initialize", json!({"protocolVersion": 1}));
    assert_eq!(greeting["agentCapabilities"]["mcpCapabilities"], json!({"http": true, "sse": true}));
    let cwd = editor.home.work();
    let headers = json!([{"name": "X-Token", "value": SECRET}]);
    let server = |kind: &str| json!({"type": kind, "name": kind, "url": "http://127.0.0.1:9/mcp", "headers": headers});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [server("http"), server("sse")]}));
    let shown = editor.ask("_pith/mcp", json!({"sessionId": opened["sessionId"]}));
    let transports: Vec<_> =
        shown["servers"].as_array().expect("a list").iter().map(|server| &server["transport"]).collect();
    assert_eq!(transports, ["http", "sse"]);
    let frames = editor.finish();
    assert!(!frames.iter().any(|frame| frame.to_string().contains(SECRET)));
}

#[test]
fn a_server_that_does_not_start_is_a_notice() {
    let mut editor = Editor::with([Turn::text("hi")], json!({"session": {"notices": {}}}), |builder| builder);
    let cwd = editor.home.work();
    let broken = json!({"name": "broken", "command": "/nowhere/at/all", "args": [], "env": []});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [broken]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    let notice = editor.wait_update(|update| update["sessionUpdate"] == "notice");
    assert_eq!(notice["title"], "MCP server broken cannot be used");
    editor.finish();
}

#[test]
fn an_editor_that_opens_pages_is_given_the_page_of_a_sign_in() {
    let guarded = GuardedServer::start();
    let capabilities = json!({"elicitation": {"url": {}}, "session": {"notices": {}}});
    let mut editor = Editor::with([Turn::call("mcp__far__look", json!({})), Turn::text("hi")], capabilities, |b| b);
    let cwd = editor.home.work();
    let far = json!({"type": "http", "name": "far", "url": guarded.url(), "headers": []});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [far]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let prompt = editor.send_prompt(&session, "/mcp login far");
    let asked = editor.asked("elicitation/create");
    let page = &asked["params"];
    assert_eq!((&page["mode"], &page["sessionId"]), (&json!("url"), &json!(session)));
    assert_eq!(page["message"], "Sign in to the MCP server far");
    editor.reply(&asked, json!({"action": "accept"}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    guarded.sign_in(page["url"].as_str().expect("an address"));
    let complete = editor.host.wait(|frame| frame["method"] == "elicitation/complete");
    assert_eq!(complete["params"]["elicitationId"], page["elicitationId"]);
    assert_eq!(editor.prompt(&session, "look"), "end_turn");
    assert!(editor.server.requests()[1].body.to_string().contains("seen"));
    editor.finish();
}

#[test]
fn an_editor_that_opens_no_pages_shows_the_address() {
    let guarded = GuardedServer::start();
    let mut editor = Editor::new([]);
    let cwd = editor.home.work();
    let far = json!({"type": "http", "name": "far", "url": guarded.url(), "headers": []});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [far]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(editor.prompt(&session, "/mcp login far"), "end_turn");
    let said = text_of(&editor.updates(&session), "agent_message_chunk");
    assert!(said.starts_with("Sign in to far on this page: http://127.0.0.1:"), "{said}");
    for wrong in ["/mcp logout far", "/mcp login"] {
        assert_eq!(editor.prompt(&session, wrong), "end_turn", "{wrong}");
        let told = text_of(&editor.updates(&session), "agent_message_chunk");
        assert!(told.ends_with("/mcp takes nothing, or login NAME"), "{wrong}: {told}");
    }
    editor.finish();
}
