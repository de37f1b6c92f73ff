//! What a sandbox adds to a command, and to a file that is read or written. The limits are 1 ms, 10 µs and 50 µs.
//!
//! `cargo bench -p pith --bench sandbox` prints it; nothing is asserted here.
//!
//! A scripted model makes the same call many times; a call takes from `tool_execution_start` to `tool_execution_end` as
//! the host reads them. Runs without and with a sandbox take turns, and their medians are compared. Each file beside a path
//! that cannot be read costs a rule, so the figures depend on how full the directory of temporary files is.

mod measure;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::{median, show};
use pith_testkit::TempHome;
use serde_json::{Value, json};

const N_CALLS: usize = 100;
const N_ROUNDS: usize = 5;

fn main() {
    let calls = [
        ("bash", json!({"command": ":"}), "a command"),
        ("read", json!({"path": "small.txt"}), "reading a small file"),
        ("write", json!({"path": "written.txt", "content": "a line\n"}), "writing a small file"),
    ];
    for (tool, arguments, what) in calls {
        let (mut free, mut confined) = (Vec::new(), Vec::new());
        for _ in 0..N_ROUNDS {
            free.extend(times(tool, &arguments, "off"));
            confined.extend(times(tool, &arguments, "workspace-write"));
        }
        let (free, confined) = (median(free), median(confined));
        let microseconds = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
        show(&format!("{what}, without a sandbox"), &microseconds(free));
        show(&format!("{what}, workspace-write"), &microseconds(confined));
        show(&format!("{what}, added"), &microseconds(confined.saturating_sub(free)));
    }
}

/// How long each of the calls takes in a session with this profile.
fn times(tool: &str, arguments: &Value, profile: &str) -> Vec<Duration> {
    let home = TempHome::new();
    let call = json!({"blocks": [{"type": "toolCall", "name": tool, "args": arguments}]});
    let turns: Vec<Value> = vec![call; N_CALLS].into_iter().chain([json!({"text": "done"})]).collect();
    home.write_file("script.json", json!({"turns": turns}).to_string());
    home.write_file("small.txt", "a line\n".repeat(100));
    let mut child = Command::new(&*measure::PROGRAM)
        .args(["--mode", "rpc", "--no-session", "--stream-updates", "delta", "--script", "script.json"])
        .args(["--sandbox", profile])
        .env_clear()
        .envs(home.environment())
        .current_dir(home.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("pith starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    writeln!(stdin, "{}", json!({"type": "prompt", "message": "go"})).expect("pith reads");
    let (mut times, mut started) = (Vec::with_capacity(N_CALLS), Instant::now());
    for line in BufReader::new(child.stdout.take().expect("stdout is piped")).lines() {
        let (now, line) = (Instant::now(), line.expect("frames are UTF-8"));
        if line.starts_with(r#"{"type":"tool_execution_start""#) {
            started = now;
        } else if line.starts_with(r#"{"type":"tool_execution_end""#) {
            assert!(!line.contains(r#""isError":true"#), "{line}");
            times.push(now - started);
        } else if line.starts_with(r#"{"type":"agent_settled""#) {
            break;
        }
    }
    drop(stdin);
    child.wait().expect("pith ends");
    assert_eq!(times.len(), N_CALLS, "every call was made");
    times
}
