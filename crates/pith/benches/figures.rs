//! The figures pith is held to: start-up, idle memory, cost of a stream.
//!
//! `cargo bench -p pith --bench figures` prints them; nothing here asserts.

use std::fs;
use std::time::{Duration, Instant};

use pith_testkit::{Api, Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::json;

const BIN: &str = env!("CARGO_BIN_EXE_pith");

fn main() {
    start_up();
    idle_memory();
    for mode in ["delta", "full"] {
        stream(mode, 20_000, 4);
    }
}

fn host(server: &ModelServer, arguments: &[&str]) -> Host {
    let home = TempHome::for_server(server);
    Host::builder(BIN).rpc(Api::Anthropic).args(arguments).home(&home).patience(Duration::from_secs(120)).spawn()
}

/// From spawning the process to its first answer.
fn start_up() {
    let server = ModelServer::start(Script::new());
    let mut times: Vec<Duration> = (0..41)
        .map(|_| {
            let home = TempHome::for_server(&server);
            let builder = Host::builder(BIN).rpc(Api::Anthropic).home(&home);
            let start = Instant::now();
            let mut host = builder.spawn();
            host.data(json!({"type": "get_state"}));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    show("spawn to get_state, median of 41", &format!("{:.1} ms", times[20].as_secs_f64() * 1e3));
}

fn idle_memory() {
    let server = ModelServer::start(Script::new());
    let mut host = host(&server, &[]);
    host.data(json!({"type": "get_state"}));
    show("idle PSS", &format!("{:.1} MB", pss(host.pid()) as f64 / 1e3));
}

/// Processor time of an answer in many small pieces.
fn stream(mode: &str, n_deltas: usize, chars: usize) {
    let block = Block::text("abcd".repeat(n_deltas * chars / 4));
    let server = ModelServer::start(Script::of([Turn::blocks([block]).chunk(chars)]));
    let mut host = host(&server, &["--stream-updates", mode, "--no-session"]);
    host.data(json!({"type": "get_state"}));
    let before = processor_time(host.pid());
    let start = Instant::now();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_type("agent_settled");
    let (wall, used) = (start.elapsed(), processor_time(host.pid()) - before);
    let megabytes = host.n_bytes() as f64 / 1e6;
    let figures = format!("{:.2} s CPU, {:.2} s, {megabytes:.0} MB written", used.as_secs_f64(), wall.as_secs_f64());
    show(&format!("{n_deltas} deltas of {chars} characters, {mode}"), &figures);
}

fn pss(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// User and system time in hundredths of a second, as the kernel counts.
fn processor_time(pid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

#[allow(clippy::print_stdout, reason = "the figures are the output")]
fn show(what: &str, figure: &str) {
    println!("{what:<52} {figure}");
}
