//! What MCP servers cost: at the start, before the first request, for each call, to keep running.
//!
//! `cargo bench -p pith --bench mcp` prints the figures; nothing is asserted here.

mod measure;

use std::time::{Duration, Instant};

use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Map, Value, json};

use measure::{PROGRAM, median, ms, pss, show};

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
    let (own, of_server) = (turn(Called::Own), turn(Called::OfServer));
    show("a turn with one call of a tool of pith's own, of 200", &ms(own));
    show("a turn with one call of a server over stdio, of 200", &ms(of_server));
    let (idle, running) = memory();
    show("PSS for each of 20 servers that are configured", &kilobytes(idle));
    show("PSS for each of 20 servers that run, without the servers", &kilobytes(running));
    show("the end of a session with 10 running servers", &ms(end()));
}

fn servers(n: usize) -> String {
    let entry = json!({"command": "sh", "args": ["server.sh"]});
    let servers: Map<String, Value> = (0..n).map(|number| (format!("s{number}"), entry.clone())).collect();
    json!({ "mcpServers": servers }).to_string()
}

fn home(server: &ModelServer, n_servers: usize) -> TempHome {
    let home = TempHome::for_server(server);
    if n_servers > 0 {
        // In a file: `${` in an entry is a variable of pith.
        home.write_file("server.sh", SERVER);
        home.write_agent_file("mcp.json", servers(n_servers));
    }
    home
}

fn start(home: &TempHome) -> Host {
    let (provider, model) = (Api::Anthropic.provider(), Api::Anthropic.model());
    let agent = home.agent().display().to_string();
    let builder = Host::builder(&*PROGRAM)
        .home(home)
        .env("PITH_AGENT_DIR", &agent)
        .env("PITH_DUMPABLE", "1")
        .timeout(Duration::from_secs(120));
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

/// Whose tool is called.
#[derive(Clone, Copy)]
enum Called {
    Own,
    OfServer,
}

/// One turn of a run in which every turn calls a tool.
fn turn(called: Called) -> Duration {
    let call = || match called {
        Called::Own => Turn::call("ls", json!({})),
        Called::OfServer => Turn::call("mcp__s0__now", json!({})),
    };
    let calls = (0..N_CALLS).map(|_| call());
    let server = ModelServer::start(Script::of(calls.chain([Turn::text("done")])));
    let home = home(&server, 1);
    let mut host = start(&home);
    let began = Instant::now();
    run(&mut host);
    let time = began.elapsed() / u32::try_from(N_CALLS).unwrap_or(1);
    host.finish();
    time
}

/// What there is of servers when memory is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Servers {
    None,
    Configured,
    Running,
}

/// What configured and what running servers add to the memory of pith, for each.
fn memory() -> (u64, u64) {
    let at_rest = |servers: Servers| {
        let server = ModelServer::start(Script::new());
        let home = home(&server, if servers == Servers::None { 0 } else { N_SERVERS });
        let mut host = start(&home);
        host.data(json!({"type": "get_state"}));
        if servers == Servers::Running {
            let servers = host.data(json!({"type": "get_mcp_servers", "connect": true}))["servers"].clone();
            let is_ready = |server: &Value| server["state"] == "ready";
            assert!(servers.as_array().is_some_and(|all| all.iter().all(is_ready)), "{servers}");
        }
        // Memory is given back a moment after the last work.
        std::thread::sleep(Duration::from_millis(500));
        pss(host.pid())
    };
    let n_servers = N_SERVERS as u64;
    let none = at_rest(Servers::None);
    let (configured, running) = (at_rest(Servers::Configured), at_rest(Servers::Running));
    (configured.saturating_sub(none) / n_servers, running.saturating_sub(none) / n_servers)
}

fn kilobytes(kilobytes: u64) -> String {
    format!("{kilobytes} kB")
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
