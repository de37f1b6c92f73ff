//! Conversations with a third-party model server: a mock from a package registry, whose authors read the providers'
//! documentation themselves.
//!
//! It is installed once into a cache. Where that is not possible (no npm, no network, no such package) the tests print
//! that and pass.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use pith_testkit::{Api, TempHome, process, timeout};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::{assert_closed, assert_like, builder, of_type, texts};

const PACKAGE: &str = "@copilotkit/aimock";
/// Exact, so that a new release cannot break the build of an unchanged commit.
const VERSION: &str = "1.43.0";
const INSTALL_LIMIT: Duration = Duration::from_secs(15);

#[test]
fn completions_with_a_third_party_server() {
    converse(Api::Completions);
}

#[test]
fn anthropic_messages_with_a_third_party_server() {
    converse(Api::Anthropic);
}

#[test]
fn responses_with_a_third_party_server() {
    converse(Api::Responses);
}

#[test]
fn gemini_with_a_third_party_server() {
    converse(Api::Google);
}

/// Two tool calls in one answer, the final answer, and a second prompt that carries all of it as history.
fn converse(api: Api) {
    let Some(program) = installed() else { return };
    let home = TempHome::new();
    home.write_file("notes.txt", "one\ntwo\nthree\n");
    home.write_file("fixtures.json", fixtures(api).to_string());
    let server = OtherServer::start(program, &home);
    home.write_models(&server.url, |_| {});
    let mut host = builder().rpc(api).home(&home).spawn();

    let started = json!({"disposition": "started"});
    assert_eq!(host.data(json!({"type": "prompt", "message": "How many lines are in notes.txt?"})), started);
    host.wait_type("agent_settled");
    assert_eq!(host.data(json!({"type": "get_last_assistant_text"}))["text"], "There are 3 lines.");
    assert_eq!(host.data(json!({"type": "prompt", "message": "Now in words."})), started);
    host.wait_type("agent_settled");
    assert_eq!(host.data(json!({"type": "get_last_assistant_text"}))["text"], IN_WORDS);
    let (frames, code) = host.finish();
    assert_eq!(code, 0, "{}", host.describe());

    assert_closed(&frames);
    let mut results: Vec<_> = of_type(&frames, "tool_execution_end").into_iter().cloned().collect();
    results.sort_by_key(|result| result["toolName"].to_string());
    assert_eq!(results.len(), 2, "{results:?}");
    assert_like(&results[0], &json!({"toolName": "bash", "isError": false}));
    assert_eq!(texts(&results[0]["result"]["content"]), "counted 3\n");
    assert_like(&results[1], &json!({"toolName": "read", "isError": false}));
    assert_eq!(texts(&results[1]["result"]["content"]), "one\ntwo\nthree\n");
    let reasons: Vec<_> = of_type(&frames, "turn_end").iter().map(|turn| &turn["message"]["stopReason"]).collect();
    assert_eq!(reasons, ["toolUse", "stop", "stop"]);
    let first = of_type(&frames, "turn_end")[0];
    let blocks: Vec<_> = first["message"]["content"].as_array().into_iter().flatten().collect();
    let kinds: Vec<_> = blocks.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "toolCall", "toolCall"]);
    assert_eq!((&blocks[0]["thinking"], &blocks[1]["text"]), (&json!(THOUGHT), &json!("Let me look.")));
    assert_understood(&server.journal());
}

/// Checks that the server understood every request, whatever its format.
#[track_caller]
fn assert_understood(journal: &[Value]) {
    let statuses: Vec<_> = journal.iter().map(|request| &request["response"]["status"]).collect();
    assert_eq!(statuses, [200, 200, 200], "{journal:#?}");
    let messages = journal[2]["body"]["messages"].as_array().expect("messages are a list");
    let mut roles: Vec<_> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    roles.retain(|role| !matches!(*role, "system" | "developer"));
    // Responses has no messages of several parts: text and calls are separate items.
    roles.dedup_by(|role, before| role == before && *role == "assistant");
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"], "{messages:#?}");
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let called: Vec<_> = calls.map(|call| (&call["function"]["name"], &call["id"])).collect();
    let answered: Vec<_> = messages.iter().filter_map(|message| message.get("tool_call_id")).collect();
    assert_eq!(called, [(&json!("read"), answered[0]), (&json!("bash"), answered[1])], "{messages:#?}");
}

/// Longer than a chunk of the server, with characters that chunks can split.
const IN_WORDS: &str = "Three lines: “one”, “two” and “three” — drei, три, 三, 🥉. Nothing else is in the file.";

/// The server refuses the next `anthropic-messages` request if this does not come back signed.
const THOUGHT: &str = "Counting is a job for a tool.";

fn fixtures(api: Api) -> Value {
    let calls = json!([
        {"id": "call_read", "name": "read", "arguments": {"path": "notes.txt"}},
        {"id": "call_count", "name": "bash", "arguments": {"command": "echo counted $(wc -l < notes.txt)"}},
    ]);
    let mut look = json!({"reasoning": THOUGHT, "content": "Let me look.", "toolCalls": calls});
    if api == Api::Google {
        // Gemini ends a call like any answer; the server would add its own reason.
        look["finishReason"] = json!("stop");
    }
    json!({"fixtures": [
        {"match": {"userMessage": "Now in words"}, "response": {"content": IN_WORDS}},
        {"match": {"toolResultContains": "counted 3"}, "response": {"content": "There are 3 lines."}},
        {"match": {"userMessage": "How many lines", "hasToolResult": false}, "response": look},
    ]})
}

/// The running mock.
struct OtherServer {
    child: Child,
    url: String,
}

impl OtherServer {
    #[track_caller]
    fn start(program: &Path, home: &TempHome) -> Self {
        // Its stdin is a pipe of the test: even if the test is killed, the pipe closes and the server ends.
        let leave = "data:text/javascript,process.stdin.on('end',()=>process.exit()).resume()";
        let mut command = Command::new("node");
        command.args(["--import", leave]).arg(program).args(["--host", "127.0.0.1", "--port", "0", "--strict"]);
        command.arg("--fixtures").arg(home.work().join("fixtures.json"));
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).current_dir(home.work());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("node starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut server = OtherServer { child, url: String::new() };
        let (sender, receiver) = mpsc::channel();
        // Reads to the end: a full pipe would block the server.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some((_, url)) = line.split_once("listening on ") {
                    sender.send(url.trim().to_owned()).ok();
                }
            }
        });
        server.url = receiver.recv_timeout(timeout()).expect("the server says where it listens");
        server
    }

    fn journal(&self) -> Vec<Value> {
        let address = self.url.strip_prefix("http://").expect("a plain URL");
        let mut connection = TcpStream::connect(address).expect("the server is running");
        connection.set_read_timeout(Some(timeout())).expect("a timeout");
        connection.write_all(b"GET /__aimock/journal HTTP/1.0\r\n\r\n").expect("the server reads");
        let mut response = String::new();
        connection.read_to_string(&mut response).expect("the server answers");
        let (_, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).expect("the journal is a list")
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_third_party_server_ends_with_its_test() {
    let Some(program) = installed() else { return };
    let home = TempHome::new();
    home.write_file("fixtures.json", fixtures(Api::Completions).to_string());
    let mut server = OtherServer::start(program, &home);
    let marker = home.work().display().to_string();
    assert!(!process::with_marker(&marker).is_empty());
    // What the kernel does when a test process is killed.
    drop(server.child.stdin.take());
    process::no_process_with(&marker, timeout());
}

/// The server's program, installed if necessary; prints why if it is not available.
fn installed() -> Option<&'static Path> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(install).as_deref();
    let test = thread::current().name().unwrap_or_default().to_owned();
    // Not `println`, which the test runner hides when a test passes.
    installed.inspect_err(|reason| drop(writeln!(io::stderr(), "SKIPPED {test}: no {PACKAGE}: {reason}"))).ok()
}

fn install() -> Result<PathBuf, String> {
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let cache = cache.join("pith-tests");
    let place = cache.join(format!("aimock-{VERSION}"));
    let program = place.join("node_modules").join(PACKAGE).join("dist/cli.js");
    if program.exists() {
        return Ok(program);
    }
    // Moved into place when complete, so that a failed or second install does no harm.
    let fresh = cache.join(format!("aimock-{VERSION}-for-{}", std::process::id()));
    fs::create_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    let outcome = npm_install(&fresh);
    if outcome.is_ok() {
        fs::rename(&fresh, &place).ok();
    }
    fs::remove_dir_all(&fresh).ok();
    outcome?;
    if program.exists() { Ok(program) } else { Err("the package has no dist/cli.js".to_owned()) }
}

fn npm_install(place: &Path) -> Result<(), String> {
    let mut command = Command::new("npm");
    command.arg("install").arg(format!("{PACKAGE}@{VERSION}")).arg("--prefix").arg(place);
    command.args(["--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict", "--fetch-retries=0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|error| format!("npm: {error}"))?;
    let group = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(INSTALL_LIMIT) else {
        kill_process_group(group, Signal::KILL).ok();
        return Err(format!("npm install took longer than {INSTALL_LIMIT:?}"));
    };
    let output = output.map_err(|error| format!("npm: {error}"))?;
    let problems = String::from_utf8_lossy(&output.stderr);
    let reason = problems.lines().find(|line| line.contains("npm error")).unwrap_or("no reason given");
    if output.status.success() { Ok(()) } else { Err(format!("npm install failed: {reason}")) }
}
