//! `--debug FILE`: everything that happened, and no key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pith_testkit::{Api, Host, HostBuilder, ModelServer, Output, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::assert_not_in;
use crate::places::{VARIABLE, forms, home, printing, run, start};

const PITH: &str = env!("CARGO_BIN_EXE_pith");
/// Nobody has told pith of these; they look like what they are.
const VENDOR: &str = "ghp_Abcdefghijklmnopqrstuvwxyz0123456789";
const TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVP";
const PRIVATE: &str = "MHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJk5GkMLepOvq";
/// Whether texts are there is seen by these.
const PROMPT: &str = "Zwischenruf";
const ANSWER: &str = "Widerspruch";

fn planted() -> Vec<String> {
    forms().into_iter().chain([VENDOR, TOKEN, PRIVATE].map(str::to_owned)).collect()
}

/// Every line of the file, each of which is JSON.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a debug file");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

fn check(home: &TempHome, file: impl AsRef<Path>) -> Output {
    once(home, &["debug", "check", &file.as_ref().display().to_string()], &[])
}

/// A host that says every key, a model that calls a tool which prints them, and repeats them.
fn play(arguments: &[&str]) -> (TempHome, PathBuf, Vec<Vec<u8>>) {
    let scratch = ModelServer::start(Script::new());
    let home = home(&scratch);
    drop(scratch);
    let said = format!("{ANSWER} {VARIABLE} {VENDOR} {TOKEN}");
    let calls = Turn::call("bash", json!({"command": printing(&home)}));
    let server = ModelServer::start(Script::of([Turn::overloaded(), calls, Turn::text(&said)]));
    let models = home.agent().join("models.json");
    let text = fs::read_to_string(&models).expect("models");
    let mut written: Value = serde_json::from_str(&text).expect("JSON");
    written["providers"][Api::Anthropic.provider()]["baseUrl"] = json!(server.url());
    fs::write(&models, written.to_string()).expect("written");
    home.write_settings(&json!({"retry": {"baseDelayMs": 1}, "permissions": {"deny": ["mcp__elsewhere"]}}));
    let file = home.work().join("debug.jsonl");
    let mut host = start(&home, |builder: HostBuilder| {
        builder.args(["--debug", &file.display().to_string()]).args(arguments.iter().copied())
    });
    let pem = format!("-----BEGIN EC PRIVATE KEY-----\n{PRIVATE}\n-----END EC PRIVATE KEY-----");
    run(&mut host, &format!("{PROMPT} {VARIABLE} {VENDOR} {pem} Authorization: {TOKEN}"));
    host.send_raw(format!("{{\"type\":\"{VARIABLE}\",\"{VENDOR}\":1}}\nno JSON {VARIABLE}\n"));
    host.data(json!({"type": "get_messages"}));
    host.finish();
    (home, file, host.lines())
}

#[test]
fn frames_and_decisions_are_there_and_no_text() {
    let (home, file, sent) = play(&[]);
    let bytes = fs::read(&file).expect("a debug file");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_not_in("the debug file", &bytes, &planted());
    assert_not_in("the debug file", &bytes, &[PROMPT, ANSWER, "seq 1 3000"].map(str::to_owned));
    let directory = home.environment()["HOME"].clone();
    assert_not_in("the debug file", &bytes, &[directory]);
    assert!(String::from_utf8_lossy(&bytes).contains("~/"), "paths are there");
    let lines = lines(&file);
    assert_eq!((&lines[0]["kind"], &lines[0]["content"]), (&json!("begin"), &json!(false)));
    // Every frame, with its length and in its order.
    let lengths: Vec<_> = of_kind(&lines, "out").iter().map(|line| line["bytes"].clone()).collect();
    assert_eq!(lengths, sent.iter().map(|line| json!(line.len())).collect::<Vec<_>>());
    let taken: Vec<_> = of_kind(&lines, "in").iter().map(|line| line["frame"]["type"].clone()).collect();
    assert_eq!(taken, [json!("prompt"), json!("[redacted]"), Value::Null, json!("get_messages")]);
    let types: Vec<_> = of_kind(&lines, "out").iter().map(|line| line["frame"]["type"].clone()).collect();
    for wanted in ["response", "tool_execution_start", "auto_retry_start", "message_update", "agent_settled"] {
        assert!(types.contains(&json!(wanted)), "{wanted} is not in {types:?}");
    }
    // The same text has the same hash.
    let text = |line: &Value| line["frame"]["message"]["content"][0]["text"]["hash"].clone();
    let of_user = |line: &&&Value| line["frame"]["message"]["role"] == "user";
    let hashes: Vec<_> = of_kind(&lines, "out").iter().filter(of_user).map(|line| text(line)).collect();
    assert!(hashes.len() >= 2 && hashes[0].is_string() && hashes[0] == hashes[1], "{hashes:?}");
    // What was decided, and what was sent where.
    let events = of_kind(&lines, "event");
    let event = |part: &str, what: &str| {
        let found = events.iter().find(|line| line["part"] == part && line["what"] == what);
        found.unwrap_or_else(|| panic!("{part} {what} is missing in {events:#?}"))["values"].clone()
    };
    assert_eq!(event("pith::command", "prompt")["placed"], "Ok(Start)");
    assert_eq!(event("pith::tool", "judged")["verdict"], "allow");
    assert_eq!(event("pith::run", "retry")["attempt"], 1);
    assert_eq!(event("pith::compaction", "asked")["due"], "Nothing");
    let request = event("pith::http", "request");
    assert_eq!(request["method"], "POST");
    let headers = request["headers"].as_str().expect("names");
    assert!(
        headers.contains("\"x-team-key\"") && request["url"].as_str().is_some_and(|url| url.ends_with("/messages"))
    );
    assert_eq!(event("pith::http", "response")["status"], 529);
    check(&home, &file).quiet();
}

#[test]
fn texts_are_there_if_asked_for_and_still_no_key() {
    let (home, file, _) = play(&["--debug-content"]);
    let bytes = fs::read(&file).expect("a debug file");
    assert_not_in("the debug file", &bytes, &planted());
    let lines = lines(&file);
    assert_eq!(lines[0]["content"], true);
    let prompt = of_kind(&lines, "in")[0]["frame"]["message"].to_string();
    assert!(prompt.contains(PROMPT) && prompt.contains("[redacted]"), "{prompt}");
    let shows = |line: &&&Value| line["frame"].to_string().contains(ANSWER);
    let shown = of_kind(&lines, "out").iter().filter(shows).count();
    assert!(shown > 0, "{lines:#?}");
    // A key in pieces could be recognised in no piece.
    let pieces = of_kind(&lines, "out").into_iter().filter(|line| line["frame"]["type"] == "message_update");
    pieces.for_each(|line| assert!(!line.to_string().contains(ANSWER), "{line}"));
    check(&home, &file).quiet();
}

#[test]
fn a_check_names_the_line_and_not_the_value() {
    let home = TempHome::new();
    home.write_agent_file(
        "auth.json",
        json!({"groq": {"type": "api_key", "key": "stored-key-A1b2C3d4E5"}}).to_string(),
    );
    let file = home.work().join("debug.jsonl");
    let check_text = |text: &str, code: i32, printed: &str| {
        fs::write(&file, text).expect("written");
        let output = check(&home, &file);
        assert_eq!(output.code, code, "{text}: {output:?}");
        assert_eq!(output.stdout, printed.replace("FILE", &file.display().to_string()), "{text}");
    };
    check_text("{\"a\":\"b\"}\n", 0, "FILE: no credentials in 1 lines\n");
    check_text(
        &format!("{{}}\n{{\"a\":[\"x {VENDOR}\"]}}\n{TOKEN}"),
        1,
        "FILE:2: vendor key\nFILE:3: JSON web token\n",
    );
    check_text("{\"token\":\"tiny\",\"apiKey\":\"[redacted]\"}", 1, "FILE:1: value of a secret name\n");
    check_text("{\"a\":{\"stored-key-A1b2C3d4E5\":1}}", 1, "FILE:1: known key\n");
    assert_eq!(check(&home, home.work().join("nothing")).code, 2);
    assert_eq!(check(&home, home.work()).code, 2);
}

/// Runs pith once with nothing on stdin.
fn once(home: &TempHome, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(PITH);
    command.args(arguments).env_clear().envs(home.environment()).envs(variables.iter().copied());
    Output::of(command.current_dir(home.work()))
}

#[test]
fn modes_without_a_wire_have_frames_too() {
    for mode in ["-p", "--json"] {
        let home = TempHome::new();
        let file = home.work().join("debug.jsonl");
        let arguments = [mode, "--model", "scripted/tour", PROMPT];
        let output = once(&home, &arguments, &[("PITH_DEBUG", &file.display().to_string())]);
        assert_eq!(output.code, 0, "{mode}: {output:?}");
        let lines = lines(&file);
        assert_eq!(of_kind(&lines, "in")[0]["frame"]["type"], "prompt", "{mode}");
        let types: Vec<_> = of_kind(&lines, "out").iter().map(|line| line["frame"]["type"].clone()).collect();
        for wanted in ["agent_start", "message_update", "tool_execution_end", "agent_settled"] {
            assert!(types.iter().any(|kind| kind == wanted), "{mode}: {wanted} in {types:?}");
        }
        let settled = types.iter().filter(|kind| **kind == "agent_settled").count();
        assert_eq!(settled, 1, "{mode}: each frame is there once");
        assert_not_in(mode, &fs::read(&file).expect("a file"), &[PROMPT.to_owned()]);
    }
}

#[test]
fn editors_are_watched_too() {
    let home = TempHome::new();
    let file = home.work().join("debug.jsonl");
    let arguments = ["acp", "--model", "scripted/tour", "--debug", &file.display().to_string()];
    let mut host = Host::builder(PITH).args(arguments).home(&home).spawn();
    let mut ask = |id: u64, method: &str, params: Value| {
        host.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        host.wait(|frame| frame["id"] == id && frame.get("result").is_some())["result"].clone()
    };
    ask(1, "initialize", json!({"protocolVersion": 1}));
    let session = ask(2, "session/new", json!({"cwd": home.work(), "mcpServers": []}))["sessionId"].clone();
    ask(3, "session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": PROMPT}]}));
    host.finish();
    let lines = lines(&file);
    let methods: Vec<_> = of_kind(&lines, "in").iter().map(|line| line["frame"]["method"].clone()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    let lengths: Vec<_> = of_kind(&lines, "out").iter().map(|line| line["bytes"].clone()).collect();
    assert_eq!(lengths, host.lines().iter().map(|line| json!(line.len())).collect::<Vec<_>>());
    assert_not_in("the debug file", &fs::read(&file).expect("a file"), &[PROMPT.to_owned()]);
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_before_the_first_frame() {
    let home = TempHome::new();
    let check = |arguments: &[&str], variables: &[(&str, &str)], text: &str| {
        let output = once(&home, arguments, variables);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        assert_eq!(output.stderr.trim_end(), text, "{arguments:?}");
    };
    check(&["rpc", "--debug", "no/such/x"], &[], "Error: --debug: no/such/x: No such file or directory (os error 2)");
    check(&["-p", "hi"], &[("PITH_DEBUG", ".")], "Error: PITH_DEBUG: .: Is a directory (os error 21)");
    check(&["rpc", "--debug-content"], &[], "Error: --debug-content needs --debug FILE");
    home.write_file("notes.txt", "mine\n");
    check(&["rpc", "--debug", "notes.txt"], &[], "Error: --debug: notes.txt: exists and is not a debug file");
    assert_eq!(home.read_file("notes.txt").as_deref(), Some("mine\n"));
    // A second process may go on in a file that says the same about texts.
    assert_eq!(once(&home, &["--version", "--debug", "log"], &[]).code, 0);
    assert_eq!(once(&home, &["--version", "--debug", "log"], &[]).code, 0);
    assert_eq!(of_kind(&lines(&home.work().join("log")), "begin").len(), 2);
    let refused = "Error: --debug: log: was begun without --debug-content; name another file";
    check(&["rpc", "--debug", "log", "--debug-content"], &[], refused);
}

#[test]
fn a_full_disk_is_told_once_and_pith_goes_on() {
    let home = TempHome::new();
    let output = once(&home, &["-p", "--model", "scripted/tour", "--debug", "/dev/full", "hi"], &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("That was the tour"), "{output:?}");
    let told = "Warning: /dev/full: No space left on device (os error 28); nothing more is written to it";
    assert_eq!(output.stderr.lines().filter(|line| *line == told).count(), 1, "{output:?}");
}

#[test]
fn without_the_flag_nothing_is_written() {
    let home = TempHome::new();
    once(&home, &["-p", "--model", "scripted/tour", "hi"], &[("PITH_DEBUG", "")]);
    let names: Vec<_> =
        fs::read_dir(home.work()).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["pith-tour.txt"]);
}
