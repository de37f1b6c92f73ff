//! The figures that pith is measured by: start-up, idle memory, cost of a stream.
//!
//! `cargo bench -p pith --bench figures` prints them; nothing is asserted here.

mod measure;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pith_testkit::{Api, Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use measure::{builder, five_extensions, idle_memory, megabytes, ms, processor_time, pss, show, start_up};

fn main() {
    show("spawn to get_state, median of 41", &ms(start_up(41, |_| {})));
    show("the same with 100 custom models", &ms(start_up(41, many_models)));
    show("the same with 100 skills and 50 templates", &ms(start_up(41, many_resources)));
    show("the same with five small extensions", &ms(start_up(41, five_extensions)));
    show("idle PSS", &megabytes(idle_memory(|_| {})));
    show("the same with five small extensions", &megabytes(idle_memory(five_extensions)));
    switch_session();
    long_session_turns();
    for mode in ["delta", "full"] {
        stream(mode, 20_000, 4);
    }
}

fn host(server: &ModelServer, arguments: &[&str]) -> Host {
    let home = TempHome::for_server(server);
    builder(&home).args(arguments).spawn()
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

/// A session of 50 MB and 20 000 entries, opened by a running pith, and by pi if one is given.
fn switch_session() {
    let server = ModelServer::start(Script::new());
    let home = TempHome::for_server(&server);
    let file = home.work().join("large.jsonl");
    write_session(&file, &home.work(), 2430);
    // `PITH_BENCH_PI` is a program that starts pi, for a comparison in the same run.
    let pi = std::env::var("PITH_BENCH_PI").ok();
    // In turn, so that other load on the machine affects both.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(timed_switch(&measure::PROGRAM, &home, &file));
        theirs.extend(pi.as_ref().map(|pi| timed_switch(pi, &home, &file)));
    }
    show_switches("switch_session to 50 MB, median of 5", ours);
    if pi.is_some() {
        show_switches("the same with pi", theirs);
    }
}

/// How long it takes, and how large the process is then, in kB.
fn timed_switch(program: &str, home: &TempHome, file: &Path) -> (Duration, u64) {
    let mut host = Host::builder(program).rpc(Api::Anthropic).home(home).timeout(Duration::from_secs(120)).spawn();
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
    let mut host = builder(&home).spawn();
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
    // Afterwards, when pith is at rest.
    std::thread::sleep(Duration::from_millis(500));
    let size = pss(host.pid()) as f64 / 1e3;
    show("a turn after 20 000 messages in 17 MB", &format!("{first:.0} ms CPU, later {later:.1} ms, PSS {size:.0} MB"));
}

/// Writes 20 000 messages of `n_chars` characters each.
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

/// The processor time of an answer in many small pieces.
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
