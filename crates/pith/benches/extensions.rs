//! What extensions cost a host: nothing without any, little with five.
//!
//! `cargo bench -p pith --bench extensions` prints the figures; nothing is asserted here.

mod measure;

use std::time::{Duration, Instant};

use pith_testkit::{Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use measure::{builder, five_extensions, idle_memory, median, megabytes, ms, processor_time, show, start_up};

/// Something that puts extensions into a home.
type Furnish = fn(&TempHome);

/// Two extensions with an `input` handler each; the second handles the prompt.
fn two_listening(home: &TempHome) {
    home.write_agent_file("extensions/1.ts", "export default (pi) => pi.on('input', () => ({ action: 'continue' }));");
    home.write_agent_file("extensions/2.ts", "export default (pi) => pi.on('input', () => ({ action: 'handled' }));");
}

/// One that sees every piece of an answer.
fn one_watching(home: &TempHome) {
    let text = "export default (pi) => { let n = 0; pi.on('message_update', () => { n++; }); };";
    home.write_agent_file("extensions/watch.ts", text);
}

/// One that keeps its thread busy until it is interrupted.
fn one_looping(home: &TempHome) {
    let text = "export default (pi) => pi.registerCommand('loop', { handler: async () => { for (;;) {} } });";
    home.write_agent_file("extensions/loop.ts", text);
}

fn none(_: &TempHome) {}

fn main() {
    let (without, with) = (start_up(41, none), start_up(41, five_extensions));
    show("spawn to get_state without extensions, median of 41", &ms(without));
    show("the same with five small extensions", &ms(with));
    show("difference", &ms(with.saturating_sub(without)));

    let (without, with) = (idle_memory(none), idle_memory(five_extensions));
    show("idle PSS without extensions", &megabytes(without));
    show("the same with five small extensions", &megabytes(with));
    show("difference", &megabytes(with.saturating_sub(without)));

    let prompt = |message: &str| json!({"type": "prompt", "message": message});
    let commands: [(&str, Furnish, Value); 3] = [
        ("a prompt that two input handlers deal with", two_listening, prompt("go")),
        ("a command of an extension", five_extensions, prompt("/where here")),
        ("get_state, for comparison", none, json!({"type": "get_state"})),
    ];
    for (what, furnish, command) in commands {
        show(&format!("{what}, median of 1000"), &format!("{} µs", round_trip(furnish, &command).as_micros()));
    }

    show("get_state while an extension loops, median and slowest of 1000", &while_looping());

    let listeners: [(&str, Furnish); 3] =
        [("no extension", none), ("five that do not listen", five_extensions), ("one that listens", one_watching)];
    for mode in ["delta", "full"] {
        for (what, furnish) in listeners {
            show(&format!("20000 deltas of 4 characters, {mode}, {what}"), &stream(mode, furnish));
        }
    }
}

fn start(server: &ModelServer, furnish: Furnish, arguments: &[&str]) -> Host {
    let home = TempHome::for_server(server);
    furnish(&home);
    let mut host = builder(&home).args(arguments).spawn();
    host.data(json!({"type": "get_state"}));
    host
}

/// The time from a command that calls no model to its answer.
fn round_trip(furnish: Furnish, command: &Value) -> Duration {
    let server = ModelServer::start(Script::new());
    let mut host = start(&server, furnish, &["--no-session"]);
    let mut once = || {
        let start = Instant::now();
        host.data(command.clone());
        start.elapsed()
    };
    let times = (0..1000).map(|_| once()).collect();
    assert_eq!(server.requests().len(), 0, "no model was asked");
    median(times)
}

fn while_looping() -> String {
    let server = ModelServer::start(Script::new());
    let mut host = start(&server, one_looping, &["--no-session"]);
    host.send(json!({"id": "loop", "type": "prompt", "message": "/loop"}));
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..1000 {
        let start = Instant::now();
        host.data(json!({"type": "get_state"}));
        times.push(start.elapsed());
    }
    let is_over = host.frames().iter().any(|frame| frame["id"] == "loop");
    assert!(!is_over, "the loop was interrupted before the measurement was done");
    times.sort_unstable();
    format!("{} µs, {}", times[500].as_micros(), ms(times[999]))
}

/// The processor time of an answer in many small pieces.
fn stream(mode: &str, furnish: Furnish) -> String {
    let block = Block::text("abcd".repeat(20_000));
    let server = ModelServer::start(Script::of([Turn::blocks([block]).chunk(4)]));
    let mut host = start(&server, furnish, &["--stream-updates", mode, "--no-session"]);
    let before = processor_time(host.pid());
    let start = Instant::now();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_type("agent_settled");
    let (wall, used) = (start.elapsed(), processor_time(host.pid()) - before);
    format!("{:.2} s CPU, {:.2} s", used.as_secs_f64(), wall.as_secs_f64())
}
