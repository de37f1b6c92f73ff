//! `pith tour`: pith with the scripted model, which is prompted and steered once. On a terminal it is a chat that plays
//! itself; otherwise pith is its own host, starts itself in rpc mode and shows every line of both sides.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cli::Cli;

const PROMPT: &str = "Show me what you can do.";
pub const STEERING: &str = "Keep it short, please.";

/// The command line of the chat that plays itself.
pub fn arguments() -> anyhow::Result<Cli> {
    let arguments = ["--model", "scripted/tour", "--no-session", "--no-approve", PROMPT];
    Cli::parse_in(None, arguments.map(str::to_owned)).map_err(anyhow::Error::msg)
}

/// Plays the tour line by line and returns the exit code.
pub fn play() -> anyhow::Result<u8> {
    let mut pith = Command::new(std::env::current_exe()?)
        .args([
            "--mode",
            "rpc",
            "--dialect",
            "pi",
            "--model",
            "scripted/tour",
            "--no-session",
            "--stream-updates",
            "delta",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = pith.stdin.take().expect("stdin is piped");
    let output = BufReader::new(pith.stdout.take().expect("stdout is piped"));
    let mut screen = io::stdout().lock();
    let mut say = |screen: &mut io::StdoutLock<'_>, line: &str| -> io::Result<()> {
        writeln!(screen, "> {line}")?;
        writeln!(input, "{line}")?;
        input.flush()
    };
    say(&mut screen, &json!({"id": "1", "type": "prompt", "message": PROMPT}).to_string())?;
    let mut has_steered = false;
    for line in output.lines() {
        let line = line?;
        writeln!(screen, "< {line}")?;
        screen.flush()?;
        let frame: Value = serde_json::from_str(&line)?;
        match frame["type"].as_str() {
            Some("tool_execution_start") if !has_steered => {
                has_steered = true;
                say(&mut screen, &json!({"id": "2", "type": "steer", "message": STEERING}).to_string())?;
            }
            Some("agent_settled") => break,
            _ => {}
        }
    }
    // The end of input ends pith.
    drop(input);
    Ok(if pith.wait()?.success() { 0 } else { 1 })
}
