//! What MCP servers cost: at the start, before the first request, for each call, to keep running.
//!
//! `cargo bench -p pith --bench mcp` prints the figures; nothing is asserted here.

mod measure;

use std::time::{Duration, Instant};

use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Map, Value, json};

use measure::{PROGRAM, median, ms, show};

/// A server that needs no other program than the shell.
const SERVER: &str = r#"while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}; id=${id%%\}*}
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"now","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"now"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;
const N_SERVERS: usize = 20;
const N_STARTS: usize = 41;
const N_CALLS: usize = 200;

fn main() {
    let (without, with) = first_answers();
    show("first answer without servers, median of 41", &ms(without));
    show("first answer with 20 configured servers, median of 41", &ms(with));
    let (without, with) = first_requests();
    show("first prompt to the model's request, without servers, median of 11", &ms(without));
    show("the same with 20 servers that are known from the cache", &ms(with));
    show("a turn with one call of a server over stdio, of 200", &ms(call()));
    show("the end of a session with 10 running servers", &ms(end()));
}

fn servers(n: usize) -> String {
    let entry = json!({"command": "sh", "args": ["-c", SERVER]});
    let servers: Map<String, Value> = (0..n).map(|number| (format!("s{number}"), entry.clone())).collect();
    json!({ "mcpServers": servers }).to_string()
}

fn home(server: &ModelServer, n_servers: usize) -> TempHome {
    let home = TempHome::for_server(server);
    if n_servers > 0 {
        home.write_agent_file("mcp.json", servers(n_servers));
    }
    home
}

fn start(home: &TempHome) -> Host {
    let (provider, model) = (Api::Anthropic.provider(), Api::Anthropic.model());
    let agent = home.agent().display().to_string();
    let builder = Host::builder(&*PROGRAM).home(home).env("PITH_AGENT_DIR", &agent).timeout(Duration::from_secs(120));
    builder.args(["--mode", "rpc", "--provider", provider, "--model", model]).spawn()
}

fn run(host: &mut Host) {
    host.data(json!({"type": "prompt", "message": "go"}));
    host.wait_type("agent_settled");
}

/// From the start of the process to the answer of `get_state`.
fn first_answers() -> (Duration, Duration) {
    let server = ModelServer::start(Script::new());
    let times = |n_servers: usize| {
        let home = home(&server, n_servers);
        let once = || {
            let began = Instant::now();
            let mut host = start(&home);
            host.data(json!({"type": "get_state"}));
            let time = began.elapsed();
            host.finish();
            time
        };
        median((0..N_STARTS).map(|_| once()).collect())
    };
    (times(0), times(N_SERVERS))
}

/// From the first prompt of a process to the end of its one turn.
fn first_requests() -> (Duration, Duration) {
    let times = |n_servers: usize| {
        let server = ModelServer::start(Script::of((0..12).map(|_| Turn::text("fine"))));
        let home = home(&server, n_servers);
        let once = || {
            let mut host = start(&home);
            host.data(json!({"type": "get_state"}));
            let began = Instant::now();
            run(&mut host);
            let time = began.elapsed();
            host.finish();
            time
        };
        // Fills the cache.
        once();
        median((0..11).map(|_| once()).collect())
    };
    (times(0), times(N_SERVERS))
}

/// One turn of a run in which every turn calls a tool.
fn call() -> Duration {
    let calls = (0..N_CALLS).map(|_| Turn::call("mcp__s0__now", json!({})));
    let server = ModelServer::start(Script::of(calls.chain([Turn::text("done")])));
    let home = home(&server, 1);
    let mut host = start(&home);
    let began = Instant::now();
    run(&mut host);
    let time = began.elapsed() / u32::try_from(N_CALLS).unwrap_or(1);
    host.finish();
    time
}

fn end() -> Duration {
    let server = ModelServer::start(Script::of([Turn::text("fine")]));
    let home = home(&server, 10);
    let mut host = start(&home);
    run(&mut host);
    let began = Instant::now();
    host.finish();
    began.elapsed()
}
