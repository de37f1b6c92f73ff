//! What all benches measure: time, memory, processor time, and a line per figure.
#![allow(dead_code, reason = "no bench needs all of it")]

use std::env;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use pith_testkit::{Api, Host, HostBuilder, ModelServer, Script, TempHome};
use serde_json::json;

/// The program under measurement: the one that cargo has built for the bench, or the one that `PITH_BENCH_PROGRAM` names,
/// so that any release can be measured, also with a driver that was built in a hurry (`--profile dev`).
pub static PROGRAM: LazyLock<String> =
    LazyLock::new(|| env::var("PITH_BENCH_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_pith").to_owned()));

/// A pith in a home, with generous timeouts.
pub fn builder(home: &TempHome) -> HostBuilder {
    Host::builder(&*PROGRAM).rpc(Api::Anthropic).home(home).env("PITH_DUMPABLE", "1").timeout(Duration::from_secs(120))
}

/// The time from spawning the process to its first answer, median of `n`.
pub fn start_up(n: usize, furnish: impl Fn(&TempHome)) -> Duration {
    let server = ModelServer::start(Script::new());
    let times = (0..n).map(|_| {
        let home = TempHome::for_server(&server);
        furnish(&home);
        let builder = builder(&home);
        let start = Instant::now();
        let mut host = builder.spawn();
        host.data(json!({"type": "get_state"}));
        start.elapsed()
    });
    median(times.collect())
}

/// Small extensions as people write them; the bench of the extension engine runs them too.
pub fn five_extensions(home: &TempHome) {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../pith-ext/benches/small");
    for entry in fs::read_dir(small).expect("small extensions").flatten() {
        let text = fs::read_to_string(entry.path()).expect("text");
        home.write_agent_file(&format!("extensions/{}", entry.file_name().display()), &text);
    }
}

/// The memory of an idle pith.
pub fn idle_memory(furnish: impl Fn(&TempHome)) -> u64 {
    let server = ModelServer::start(Script::new());
    let home = TempHome::for_server(&server);
    furnish(&home);
    let mut host = builder(&home).spawn();
    host.data(json!({"type": "get_state"}));
    // Memory is released a moment after the first answer.
    std::thread::sleep(Duration::from_millis(500));
    pss(host.pid())
}

/// The median.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Proportional memory in kB.
pub fn pss(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// User and system time in hundredths of a second, as the kernel counts.
pub fn processor_time(pid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Formats kilobytes as megabytes.
pub fn megabytes(kilobytes: u64) -> String {
    format!("{:.1} MB", kilobytes as f64 / 1e3)
}

/// Formats milliseconds.
pub fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[allow(clippy::print_stdout, reason = "the figures are the output")]
pub fn show(what: &str, figure: &str) {
    println!("{what:<60} {figure}");
}
