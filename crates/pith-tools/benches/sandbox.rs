//! What a sandbox adds to a command and to reading a small file. The limits are 1 ms and 10 µs.
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
use pith_tools::sandbox::{Enforced, Sandbox};
use serde_json::{Value, json};

const N_CALLS: usize = 300;

fn main() {
    if let Err(why) = Support::check_this_kernel() {
        println!("skipped: {why}");
        return;
    }
    run(async {
        let free = Bench::with(|_| {});
        let confined = Bench::with(|options| {
            let root = options.temp.canonicalize().expect("it exists");
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root))));
        });
        for bench in [&free, &confined] {
            bench.file("small.txt", "a line\n".repeat(100));
        }
        let calls = [
            ("bash", json!({"command": ":"}), "a command"),
            ("read", json!({"path": "small.txt"}), "reading a small file"),
        ];
        for (tool, arguments, what) in calls {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for _ in 0..N_CALLS {
                without.push(time(&free, tool, &arguments).await);
                with.push(time(&confined, tool, &arguments).await);
            }
            show(&format!("{what}, without a sandbox"), &mut without);
            show(&format!("{what}, workspace-write"), &mut with);
            let added = |at: usize| (with[at].as_secs_f64() - without[at].as_secs_f64()) * 1e6;
            println!("{:<44} least {:>6.0} µs   median {:>6.0} µs", "  added", added(0), added(N_CALLS / 2));
        }
    });
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
fn enforced(root: &Path) -> Enforced {
    for directory in ["home/.ssh", "home/.config/gcloud", "home/.cargo", "agent/sessions", "tmp", "work/.git/hooks"] {
        fs::create_dir_all(root.join(directory)).expect("made");
    }
    for n in 0..12 {
        fs::write(root.join(format!("work/.git/hooks/{n}.sample")), "#!/bin/sh\n".repeat(100)).expect("written");
    }
    common::enforced(root, &json!({"profile": "workspace-write"}))
}
