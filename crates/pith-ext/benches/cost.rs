//! What extensions cost: start-up, an event, memory. Run with `cargo bench -p pith-ext`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a table for people")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use pith_ext::{EventName, Limits};
use serde_json::json;
use support::Harness;

/// Small extensions as people write them: a gate, a tool, a command, a status line, a prompt addition.
const SMALL: &[(&str, &str)] = &[
    ("gate.ts", include_str!("small/gate.ts")),
    ("tool.ts", include_str!("small/tool.ts")),
    ("command.ts", include_str!("small/command.ts")),
    ("status.ts", include_str!("small/status.ts")),
    ("prompt.ts", include_str!("small/prompt.ts")),
];

fn memory(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

async fn start_up() -> (Harness, Duration) {
    let began = Instant::now();
    let harness = Harness::with_limits(Limits::default());
    harness.run(SMALL).await;
    harness.handle.session_start("startup", None).await;
    (harness, began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let before = ["Pss:", "Pss_Anon:", "Pss_File:"].map(memory);
    let (harness, first) = start_up().await;
    let after = ["Pss:", "Pss_Anon:", "Pss_File:"].map(memory);
    let [all, heap, file] = [0, 1, 2].map(|index| after[index].saturating_sub(before[index]));
    println!("five small extensions, first start   {first:?}");
    println!("memory added                         {all} kB PSS ({heap} kB of its own, {file} kB of the program)");
    let mut starts = Vec::new();
    for _ in 0..20 {
        starts.push(start_up().await.1);
    }
    println!("the same, median of 20               {:?}", median(starts));
    let mut events = Vec::new();
    for turn in 0..3000 {
        let began = Instant::now();
        harness.handle.notify(EventName::TurnStart, json!({ "turnIndex": turn, "timestamp": 0 })).await;
        events.push(began.elapsed());
    }
    println!("event with two handlers, median      {:?}", median(events));
    let mut silent = Vec::new();
    for _ in 0..3000 {
        let began = Instant::now();
        harness.handle.observe_update(EventName::MessageUpdate, "m", || json!({}));
        silent.push(began.elapsed());
    }
    println!("event nobody listens for, median     {:?}", median(silent));
}
