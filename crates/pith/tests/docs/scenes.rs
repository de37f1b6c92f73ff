//! The sessions that produce what the documents show.

use pith_protocol::{Event, SandboxDenial};
use pith_testkit::{GuardedServer, TempHome};
use serde_json::{Value, json};

use crate::exchanges::{Exchanges, Scene};

const EXTENSION: &str = r#"
export default function (pi) {
  const command = (name, description, handler) => pi.registerCommand(name, { description, handler });
  command("ask", "Asks one question of each kind", async (_, { ui }) => {
    await ui.select("Which one?", ["first", "second"]);
    await ui.confirm("Delete it?", "This cannot be undone.");
    await ui.input("A name?", "such as main");
    await ui.editor("The message", "Fix the build");
  });
  command("show", "Changes what the host displays", async (_, { ui }) => {
    ui.notify("Saved", "info");
    ui.setStatus("tests", "3 of 5");
    ui.setWidget("todo", ["[x] read", "[ ] write"]);
    ui.setTitle("project: tests");
    ui.setEditorText("/review ");
  });
  command("late", "Withdraws its question", async (_, { ui }) => {
    const stop = new AbortController();
    const asked = ui.confirm("Still there?", "", { signal: stop.signal });
    stop.abort();
    await asked;
  });
  command("remember", "Stores something", async () => {
    pi.appendEntry("visits", { n: 1 });
    pi.sendMessage({ customType: "note", content: "The tests are slow today.", display: true });
  });
  command("fail", "Fails", async () => { throw new Error("no such branch"); });
  pi.on("agent_before_settle", (event, ctx) => {
    const entries = ctx.sessionManager.getEntries();
    const asked = entries.findLast((entry) => entry.message?.role === "user");
    if (!JSON.stringify(asked?.message.content ?? "").includes("password")) return;
    if (entries.some((entry) => entry.type === "context_edit")) return;
    return { entries: [{ type: "context_edit", targetId: asked.id, replacement: { content: "(a password)" } }] };
  });
}
"#;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Plays all scenes.
pub fn play() -> Exchanges {
    let mut shown = Exchanges::default();
    conversation(&mut shown);
    tree_and_sessions(&mut shown);
    extensions(&mut shown);
    servers(&mut shown);
    failures(&mut shown);
    foreign_entries(&mut shown);
    xcsh(&mut shown);
    xcsh_compaction(&mut shown);
    checkpoints(&mut shown);
    limits(&mut shown);
    permissions(&mut shown);
    never_sent(&mut shown);
    shown
}

/// A home with a second model, a skill, a template, and a mistake in the settings.
fn furnished() -> TempHome {
    let home = TempHome::new();
    home.write_settings(
        &json!({"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 40}, "maxTurns": "many"}),
    );
    home.write_agent_file(
        "models.json",
        r#"{"providers": {"local": {"baseUrl": "http://127.0.0.1:8080/v1", "api": "openai-completions", "models": [{"id": "qwen3-8b"}, {"id": "qwen3-14b", "reasoning": true}]}}}"#,
    );
    home.write_agent_file("prompts/review.md", "---\ndescription: Reviews a change\n---\nReview $1.\n");
    home.write_agent_file("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: How to tidy up\n---\nTidy up.\n");
    home.write_agent_file("extensions/tools.ts", EXTENSION);
    home.write_file("notes.txt", "The tests are slow.\n");
    home
}

fn weather() -> Value {
    json!({"name": "weather", "label": "Weather", "description": "Tells the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}})
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "name": name, "args": arguments})
}

fn conversation(shown: &mut Exchanges) {
    let script = json!({"turns": [
        {"blocks": [{"type": "thinking", "text": "The notes first."}, {"type": "text", "text": "I will look."}, call("read", json!({"path": "notes.txt"}))]},
        {"blocks": [call("weather", json!({"city": "Oslo"}))]},
        {"text": "The tests are slow, and it is cold."},
        {"text": "In German: Die Tests sind langsam."},
        {"blocks": [{"type": "thinking", "text": "Count."}, {"type": "text", "text": "One, two."}, call("bash", json!({"command": "echo three"}))]},
        {"text": "Three."},
        {"blocks": [call("weather", json!({"city": "Bergen"}))]},
        {"text": "As you like."},
        {"text": "A red pixel."},
    ]});
    let mut scene = Scene::start(shown, furnished(), &script, &[]);
    scene.ask(json!({"type": "hello", "client": {"name": "my-editor", "version": "2.1.0"}, "accept": {"settledWhenHandled": true}}));
    scene.ask(json!({"type": "get_diagnostics"}));
    scene.ask(json!({"type": "set_host_tools", "tools": [weather()]}));

    scene.ask(json!({"type": "prompt", "message": "What do the notes say, and how is the weather?"}));
    let asked = scene.host.wait_type("host_tool_call");
    scene.refused("busy", json!({"type": "prompt", "message": "Hello?"}));
    scene.ask(json!({"type": "steer", "message": "Keep it short."}));
    scene.ask(json!({"type": "clear_queue"}));
    scene.ask(json!({"type": "follow_up", "message": "The same in German."}));
    let partial = json!({"content": [{"type": "text", "text": "looking"}]});
    scene.reply("host_tool_update", json!({"type": "host_tool_update", "id": asked["id"], "partialResult": partial}));
    scene.host.wait_type("tool_execution_update");
    let result = json!({"content": [{"type": "text", "text": "4 degrees"}]});
    scene.reply("host_tool_result", json!({"type": "host_tool_result", "id": asked["id"], "result": result}));
    scene.settled();
    scene.ask(json!({"type": "get_state"}));
    scene.ask(json!({"type": "get_last_assistant_text"}));
    scene.ask(json!({"type": "get_session_stats"}));

    scene.ask(json!({"type": "set_stream_updates", "mode": "delta"}));
    scene.prompt("Count to three.");
    scene.ask(json!({"type": "set_stream_updates", "mode": "full"}));

    let id = scene.send(json!({"type": "bash", "command": "echo hello"}));
    scene.host.wait_type("bash_execution_update");
    scene.answered("bash", &id);
    scene.ask(json!({"type": "abort_bash"}));

    scene.ask(json!({"type": "prompt", "message": "And in Bergen?"}));
    scene.host.wait_type("host_tool_call");
    let again = scene.send(json!({"type": "abort_and_prompt", "message": "Never mind."}));
    scene.host.wait_type("host_tool_cancel");
    scene.answered("abort_and_prompt", &again);
    scene.settled();
    scene.ask(json!({"type": "abort"}));
    let picture = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    scene.ask(json!({"type": "prompt", "message": "What is this?", "images": [picture]}));
    scene.settled();

    for mode in ["set_steering_mode", "set_follow_up_mode"] {
        scene.ask(json!({"type": mode, "mode": "all"}));
    }
    scene.ask(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    scene.ask(json!({"type": "get_commands"}));
    scene.variant("all messages", json!({"type": "get_messages"}));
    scene.home.write_agent_file("skills/greet/SKILL.md", "---\nname: greet\ndescription: How to greet\n---\nBow.\n");
    scene.ask(json!({"type": "reload"}));

    scene.ask(json!({"type": "set_thinking_level", "level": "high"}));
    scene.ask(json!({"type": "cycle_thinking_level"}));
    scene.ask(json!({"type": "get_available_thinking_levels"}));
    scene.ask(json!({"type": "get_available_models"}));
    scene.ask(json!({"type": "cycle_model"}));
    scene.ask(json!({"type": "set_model", "provider": "local", "modelId": "qwen3-8b"}));
    scene.ask(json!({"type": "set_auto_compaction", "enabled": false}));
    scene.ask(json!({"type": "set_auto_retry", "enabled": true}));
    // What a sandbox says about itself differs between kernels.
    scene.ask(json!({"type": "set_sandbox", "profile": "off"}));
    let denied = Event::SandboxDenied {
        tool_call_id: "toolu_1".into(),
        kind: SandboxDenial::Protected,
        target: Some("/home/ann/app/.git/hooks/pre-commit".into()),
        count: 1,
        reason: None,
    };
    scene.keep("sandbox_denied", &json!(denied));
    scene.ask(json!({"type": "abort_retry"}));
    scene.ask(json!({"type": "set_locale", "locale": "de"}));
    scene.ask(json!({"type": "get_integrations"}));
    let tasks = json!([{"content": "Write the test"}, {"content": "Mend the code", "status": "in_progress"}]);
    scene.ask(json!({"type": "set_todos", "phases": [{"name": "Repair", "tasks": tasks}]}));
    scene.refused("error", json!({"type": "prompt"}));
    scene.end();
}

fn tree_and_sessions(shown: &mut Exchanges) {
    let script = json!({
        "turns": [{"text": "Use a list of pairs."}, {"text": "Use a sorted list, and look for keys by halves: that takes as many steps as its length has binary digits."}],
        "routes": [{"match": "summar", "turns": [
            {"fault": {"kind": "http", "status": 529, "body": "busy"}}, {"text": "## Goal\nThe right data structure."}, {"text": "A sorted list was proposed."}]}],
    });
    let mut scene = Scene::start(shown, furnished(), &script, &[]);
    scene.prompt("Which data structure fits best, if the keys are numbers and there are few of them?");
    scene.ask(json!({"type": "get_messages"}));
    scene.prompt("And which one if there are many, and they come in order?");
    let prompts = scene.ask(json!({"type": "get_fork_messages"}));
    scene.ask(json!({"type": "get_branch_messages"}));
    let (first, second) = (&prompts["messages"][0]["entryId"], &prompts["messages"][1]["entryId"]);
    scene.ask(json!({"type": "set_label", "entryId": second, "label": "the list"}));
    scene.ask(json!({"type": "get_entries", "since": second}));
    scene.ask(json!({"type": "get_tree"}));
    scene.variant("get_tree:flat", json!({"type": "get_tree", "flat": true}));
    scene.ask(json!({"type": "compact", "customInstructions": "Stress the numbers."}));
    scene.variant("messages after a compaction", json!({"type": "get_messages"}));
    scene.ask(json!({"type": "navigate_tree", "targetId": second, "summarize": true}));
    scene.variant("messages after a summary", json!({"type": "get_messages"}));
    scene.ask(json!({"type": "set_session_name", "name": "Data structures"}));
    scene.ask(json!({"type": "list_sessions"}));
    scene.ask(json!({"type": "export_html", "outputPath": "session.html"}));
    let file = scene.ask(json!({"type": "get_state"}))["sessionFile"].clone();
    scene.ask(json!({"type": "fork", "entryId": first}));
    scene.ask(json!({"type": "switch_session", "sessionPath": file}));
    scene.ask(json!({"type": "branch", "entryId": second}));
    scene.ask(json!({"type": "clone"}));
    scene.ask(json!({"type": "new_session"}));
    scene.end();
}

fn extensions(shown: &mut Exchanges) {
    let script = json!({"turns": [{"text": "Noted."}, {"text": "Forgotten."}]});
    let mut scene = Scene::start(shown, furnished(), &script, &["--ui-cancel"]);
    scene.prompt("Good morning.");
    let id = scene.send(json!({"type": "prompt", "message": "/ask"}));
    scene.dialog("select", ("value", json!("second")));
    scene.dialog("confirm", ("confirmed", json!(true)));
    scene.dialog("input", ("value", json!("main")));
    scene.dialog("editor", ("value", json!("Fix the build\n\nIt was red.")));
    scene.host.response(&id);
    scene.handled("/show");
    scene.handled("/late");
    scene.handled("/remember");
    scene.send(json!({"type": "prompt", "message": "/fail"}));
    scene.host.wait_type("extension_error");
    scene.prompt("My password is swordfish.");
    scene.end();
}

/// An MCP server in a few lines of shell.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"clock","version":"1.2.0"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"now","description":"Tells the time","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn servers(shown: &mut Exchanges) {
    let home = furnished();
    home.write_file("clock.sh", SERVER);
    let mut scene = Scene::start(shown, home, &json!({"turns": [{"text": "Noon."}]}), &[]);
    let clock = json!({"command": "sh", "args": ["clock.sh"]});
    scene.ask(json!({"type": "set_mcp_servers", "servers": {"clock": clock}}));
    scene.ask(json!({"type": "get_mcp_servers", "connect": true}));
    scene.ask(json!({"type": "set_mcp_enabled", "name": "clock", "enabled": false}));
    scene.ask(json!({"type": "set_mcp_enabled", "name": "clock", "enabled": true}));
    scene.ask(json!({"type": "mcp_reconnect", "name": "clock"}));
    let guarded = GuardedServer::start();
    scene.host.data(json!({"type": "set_mcp_servers", "servers": {"tracker": {"url": guarded.url()}}}));
    scene.masked("mcp_login", json!({"type": "mcp_login", "name": "tracker"}), |answer| {
        let page = answer["data"]["url"].as_str().expect("a page");
        assert!(page.starts_with("http://127.0.0.1:") && page.contains("/authorize?response_type=code&"), "{page}");
        answer["data"]["url"] = json!("https://example.com/authorize?response_type=code&client_id=…");
    });
    scene.end();
}

fn failures(shown: &mut Exchanges) {
    let busy = json!({"fault": {"kind": "http", "status": 529, "body": "busy", "headers": {"retry-after-ms": "5"}}});
    let refused = json!({"fault": {"kind": "http", "status": 401, "body": "no such key"}});
    let script = json!({"turns": [busy, {"text": "Now it works."}, refused]});
    let mut scene = Scene::start(shown, furnished(), &script, &[]);
    scene.prompt("Are you there?");
    scene.ask(json!({"type": "prompt", "message": "And now?"}));
    let failed = scene.host.wait(|frame| frame["type"] == "message_end" && frame["message"]["stopReason"] == "error");
    scene.keep("failed_answer", &failed);
    scene.settled();
    scene.end();
}

/// A session file with entries that pith reads and does not write.
fn foreign_entries(shown: &mut Exchanges) {
    let home = furnished();
    let moment = "2026-01-01T12:00:00.000Z";
    let usage = json!({"input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 120,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let lines = [
        json!({"type": "session", "version": 3, "id": "01a1e25d-11b9-72ee-b80d-8eb83b570b2a", "timestamp": moment, "cwd": home.work()}),
        json!({"type": "usage", "id": "5c1d80a2", "parentId": null, "timestamp": moment, "kind": "title", "provider": "anthropic",
            "model": "claude-haiku-4-5", "usage": usage}),
        json!({"type": "custom", "id": "7be03d91", "parentId": "5c1d80a2", "timestamp": moment, "customType": "pith.audit", "data": {
            "kind": "permission", "toolCallId": "toolu_1", "tool": "bash", "decision": "allow", "by": "user", "scope": "once",
            "rule": "bash(git push:*)", "waitedMs": 4210}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.write_file("foreign.jsonl", text);
    let mut scene = Scene::start(shown, home, &json!({"turns": [{"text": "Hello."}]}), &["--session", "foreign.jsonl"]);
    let entries = scene.ask(json!({"type": "get_entries"}));
    let entry = entries["entries"].as_array().and_then(|entries| entries.iter().find(|entry| entry["type"] == "usage"));
    scene.keep("entry:usage", entry.expect("the entry is shown"));
    scene.ask(json!({"type": "get_audit"}));
    scene.end();
}

fn permissions(shown: &mut Exchanges) {
    let script = json!({"turns": [
        {"blocks": [call("bash", json!({"command": "git push origin main && git status"}))]}, {"text": "On a branch, then."},
        {"blocks": [call("bash", json!({"command": "git push"}))]},
    ]});
    let mut scene = Scene::start(shown, TempHome::new(), &script, &[]);
    scene.variant("hello:permissions", json!({"type": "hello", "accept": {"permissionRequest": true}}));
    scene.ask(json!({"type": "set_permissions", "mode": "write", "ask": ["bash(git push:*)"], "allow": ["bash(git status:*)"]}));
    scene.ask(json!({"type": "get_permissions"}));
    scene.ask(json!({"type": "set_approval_mode", "mode": "ask"}));
    scene.variant("prompt:asked", json!({"type": "prompt", "message": "Publish it."}));
    let asked = scene.host.wait_type("permission_request");
    let answer =
        json!({"type": "permission_response", "id": asked["id"], "optionId": "deny", "message": "Use a branch."});
    scene.reply("permission_response", answer);
    scene.settled();
    scene.variant("prompt:asked again", json!({"type": "prompt", "message": "Try again."}));
    scene.host.wait_type("permission_request");
    scene.variant("abort:asked", json!({"type": "abort"}));
    scene.host.wait_type("permission_cancelled");
    scene.end();
}

fn checkpoints(shown: &mut Exchanges) {
    let home = TempHome::new();
    home.write_file("notes.txt", "The tests are slow.\n");
    let script = json!({"turns": [
        {"blocks": [call("write", json!({"path": "notes.txt", "content": "The tests are quick.\n"}))]}, {"text": "Written."},
    ]});
    let mut scene = Scene::start(shown, home, &script, &[]);
    scene.prompt("Write the notes anew.");
    let listed = scene.ask(json!({"type": "list_checkpoints", "limit": 20}));
    let id = &listed["checkpoints"][0]["id"];
    scene.ask(json!({"type": "restore_checkpoint", "checkpointId": id, "paths": ["notes.txt"]}));
    scene.refused("checkpoint_not_found", json!({"type": "restore_checkpoint", "checkpointId": "c1-1"}));
    scene.end();
}

fn limits(shown: &mut Exchanges) {
    let script = json!({"turns": [{"blocks": [call("bash", json!({"command": "echo one"}))]}, {"text": "Two."}]});
    let mut scene = Scene::start(shown, TempHome::new(), &script, &[]);
    scene.ask(json!({"type": "set_limits", "limits": {"turns": 1, "costUsd": 5}}));
    scene.prompt("Count.");
    scene.refused("prompt:limited", json!({"type": "prompt", "message": "Count on."}));
    scene.ask(json!({"type": "pause"}));
    scene.ask(json!({"type": "resume"}));
    // The events follow the answers.
    scene.ask(json!({"type": "get_state"}));
    scene.keep("loop_suspected", &json!(Event::LoopSuspected { tool_name: "bash".into(), count: 3 }));
    scene.end();
}

fn xcsh(shown: &mut Exchanges) {
    let home = TempHome::with_layout(".xcsh");
    home.write_agent_file("settings.json", r#"{"tasks": {"todoClearDelay": 0}}"#);
    home.write_agent_file("rules/no-any.md", "---\ncondition: '\\bany\\b'\n---\nDo not use `any`.\n");
    let script = json!({"turns": [
        {"text": "let x: any = 1"}, {"text": "let x: number = 1"},
        {"text": "Done."}, {"blocks": [call("todo_write", json!({"ops": [{"op": "update", "id": "task-1", "status": "completed"}]}))]}, {"text": "Now it is."},
    ]});
    let mut scene = Scene::start(shown, home, &script, &["--dialect", "xcsh"]);
    scene.prompt("Declare x.");
    scene.ask(json!({"type": "set_todos", "phases": [{"name": "Repair", "tasks": [{"content": "Write the test"}]}]}));
    scene.prompt("Go on.");
    assert!(
        scene.host.try_find(0, |frame| frame.value["type"] == "todo_auto_clear").is_some(),
        "during the run or after it"
    );
    scene.end();
}

fn xcsh_compaction(shown: &mut Exchanges) {
    let home = TempHome::with_layout(".xcsh");
    home.write_agent_file("settings.json", r#"{"compaction": {"reserveTokens": 2000, "keepRecentTokens": 200}}"#);
    let long =
        |usage: u64| json!({"blocks": [{"type": "text", "chars": 3000}], "usage": {"input": usage, "output": 700}});
    let script = json!({
        "turns": [long(1000), long(199_000)],
        "routes": [{"match": "to summarise|previous-summary", "turns": [{"text": "## Goal\nTo talk."}]}],
    });
    let mut scene = Scene::start(shown, home, &script, &["--dialect", "xcsh"]);
    scene.prompt("One.");
    scene.prompt("Two.");
    scene.end();
}

/// Events that hosts know and pith never sends, as their types say.
fn never_sent(shown: &mut Exchanges) {
    let applied = Event::RetryFallbackApplied { from: "a/large".into(), to: "a/small".into(), role: "default".into() };
    let succeeded = Event::RetryFallbackSucceeded { model: "a/small".into(), role: "default".into() };
    for event in [applied, succeeded] {
        let frame = serde_json::to_value(&event).expect("JSON");
        shown.keep(frame["type"].as_str().expect("a type"), &[&frame]);
    }
}

impl Scene<'_> {
    /// Sends a prompt that an extension takes.
    #[track_caller]
    fn handled(&mut self, text: &str) {
        let data = self.variant("prompt:handled", json!({"type": "prompt", "message": text}));
        assert_eq!(data["disposition"], "handled");
    }
}
