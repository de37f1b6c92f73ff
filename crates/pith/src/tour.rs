//! `pith tour`: pith with the scripted model, which is prompted and steered once. On a terminal it is a chat that plays
//! itself; otherwise pith is its own host, starts itself in rpc mode and shows what is said, or every line of both sides.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use pith_visible::visible;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::modes::tool_line::describe;

const PROMPT: &str = "Show me what you can do.";
pub const STEERING: &str = "Keep it short, please.";

/// The command line of the chat that plays itself.
pub fn arguments() -> anyhow::Result<Cli> {
    let arguments = ["--model", "scripted/tour", "--no-session", "--no-approve", PROMPT];
    Cli::parse_in(None, arguments.map(str::to_owned)).map_err(anyhow::Error::msg)
}

/// More lines of a result are counted.
const MAX_RESULT_LINES: usize = 6;

/// What is shown of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What a person wants to see.
    Prose,
    /// Every line of both sides.
    Lines,
}

/// Plays the tour without a terminal and returns the exit code.
pub fn play(form: Form) -> anyhow::Result<u8> {
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
        if form == Form::Lines {
            writeln!(screen, "> {line}")?;
        }
        writeln!(input, "{line}")?;
        input.flush()
    };
    say(&mut screen, &json!({"id": "1", "type": "prompt", "message": PROMPT}).to_string())?;
    let mut has_steered = false;
    for line in output.lines() {
        let line = line?;
        let frame: Value = serde_json::from_str(&line)?;
        match form {
            Form::Prose => screen.write_all(told(&frame).as_bytes())?,
            Form::Lines => writeln!(screen, "< {line}")?,
        }
        screen.flush()?;
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

/// Returns what a person wants to know of a frame: texts, calls and the beginnings of their results.
fn told(frame: &Value) -> String {
    let texts = |content: &Value| {
        let texts = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        visible(&texts.collect::<Vec<_>>().join("\n")).into_owned()
    };
    match (frame["type"].as_str(), frame["message"]["role"].as_str()) {
        (Some("message_end"), Some("user")) => format!("> {}\n\n", texts(&frame["message"]["content"])),
        (Some("message_end"), Some("assistant")) => match texts(&frame["message"]["content"]) {
            text if text.is_empty() => text,
            text => text + "\n\n",
        },
        (Some("tool_execution_start"), _) => {
            let arguments = frame["args"].as_object().cloned().unwrap_or_default();
            format!("· {}\n", visible(&describe(frame["toolName"].as_str().unwrap_or_default(), &arguments)))
        }
        (Some("tool_execution_end"), _) => {
            let text = texts(&frame["result"]["content"]);
            let all: Vec<&str> = text.lines().collect();
            let mut shown: String = all.iter().take(MAX_RESULT_LINES).map(|line| format!("  {line}\n")).collect();
            if all.len() > MAX_RESULT_LINES {
                shown.push_str(&format!("  … {} more lines\n", all.len() - MAX_RESULT_LINES));
            }
            shown + "\n"
        }
        _ => String::new(),
    }
}
