//! `pith tour`: pith as its own host. Starts itself in rpc mode with the scripted model, prompts, steers once, and
//! shows every line of both sides.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

const PROMPT: &str = r#"{"id":"1","type":"prompt","message":"Show me what you can do."}"#;
const STEER: &str = r#"{"id":"2","type":"steer","message":"Keep it short, please."}"#;

/// Plays the tour and returns the exit code.
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
    say(&mut screen, PROMPT)?;
    let mut has_steered = false;
    for line in output.lines() {
        let line = line?;
        writeln!(screen, "< {line}")?;
        screen.flush()?;
        let frame: Value = serde_json::from_str(&line)?;
        match frame["type"].as_str() {
            Some("tool_execution_start") if !has_steered => {
                has_steered = true;
                say(&mut screen, STEER)?;
            }
            Some("agent_settled") => break,
            _ => {}
        }
    }
    // The end of input ends pith.
    drop(input);
    Ok(if pith.wait()?.success() { 0 } else { 1 })
}
