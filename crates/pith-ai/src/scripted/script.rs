//! The script format: which answers a scripted model gives, and how.
//!
//! A script is one JSON object, or JSON lines with a `turn` or `route` each.
//! Lines that are neither are skipped, so a test scenario that also says what a
//! host sends can be played as it is.

mod fields;

use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A whole script.
#[derive(Debug)]
pub struct Script {
    pub routes: Vec<Route>,
    pub turns: Vec<Turn>,
    pub after: After,
    pub fallback: Turn,
    pub per_session: bool,
}

/// Turns for requests whose newest message matches.
#[derive(Debug)]
pub struct Route {
    pub pattern: Regex,
    /// Must match the message before the newest, where given.
    pub previous: Option<Regex>,
    pub turns: Vec<Turn>,
    pub after: After,
}

/// What follows the last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    /// The script's `default` turn.
    Default,
    /// The last turn again.
    Repeat,
    /// All turns again.
    Loop,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Turn {
    pub blocks: Vec<Block>,
    pub chunk: usize,
    pub delay_ms: u64,
    pub first_byte_ms: u64,
    pub usage: Counts,
    pub stop: String,
    pub fault: Option<Fault>,
}

/// A block of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Text(String),
    Thinking(String),
    ToolCall { id: Option<String>, name: String, arguments: String },
}

/// Token counts, named as in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Counts {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { input: 100, output: 20, cache_read: 0, cache_write: 0 }
    }
}

/// What goes wrong with an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// Deltas before it happens.
    pub after: u64,
}

/// The ways an answer can go wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An error status instead of an answer.
    Http { status: u16, body: String, headers: Vec<(String, String)> },
    /// An error inside the stream.
    ErrorEvent { error: Value },
    /// The connection ends without warning.
    Cut,
    /// The connection is reset.
    Reset,
    /// The stream ends in order, but too early.
    Truncate,
    /// An event that is not JSON.
    Malformed,
    /// Nothing more comes for this long.
    Hang { seconds: f64 },
}

impl Script {
    /// Reads a script file. The error names the file and the field.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("script {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("script {}: {error}", path.display()))
    }

    /// Reads a script from its text: one JSON object, or JSON lines.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{FEFF}');
        let whole: Value = match serde_json::from_str(text) {
            Ok(whole) => whole,
            Err(error) => lines(text).unwrap_or_else(|| Err(error.to_string()))?,
        };
        // A single line of a scenario is JSON, too.
        let whole = if is_line(&whole) { from_lines([(1, whole)])? } else { whole };
        fields::script(whole)
    }
}

/// Returns the lines of a text as one script object; nothing if it is not made of JSON lines.
fn lines(text: &str) -> Option<Result<Value, String>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut values = Vec::new();
    for (at, line) in lines {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => values.push((at + 1, value)),
            // One object over many lines: its own error says more.
            Err(_) if values.is_empty() => return None,
            Err(error) => return Some(Err(format!("line {}: {error}", at + 1))),
        }
    }
    Some(from_lines(values))
}

fn is_line(value: &Value) -> bool {
    ["turn", "route", "mock", "scenario"].iter().any(|key| value.get(key).is_some())
}

fn from_lines(values: impl IntoIterator<Item = (usize, Value)>) -> Result<Value, String> {
    let mut script = Map::new();
    let (mut turns, mut routes) = (Vec::new(), Vec::new());
    for (line, value) in values {
        let Value::Object(mut object) = value else { return Err(format!("line {line}: not an object")) };
        if let Some(turn) = object.shift_remove("turn") {
            turns.push(turn);
        } else if let Some(route) = object.shift_remove("route") {
            routes.push(route);
        } else if let Some(Value::Object(settings)) = object.shift_remove("mock") {
            script.extend(settings);
        } else if ["text", "blocks", "fault"].iter().any(|key| object.contains_key(*key))
            && !object.contains_key("file")
        {
            turns.push(Value::Object(object));
        }
    }
    script.insert("turns".to_owned(), Value::Array(turns));
    script.insert("routes".to_owned(), Value::Array(routes));
    Ok(Value::Object(script))
}
