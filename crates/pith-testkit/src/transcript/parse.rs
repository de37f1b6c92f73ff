//! Parses the text form of a transcript.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Block, Turn};
use crate::timeout;

/// A parsed file.
#[derive(Debug)]
pub struct Transcript {
    pub(super) lines: Vec<Line>,
    /// Further arguments for the binary.
    pub(super) arguments: Vec<String>,
    /// The user's settings.
    pub(super) settings: Value,
    /// Further environment variables.
    pub(super) environment: Vec<(String, String)>,
    /// Files to create before the start; `agent/` stands for the agent directory.
    pub(super) files: Vec<(String, String)>,
    /// How long a frame is waited for.
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub(super) struct Line {
    pub step: Step,
    /// Counted from 1.
    pub number: usize,
    pub text: String,
}

#[derive(Debug)]
pub(super) enum Step {
    /// `#`, or an empty line.
    Comment,
    /// `~`
    Answer(Box<Turn>),
    /// `>`: the bytes of the line, which need not be JSON.
    Send(String),
    /// `<`
    Expect(Value),
    /// `...`
    Skip,
}

impl Transcript {
    /// Parses a file's text; the error names an invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut transcript = Transcript {
            lines: Vec::new(),
            arguments: Vec::new(),
            settings: json!({}),
            environment: Vec::new(),
            files: Vec::new(),
            timeout: timeout(),
        };
        for (index, text) in text.lines().enumerate() {
            let number = index + 1;
            let step = transcript.line(text).map_err(|problem| format!("line {number}: {problem}"))?;
            transcript.lines.push(Line { step, number, text: text.to_owned() });
        }
        Ok(transcript)
    }

    /// The model's answers in order.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Turn> {
        self.lines.iter().filter_map(|line| match &line.step {
            Step::Answer(turn) => Some(&**turn),
            _ => None,
        })
    }

    fn line(&mut self, line: &str) -> Result<Step, String> {
        if let Some(directive) = line.strip_prefix("#!") {
            self.directive(directive.trim())?;
            return Ok(Step::Comment);
        }
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(Step::Comment);
        }
        if line.trim_end() == "..." {
            return Ok(Step::Skip);
        }
        match line.split_once(' ') {
            Some((">", sent)) => Ok(Step::Send(sent.to_owned())),
            Some(("<", pattern)) => Ok(Step::Expect(json(pattern)?)),
            Some(("~", answer)) => Ok(Step::Answer(Box::new(turn(answer.trim())?))),
            _ => Err(format!("starts with none of > < ... ~ #: {line}")),
        }
    }

    fn directive(&mut self, directive: &str) -> Result<(), String> {
        match directive.split_once(' ') {
            Some(("args", arguments)) => {
                self.arguments.extend(arguments.split_whitespace().map(str::to_owned));
                Ok(())
            }
            Some(("settings", settings)) => {
                self.settings = json(settings)?;
                Ok(())
            }
            Some(("env", assignment)) => {
                let (name, value) = assignment.split_once('=').ok_or("env needs NAME=VALUE")?;
                self.environment.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
            Some(("file", file)) => {
                let (path, content) = file.split_once(' ').ok_or("file needs a path and a JSON string")?;
                self.files.push((path.to_owned(), string(content)?));
                Ok(())
            }
            _ => Err(format!("no such directive: {directive}")),
        }
    }
}

fn turn(answer: &str) -> Result<Turn, String> {
    if answer.starts_with('{') {
        return serde_json::from_str(answer).map_err(|error| format!("not a turn: {error}"));
    }
    let (kind, rest) = answer.split_once(' ').unwrap_or((answer, ""));
    match kind {
        "text" => Ok(Turn::text(string(rest)?)),
        "thinking" => Ok(Turn::blocks([Block::thinking(string(rest)?)])),
        "call" => {
            let (tool, arguments) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "{}"));
            let arguments = json(arguments)?;
            if !arguments.is_object() {
                return Err(format!("arguments must be an object, got {arguments}"));
            }
            Ok(Turn::call(tool, arguments))
        }
        _ => Err(format!("an answer is text, thinking, call or a JSON object, got {kind:?}")),
    }
}

fn string(text: &str) -> Result<String, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON string: {error}"))
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}
