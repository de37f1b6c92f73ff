//! The figures of the chat: first paint, idle memory, and how long a key takes to show while the model floods the screen.
//!
//! `cargo bench -p pith --bench terminal` prints them; nothing is asserted here. On a busy machine the worst key waits for
//! the machine, so the figures mean something on a quiet one.

mod measure;

use std::time::{Duration, Instant};

use pith_testkit::{TempHome, Terminal};
use serde_json::{Value, json};

use measure::{PROGRAM, median, megabytes, ms, pss, show};

/// The last word of a flood.
const END: &str = "that-was-all";

/// Between two keys, as fast as a keyboard repeats.
const REPEAT: Duration = Duration::from_millis(20);

fn main() {
    show("first paint of the chat, median of 21", &ms(median((0..21).map(|_| first_paint()).collect())));
    show("idle PSS of the chat", &megabytes(idle_memory()));
    flood("10 MB in one line", &text("lorem ipsum dolor ", 600_000));
    flood("10 MB without a space", &text("x", 10_000_000));
    flood("10 MB of wide and combining characters", &text("日本e\u{301}\u{200b} ", 900_000));
    flood("100 000 lines", &text("a line of an answer that has **words** in it\n", 100_000));
    flood("100 000 lines of code", &code("let x = \"abc\"; // what\n", 100_000));
    flood("200 tool calls in a turn", &calls(200));
}

fn open(home: &TempHome, arguments: &[&str]) -> Terminal {
    Terminal::spawn(&PROGRAM, arguments, home)
}

fn first_paint() -> Duration {
    let home = TempHome::new();
    let start = Instant::now();
    let terminal = open(&home, &["--model", "scripted/tour"]);
    terminal.wait_bytes("›", 0);
    start.elapsed()
}

fn idle_memory() -> u64 {
    let home = TempHome::new();
    let terminal = open(&home, &["--model", "scripted/tour"]);
    terminal.wait_bytes("/help lists", 0);
    // Memory is released a moment after the start.
    std::thread::sleep(Duration::from_millis(500));
    pss(terminal.pid())
}

/// A script whose answer repeats a text.
fn text(piece: &str, n_times: usize) -> String {
    script(json!([{"type": "text", "text": piece, "repeat": n_times}, {"type": "text", "text": format!("\n\n{END}")}]))
}

/// A script whose answer is one long block of code.
fn code(line: &str, n_times: usize) -> String {
    let lines = json!({"type": "text", "text": line, "repeat": n_times});
    script(json!([{"type": "text", "text": "```rust\n"}, lines, {"type": "text", "text": END}]))
}

fn script(blocks: Value) -> String {
    json!({"turns": [{"blocks": blocks, "chunk": 64}]}).to_string()
}

/// A script with many tool calls in one turn.
fn calls(n_calls: usize) -> String {
    let call = json!({"type": "toolCall", "name": "bash", "args": {"command": "seq 2000"}});
    let calls: Vec<Value> = std::iter::repeat_n(call, n_calls).collect();
    json!({"turns": [{"blocks": calls}, {"text": END}]}).to_string()
}

/// Types while an answer comes, and shows how long each key took.
fn flood(what: &str, script: &str) {
    let home = TempHome::new();
    home.write_file("flood.json", script);
    // A summary would take the place of the flood's end.
    home.write_agent_file("settings.json", r#"{"compaction": {"enabled": false}}"#);
    let mut terminal = open(&home, &["--script", "flood.json"]);
    terminal.wait_bytes("/help lists", 0);
    terminal.time_until("go\r", " · Esc stops");
    let (mut times, mut typed, mut largest) = (Vec::new(), String::new(), 0);
    while !terminal.has_written(END) {
        // A text that no flood contains.
        if typed.len() == 40 {
            terminal.type_keys("\x15");
            typed.clear();
        }
        let key = ["z", "q", "v", "k"][typed.len() % 4];
        typed.push_str(key);
        times.push(terminal.time_until(key, &typed));
        largest = largest.max(pss(terminal.pid()));
        std::thread::sleep(REPEAT);
    }
    times.sort_unstable();
    let (n_keys, worst) = (times.len(), times.last().copied().unwrap_or_default());
    let figures = format!("median {}, worst {}, {n_keys} keys; {}", ms(median(times)), ms(worst), megabytes(largest));
    show(&format!("a key during {what}"), &figures);
}
