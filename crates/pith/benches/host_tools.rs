//! What a host tool costs beyond the host's own time. The limit is 1 ms.
//!
//! `cargo bench -p pith --bench host_tools` prints it; nothing is asserted here.
//!
//! A call takes from `tool_execution_start` to `tool_execution_end` as the host reads them; the host's own part, from
//! reading `host_tool_call` to having written the result, is subtracted. What is left is pith and the two pipes.

mod measure;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pith_testkit::TempHome;
use serde_json::{Value, json};

const N_CALLS: usize = 500;

fn main() {
    let home = TempHome::new();
    let turns: Vec<Value> = (0..N_CALLS)
        .map(|n| json!({"blocks": [{"type": "toolCall", "name": "echo", "args": {"n": n}}]}))
        .chain([json!({"text": "done"})])
        .collect();
    home.write_file("script.json", json!({"turns": turns}).to_string());
    let mut child = Command::new(&*measure::PROGRAM)
        .args([
            "--mode",
            "rpc",
            "--dialect",
            "xcsh",
            "--no-session",
            "--stream-updates",
            "delta",
            "--script",
            "script.json",
        ])
        .env_clear()
        .envs(home.environment())
        .current_dir(home.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("pith starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut send = |frame: Value| stdin.write_all(format!("{frame}\n").as_bytes()).expect("pith reads");
    send(
        json!({"type": "set_host_tools", "tools": [{"name": "echo", "description": "d", "parameters": {"type": "object"}}]}),
    );
    send(json!({"type": "prompt", "message": "go"}));

    let mut costs = Vec::with_capacity(N_CALLS);
    let (mut started, mut own) = (Instant::now(), Duration::ZERO);
    for line in BufReader::new(child.stdout.take().expect("stdout is piped")).lines() {
        let (now, line) = (Instant::now(), line.expect("frames are UTF-8"));
        if line.starts_with(r#"{"type":"tool_execution_start""#) {
            started = now;
        } else if line.starts_with(r#"{"type":"host_tool_call""#) {
            let call: Value = serde_json::from_str(&line).expect("frames are JSON");
            send(
                json!({"type": "host_tool_result", "id": call["id"], "result": {"content": [{"type": "text", "text": "ok"}]}}),
            );
            own = now.elapsed();
        } else if line.starts_with(r#"{"type":"tool_execution_end""#) {
            costs.push((now - started).saturating_sub(own));
        } else if line.starts_with(r#"{"type":"agent_settled""#) {
            break;
        }
    }
    drop(stdin);
    let _ = child.wait();
    costs.sort_unstable();
    let at = |share: f64| costs[((costs.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    show(&format!(
        "host tool call, {} calls: median {:.3} ms, 99 of 100 within {:.3} ms",
        costs.len(),
        at(0.5),
        at(0.99)
    ));
}

#[allow(clippy::print_stdout, reason = "the figure is the output")]
fn show(line: &str) {
    println!("{line}");
}
