//! The figures pith is held to: start-up, idle memory, cost of a stream.
//!
//! `cargo bench -p pith --bench figures` prints them; nothing here asserts.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pith_testkit::{Api, Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

const BIN: &str = env!("CARGO_BIN_EXE_pith");

fn main() {
    start_up("spawn to get_state, median of 41", |_| {});
    start_up("the same with 100 custom models", many_models);
    start_up("the same with 100 skills and 50 templates", many_resources);
    start_up("the same with five small extensions", five_extensions);
    idle_memory("idle PSS", |_| {});
    idle_memory("the same with five small extensions", five_extensions);
    switch_session();
    long_session_turns();
    for mode in ["delta", "full"] {
        stream(mode, 20_000, 4);
    }
}

fn host(server: &ModelServer, arguments: &[&str]) -> Host {
    let home = TempHome::for_server(server);
    Host::builder(BIN).rpc(Api::Anthropic).args(arguments).home(&home).patience(Duration::from_secs(120)).spawn()
}

/// From spawning the process to its first answer.
fn start_up(what: &str, furnish: impl Fn(&TempHome)) {
    let server = ModelServer::start(Script::new());
    let mut times: Vec<Duration> = (0..41)
        .map(|_| {
            let home = TempHome::for_server(&server);
            furnish(&home);
            let builder = Host::builder(BIN).rpc(Api::Anthropic).home(&home);
            let start = Instant::now();
            let mut host = builder.spawn();
            host.data(json!({"type": "get_state"}));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    show(what, &format!("{:.1} ms", times[20].as_secs_f64() * 1e3));
}

fn many_models(home: &TempHome) {
    let path = home.agent().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).expect("models.json")).expect("JSON");
    let many: Vec<Value> = (0..100).map(|number| json!({"id": format!("model-{number}"), "reasoning": true})).collect();
    models["providers"]["many"] =
        json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k", "models": many});
    fs::write(path, models.to_string()).expect("models.json");
}

fn many_resources(home: &TempHome) {
    for number in 0..100 {
        let text = format!("---\nname: skill-{number}\ndescription: Does {number}.\n---\nBody.\n");
        home.write_agent_file(&format!("skills/skill-{number}/SKILL.md"), &text);
    }
    for number in 0..50 {
        home.write_agent_file(&format!("prompts/template-{number}.md"), "---\ndescription: x\n---\nDo $1.\n");
    }
}

/// Those that the bench of the extension engine runs.
fn five_extensions(home: &TempHome) {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../pith-ext/benches/small");
    for entry in fs::read_dir(small).expect("small extensions").flatten() {
        let text = fs::read_to_string(entry.path()).expect("text");
        home.write_agent_file(&format!("extensions/{}", entry.file_name().display()), &text);
    }
}

/// A session of 50 MB and 20 000 entries, opened by a running pith, and by pi where one is given.
fn switch_session() {
    let server = ModelServer::start(Script::new());
    let home = TempHome::for_server(&server);
    let file = home.work().join("large.jsonl");
    write_session(&file, &home.work(), 2430);
    // `PITH_BENCH_PI` is a program that starts pi, for a comparison in the same run.
    let pi = std::env::var("PITH_BENCH_PI").ok();
    // In turn, so that whatever else the machine does meets both.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(timed_switch(BIN, &home, &file));
        theirs.extend(pi.as_ref().map(|pi| timed_switch(pi, &home, &file)));
    }
    show_switches("switch_session to 50 MB, median of 5", ours);
    if pi.is_some() {
        show_switches("the same with pi", theirs);
    }
}

/// How long it takes, and how large the process is then, in kB.
fn timed_switch(program: &str, home: &TempHome, file: &Path) -> (Duration, u64) {
    let mut host = Host::builder(program).rpc(Api::Anthropic).home(home).patience(Duration::from_secs(120)).spawn();
    host.data(json!({"type": "get_state"}));
    let start = Instant::now();
    host.data(json!({"type": "switch_session", "sessionPath": file}));
    let measured = (start.elapsed(), pss(host.pid()));
    host.finish();
    measured
}

fn show_switches(what: &str, mut measured: Vec<(Duration, u64)>) {
    measured.sort_unstable();
    let (elapsed, pss) = measured[measured.len() / 2];
    show(what, &format!("{:.3} s, PSS {:.0} MB", elapsed.as_secs_f64(), pss as f64 / 1e3));
}

/// What a turn costs at the end of 20 000 messages in 17 MB, the first one and later ones.
fn long_session_turns() {
    const N_LATER: u32 = 20;
    let turns = (0..=N_LATER).map(|_| Turn::text("fine"));
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&server);
    let file = home.work().join("long.jsonl");
    write_session(&file, &home.work(), 540);
    let mut host = Host::builder(BIN).rpc(Api::Anthropic).home(&home).patience(Duration::from_secs(120)).spawn();
    host.data(json!({"type": "switch_session", "sessionPath": file}));
    let mut turns = |n_turns: u32| {
        let before = processor_time(host.pid());
        for _ in 0..n_turns {
            host.send(json!({"type": "prompt", "message": "go"}));
            host.wait_type("agent_settled");
        }
        (processor_time(host.pid()) - before).as_secs_f64() * 1e3 / f64::from(n_turns)
    };
    let (first, later) = (turns(1), turns(N_LATER));
    let size = pss(host.pid()) as f64 / 1e3;
    show("a turn after 20 000 messages in 17 MB", &format!("{first:.0} ms CPU, later {later:.1} ms, PSS {size:.0} MB"));
}

/// 20 000 messages of so many characters each.
fn write_session(file: &Path, cwd: &Path, n_chars: usize) {
    let mut out = String::new();
    let stamp = "2026-01-01T00:00:00.000Z";
    out.push_str(&format!("{}\n", json!({"type":"session","version":3,"id":"large","timestamp":stamp,"cwd":cwd})));
    let text = "lorem ipsum dolor sit amet ".repeat(n_chars / 27);
    let usage = json!({"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,
        "cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}});
    for number in 0..20_000u32 {
        let content = json!([{"type":"text","text":text}]);
        let message = if number % 2 == 0 {
            json!({"role":"user","content":content,"timestamp":number})
        } else {
            json!({"role":"assistant","content":content,"api":"anthropic-messages","provider":"mock-anthropic",
                "model":"claude-mock","usage":usage,"stopReason":"stop","timestamp":number})
        };
        let parent = number.checked_sub(1).map(|before| format!("{before:08x}"));
        let entry = json!({"type":"message","id":format!("{number:08x}"),"parentId":parent,"timestamp":stamp,"message":message});
        out.push_str(&format!("{entry}\n"));
    }
    fs::write(file, out).expect("the session file");
}

fn idle_memory(what: &str, furnish: impl Fn(&TempHome)) {
    let server = ModelServer::start(Script::new());
    let home = TempHome::for_server(&server);
    furnish(&home);
    let mut host = Host::builder(BIN).rpc(Api::Anthropic).home(&home).spawn();
    host.data(json!({"type": "get_state"}));
    show(what, &format!("{:.1} MB", pss(host.pid()) as f64 / 1e3));
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
