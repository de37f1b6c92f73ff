//! Input that no editor should send. It is answered, and the editor is still served.

use std::io::Write;
use std::process::{Command, Stdio};

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::Editor;

#[test]
fn what_is_no_request_is_answered_with_an_error() {
    let mut editor = Editor::new([Turn::text("still here")]);
    let start = editor.host.frames().len();
    let lines = [
        ("{", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"session/list"}]"#, -32600, Value::Null),
        ("\"text\"", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"session/list"}"#, -32600, Value::Null),
        (r#"{"id":"a","method":"session/list"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"1.0","id":"a1","method":"session/list"}"#, -32600, json!("a1")),
        (r#"{"jsonrpc":"2.0","id":"b"}"#, -32600, json!("b")),
        (r#"{"jsonrpc":"2.0","id":"b1","method":5}"#, -32600, json!("b1")),
        (r#"{"jsonrpc":"2.0","id":{},"method":"session/list"}"#, -32600, Value::Null),
        ("5", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":"c","method":"dance"}"#, -32601, json!("c")),
        (r#"{"jsonrpc":"2.0","id":"d","method":"_pith/dance"}"#, -32601, json!("d")),
        (r#"{"jsonrpc":"2.0","id":"e","method":"logout"}"#, -32601, json!("e")),
        (r#"{"jsonrpc":"2.0","id":"f","method":"authenticate","params":{"methodId":"x"}}"#, -32602, json!("f")),
        (r#"{"jsonrpc":"2.0","id":"g","method":"session/new","params":{"mcpServers":[]}}"#, -32602, json!("g")),
        (
            r#"{"jsonrpc":"2.0","id":"h","method":"session/new","params":{"cwd":"relative","mcpServers":[]}}"#,
            -32602,
            json!("h"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"i","method":"session/new","params":{"cwd":"/nowhere/at/all","mcpServers":[]}}"#,
            -32602,
            json!("i"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"j","method":"session/prompt","params":{"sessionId":"?","prompt":[]}}"#,
            -32002,
            json!("j"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"k","method":"session/load","params":{"sessionId":"../../etc/passwd","cwd":"/","mcpServers":[]}}"#,
            -32002,
            json!("k"),
        ),
        (r#"{"jsonrpc":"2.0","id":"l","method":"session/close","params":{"sessionId":"?"}}"#, -32002, json!("l")),
    ];
    for (line, ..) in &lines {
        editor.host.send_raw(format!("{line}\r\n\n"));
    }
    // None of these is answered: notifications, and answers to nothing.
    editor.notify("dance", json!({}));
    editor.notify("session/cancel", json!({"sessionId": "?"}));
    editor.notify("$/cancel_request", json!({"requestId": "never"}));
    editor.host.send(json!({"jsonrpc": "2.0", "id": "p77", "result": {}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let frames = editor.finish().split_off(start);
    for (line, code, id) in &lines {
        let answer = frames.iter().find(|frame| frame["error"]["code"] == *code && frame["id"] == *id);
        assert!(answer.is_some(), "{line}");
    }
    let n_errors = frames.iter().filter(|frame| frame.get("error").is_some()).count();
    assert_eq!(n_errors, lines.len());
}

#[test]
fn wrong_parameters_are_named() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    let id = editor.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text"}]}));
    let error = editor.answer(id)["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["data"]["field"].as_str().is_some_and(|field| field.starts_with("prompt")), "{error}");
    let empty = editor.refusal("session/prompt", json!({"sessionId": session, "prompt": []}));
    assert_eq!(empty, (-32602, "The prompt is empty".to_owned()));
    editor.finish();
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let mut editor = Editor::with([], json!({}), |builder| builder.args(["--max-line-bytes", "2000"]));
    editor.host.send_raw(format!("{}\n", "x".repeat(5000)));
    let error = editor.host.wait(|frame| frame["id"].is_null() && frame.get("error").is_some());
    assert_eq!(error["error"]["code"], -32700);
    editor.new_session();
    editor.finish();
}

#[test]
fn an_id_under_way_cannot_be_used_again() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "go");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    editor.host.send(json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}));
    let error = editor.host.wait(|frame| frame["id"] == id);
    assert_eq!(error["error"]["code"], -32600);
    editor.server.release(0);
    let end = editor.host.wait(|frame| frame["id"] == id);
    assert_eq!(end["result"]["stopReason"], "end_turn");
    let (_, code) = editor.host.finish();
    assert_eq!(code, 0);
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let cwd = editor.home.work();
    let opened = editor.send("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let forked = editor.send("session/fork", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    let listed = editor.send("session/list", json!({}));
    let wrong = editor.send("session/new", json!({"cwd": "relative", "mcpServers": []}));
    let frames = editor.finish();
    let answer = |id: u64| {
        let answers: Vec<_> =
            frames.iter().filter(|frame| frame["id"] == id && frame.get("method").is_none()).collect();
        assert_eq!(answers.len(), 1, "one answer to {id}: {answers:?}");
        answers[0].clone()
    };
    assert_eq!(answer(prompt)["result"]["stopReason"], "cancelled");
    assert!(answer(opened)["result"]["sessionId"].is_string());
    assert!(answer(forked)["result"]["sessionId"].is_string());
    assert!(answer(listed)["result"]["sessions"].is_array());
    assert_eq!(answer(wrong)["error"]["code"], -32602);
}

#[test]
fn a_signal_withdraws_what_is_under_way() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    let silent = json!({"silent": {"command": "sh", "args": ["-c", "cat > /dev/null"]}});
    editor.ask("_pith/set_mcp_servers", json!({"sessionId": session, "servers": silent}));
    let waiting = editor.send("_pith/mcp", json!({"sessionId": session, "connect": true}));
    editor.ask("session/list", json!({}));
    editor.host.signal(Signal::TERM);
    assert_eq!(editor.host.exit_code(), 143);
    assert_eq!(editor.answer(waiting)["error"]["code"], -32800);
}

#[test]
fn the_log_has_methods_and_words_of_the_user_only_if_asked_for() {
    for (wish, shows_words) in [("debug", false), ("acp", false), ("acp=trace", true)] {
        let mut editor = Editor::with([Turn::text("fine")], json!({}), |builder| builder.env("PITH_LOG", wish));
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "a private matter"), "end_turn");
        let log = editor.host.stderr();
        editor.finish();
        assert!(log.contains("session/prompt"), "{wish}: {log}");
        assert_eq!(log.contains("a private matter"), shows_words, "{wish}: {log}");
    }
}

#[test]
fn nothing_is_served_before_the_introduction() {
    let server = ModelServer::start(Script::of([]));
    let home = TempHome::for_server(&server);
    let mut editor = Editor::start(server, home, |builder| builder);
    let refused = editor.refusal("session/list", json!({}));
    assert_eq!(refused, (-32600, "Call initialize first".to_owned()));
    editor.finish();
}

#[test]
fn the_command_line_cannot_choose_the_session() {
    for arguments in
        [&["acp", "--continue"][..], &["acp", "--session", "x"], &["acp", "hello"], &["--mode", "acp", "-r"]]
    {
        let output =
            Command::new(env!("CARGO_BIN_EXE_pith")).args(arguments).stdin(Stdio::null()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("has no meaning in acp mode"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_editor_that_only_introduces_itself_gets_one_line() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pith"))
        .arg("acp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let line = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    writeln!(stdin, "{line}").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1"#), "{text}");
}

#[test]
fn a_closed_session_is_not_found() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    editor.ask("session/close", json!({"sessionId": session}));
    let named = json!({"sessionId": session});
    for (method, params) in [
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "full"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "full"})),
        ("_session/steering", json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})),
        ("_pith/state", named.clone()),
        ("session/close", named.clone()),
        // It was never prompted, so there is no file of it, either.
        ("session/status", named),
    ] {
        assert_eq!(editor.refusal(method, params), (-32002, format!("Session not found: {session}")), "{method}");
    }
    editor.finish();
}

#[test]
fn a_second_answer_is_ignored() {
    let mut editor =
        Editor::with([Turn::call("bash", json!({"command": "echo ran"})), Turn::text("done")], json!({}), |builder| {
            builder
        });
    editor.home.write_agent_file(
        "extensions/gate.ts",
        "export default (pi) => pi.on('tool_call', async (event, ctx) =>
           (await ctx.ui.confirm('Run it?', '')) ? undefined : { block: true, reason: 'no' });",
    );
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let selected = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
    editor.reply(&asked, selected("allow"));
    editor.reply(&asked, selected("reject"));
    editor.refuse(&asked, "a third one");
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let frames = editor.finish();
    assert!(frames.iter().any(|frame| frame["params"]["update"]["status"] == "completed"));
}
