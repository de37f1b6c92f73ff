//! Keys of MCP servers: in their environment, arguments, headers, tokens and addresses, printed by commands and typed by
//! the user. The servers say them wherever a server can say something.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Turn};
use serde_json::json;

use crate::{assert_not_below, assert_not_in};

const WRITTEN: &str = "written-token-A1b2C3d4";
const PRINTED: &str = "printed-value-E5f6G7h8";
const VARIABLE: &str = "variable-key-I9j0K1l2";
const ARGUMENT: &str = "argument-value-M3n4O5";
const TYPED: &str = "typed-by-the-user-P6q7";
const HEADER: &str = "header-key-R8s9T0u1";
const PRINTED_HEADER: &str = "printed-header-V2w3X4";
const BEARER: &str = "bearer-token-Y5z6A7b8";
const QUERY: &str = "query-key-C9d0E1f2G3";

/// A server that says what it knows: on stderr, in its log, in progress, results and errors.
const SERVER: &str = r#"#!/bin/sh
all="$SERVICE_TOKEN $PLAIN $FROM $TYPED $1"
echo "started with $all" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"talks","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"say","inputSchema":{"type":"object"}},{"name":"refuse","inputSchema":{"type":"object"}}]}' ;;
    *'"refuse"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no: %s"}}\n' "$id" "$all"; continue ;;
    *'"say"'*)
      printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"log %s"}}\n' "$all"
      printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"at %s"}}\n' "$token" "$all"
      result='{"content":[{"type":"text","text":"'"said $all"'"}],"structuredContent":{"all":"'"$all"'"}}' ;;
    *'"logging/setLevel"'*) result='{}' ;;
    *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Every key in every form.
fn forms() -> Vec<String> {
    let keys = [WRITTEN, PRINTED, VARIABLE, ARGUMENT, TYPED, HEADER, PRINTED_HEADER, BEARER, QUERY];
    keys.iter().flat_map(|key| [(*key).to_owned(), BASE64_STANDARD.encode(key)]).collect()
}

/// A server at an address that refuses every request and repeats it.
fn repeating() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut said, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap_or(0);
                }
                // The beginning of a body is shown: what matters comes first.
                if !line.starts_with("content-") && !line.starts_with("accept") {
                    said.push_str(line.trim());
                    said.push(' ');
                }
            }
            let _ = reader.read_exact(&mut vec![0; length]);
            let head = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\nconnection: close";
            let _ = write!(&stream, "{head}\r\ncontent-length: {}\r\n\r\n{said}", said.len());
        }
    });
    format!("http://{address}/mcp?api_key={QUERY}")
}

#[test]
fn keys_of_mcp_servers_are_in_no_output() {
    let turns =
        [Turn::call("mcp__talks__say", json!({})), Turn::call("mcp__talks__refuse", json!({})), Turn::text("done")];
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::new();
    home.write_models(&server.url(), |_| {});
    home.write_settings(&json!({"secrets": {"redact": "all"}}));
    let script = home.agent().join("server.sh");
    home.write_agent_file("server.sh", SERVER);
    let env = json!({"SERVICE_TOKEN": WRITTEN, "PLAIN": format!("!printf %s {PRINTED}"), "FROM": "${MY_SERVICE_KEY}",
        "TYPED": "${input:pass}"});
    let headers = json!({"X-Api-Key": HEADER, "X-Team": format!("!printf %s {PRINTED_HEADER}")});
    let servers = json!({
        "talks": {"command": "sh", "args": [script, format!("!printf %s {ARGUMENT}")], "env": env},
        "dies": {"command": "sh", "args": ["-c", "echo cannot use $SERVICE_TOKEN >&2; exit 3"], "env": env},
        "far": {"url": repeating(), "headers": headers, "bearerToken": BEARER},
    });
    let inputs = json!([{"id": "pass", "type": "promptString", "password": true}]);
    home.write_agent_file("mcp.json", json!({"mcpServers": servers, "inputs": inputs}).to_string());
    let (tape, log) = (home.work().join("tape"), home.work().join("pith.log"));
    let mut host = Host::builder(env!("CARGO_BIN_EXE_pith"))
        .rpc(Api::Anthropic)
        .home(&home)
        .env("PITH_AGENT_DIR", &home.agent().display().to_string())
        .env("MY_SERVICE_KEY", VARIABLE)
        .env("PITH_RECORD", &tape.display().to_string())
        .env("PITH_LOG", "trace")
        .env("PITH_LOG_FILE", &log.display().to_string())
        .spawn();
    host.data(json!({"type": "get_mcp_servers"}));
    host.data(json!({"type": "prompt", "message": "say and refuse"}));
    let asked = host.wait(|frame| frame["type"] == "extension_ui_request" && frame["method"] == "input");
    host.send(json!({"type": "extension_ui_response", "id": asked["id"], "value": TYPED}));
    host.wait_type("agent_settled");
    let shown = host.data(json!({"type": "get_mcp_servers", "connect": true}))["servers"].clone();
    let state = |name: &str| {
        shown.as_array().expect("servers").iter().find(|one| one["name"] == name).expect("it")["state"].clone()
    };
    assert_eq!([state("talks"), state("dies"), state("far")], ["ready", "failed", "failed"], "{shown}");
    for command in ["get_diagnostics", "get_state", "get_messages", "get_commands"] {
        host.data(json!({"type": command}));
    }
    host.data(json!({"type": "export_html", "outputPath": "page.html"}));
    let masked = |what: &dyn Fn(&serde_json::Value) -> bool| {
        host.frames().iter().any(|frame| what(frame) && frame.to_string().contains("[redacted] [redacted]"))
    };
    assert!(masked(&|frame| frame["command"] == "get_diagnostics"), "{}", host.describe());
    assert!(masked(&|frame| frame["type"] == "tool_execution_end"), "{}", host.describe());
    host.finish();
    let forms = forms();
    host.lines().iter().for_each(|line| assert_not_in("a frame", line, &forms));
    assert_not_in("stderr", host.stderr().as_bytes(), &forms);
    let requests = server.requests();
    assert!(requests.iter().any(|request| request.body.to_string().contains("said [redacted]")));
    requests.iter().for_each(|request| assert_not_in("a request", request.body.to_string().as_bytes(), &forms));
    assert!(tape.join("0001.json").exists() && log.exists() && home.work().join("page.html").exists());
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("started with [redacted] [redacted]"), "stderr of servers is logged");
    assert_not_below(&home.work(), &forms);
    assert_not_below(&home.tmp(), &forms);
    assert_not_below(&home.agent().join("pith-mcp"), &forms);
    home.sessions().iter().for_each(|session| {
        assert_not_in("the session", &fs::read(&session.path).expect("a session"), &forms);
    });
}
