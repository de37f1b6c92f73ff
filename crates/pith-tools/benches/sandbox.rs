//! What a sandbox adds to a command, and to reading and writing a small file. The limits are 1 ms, 1.5 ms in
//! namespaces, 10 µs and 50 µs.
//!
//! `cargo bench -p pith-tools --bench sandbox` prints it; nothing is asserted here. Calls without and with a sandbox take
//! turns. The least time is what the work takes, the median what a user of this machine sees.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "the figures are the output")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Bench, run};
use pith_sandbox::Support;
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::{Enforced, Sandbox};
use serde_json::{Value, json};

const N_CALLS: usize = 300;

fn main() {
    if let Err(why) = Support::check_this_kernel() {
        println!("skipped: {why}");
        return;
    }
    let has_namespaces = probe_namespaces(&common::supervisor());
    run(async {
        let free = Bench::with(|_| {});
        let mut confined = vec![("workspace-write", bench_with(false))];
        match has_namespaces {
            Ok(()) => confined.push(("in namespaces", bench_with(true))),
            Err(why) => println!("no namespaces: {why}"),
        }
        for bench in confined.iter().map(|(_, bench)| bench).chain([&free]) {
            bench.file("small.txt", "a line\n".repeat(100));
        }
        let calls = [
            ("bash", json!({"command": ":"}), "a command"),
            ("read", json!({"path": "small.txt"}), "reading a small file"),
            ("write", json!({"path": "written.txt", "content": "a line\n"}), "writing a small file"),
        ];
        for (tool, arguments, what) in calls {
            let mut without = Vec::new();
            let mut with: Vec<Vec<Duration>> = vec![Vec::new(); confined.len()];
            for _ in 0..N_CALLS {
                without.push(time(&free, tool, &arguments).await);
                for ((_, bench), times) in confined.iter().zip(&mut with) {
                    times.push(time(bench, tool, &arguments).await);
                }
            }
            show(&format!("{what}, without a sandbox"), &mut without);
            for ((how, _), times) in confined.iter().zip(&mut with) {
                show(&format!("{what}, {how}"), times);
                let added = |at: usize| (times[at].as_secs_f64() - without[at].as_secs_f64()) * 1e6;
                println!("{:<44} least {:>6.0} µs   median {:>6.0} µs", "  added", added(0), added(N_CALLS / 2));
            }
        }
    });
}

fn bench_with(namespaces: bool) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().expect("it exists");
        options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root, namespaces))));
    })
}

async fn time(bench: &Bench, tool: &str, arguments: &Value) -> Duration {
    let start = Instant::now();
    bench.ok(tool, arguments.clone()).await;
    start.elapsed()
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!("{what:<44} least {:>6.0} µs   median {:>6.0} µs", micros(times[0]), micros(times[times.len() / 2]));
}

/// A repository in a home with keys, as users have them.
fn enforced(root: &Path, namespaces: bool) -> Enforced {
    for directory in ["home/.ssh", "home/.config/gcloud", "home/.cargo", "agent/sessions", "tmp", "work/.git/hooks"] {
        fs::create_dir_all(root.join(directory)).expect("made");
    }
    for n in 0..12 {
        fs::write(root.join(format!("work/.git/hooks/{n}.sample")), "#!/bin/sh\n".repeat(100)).expect("written");
    }
    common::enforced_with(root, &json!({"profile": "workspace-write"}), namespaces)
}
