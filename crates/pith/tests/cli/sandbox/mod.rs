//! The sandbox as a user meets it: from a flag, a variable or a file to what a command can do.

mod hosts;
mod namespaces;
mod profiles;

use std::path::PathBuf;

use pith_sandbox::Support;
use pith_testkit::TempHome;
use serde_json::Value;

use super::support::{model, run, run_with};

/// A file beside the session's directory.
fn outside(home: &TempHome) -> PathBuf {
    home.agent().join("outside.txt")
}

/// The events of a run with these arguments.
fn events(home: &TempHome, arguments: &[&str]) -> Vec<Value> {
    let output = run(home, [&model()[..], &["--mode", "json"], arguments, &["go"]].concat());
    output.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The result of the tool call among them.
fn result_of(events: &[Value]) -> &str {
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").expect("a call");
    end["result"]["content"][0]["text"].as_str().expect("a text")
}

/// What `get_state` says about the sandbox.
fn state(home: &TempHome, arguments: &[&str]) -> Value {
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session"], arguments].concat();
    let output = run_with(home, arguments, b"{\"type\":\"get_state\"}\n");
    let answer: Value = serde_json::from_str(output.stdout.lines().next().expect("an answer")).expect("a frame");
    answer["data"]["sandbox"].clone()
}

/// Whether this machine allows namespaces; the error says why not.
fn namespaces() -> Result<(), String> {
    Support::check_this_kernel()?;
    let check = run(&TempHome::new(), ["sandbox", "check"]).stdout;
    if check.contains("namespaces: yes") { Ok(()) } else { Err(check) }
}
