//! The JSON members of a script, checked one by one: an error names the member.

use regex::Regex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{After, Block, Counts, Fault, FaultKind, Route, Script, Turn};
use crate::scripted::prose::prose;

/// Characters per delta unless a turn says otherwise.
const DEFAULT_CHUNK: usize = 16;

/// Longest text or argument of one block, so that a slip of the pen does not eat the memory.
const MAX_BLOCK_CHARS: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    turns: Vec<Value>,
    #[serde(default)]
    routes: Vec<Value>,
    #[serde(default)]
    after: Option<After>,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    per: Option<Per>,
    /// For people.
    #[serde(default, rename = "about")]
    _about: Option<Value>,
    /// Read by other players of the same file.
    #[serde(default, rename = "apis")]
    _apis: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Per {
    Process,
    Session,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRoute {
    #[serde(rename = "match")]
    pattern: String,
    #[serde(default)]
    previous: Option<String>,
    turns: Vec<Value>,
    #[serde(default)]
    after: Option<After>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blocks: Option<Vec<Value>>,
    #[serde(default)]
    chunk: Option<usize>,
    #[serde(default)]
    delay_ms: f64,
    #[serde(default)]
    first_byte_ms: f64,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    stop: Option<String>,
    #[serde(default)]
    fault: Option<Value>,
    #[serde(default)]
    times: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBlock {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    args: Option<Map<String, Value>>,
    #[serde(default)]
    raw_args: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    chars: Option<usize>,
    #[serde(default)]
    repeat: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    kind: String,
    #[serde(default)]
    after: u64,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    seconds: Option<f64>,
}

/// Reads a whole script.
pub(super) fn script(value: Value) -> Result<Script, String> {
    let raw: RawScript = field(value, "")?;
    let routes = raw.routes.into_iter().enumerate().map(|(at, value)| route(value, &format!("routes[{at}]")));
    let fallback = match raw.default {
        Some(value) => turn(value, "default")?.0,
        None => plain_turn("(end of script)"),
    };
    let script = Script {
        routes: routes.collect::<Result<_, _>>()?,
        turns: turns(raw.turns, "turns")?,
        after: raw.after.unwrap_or(After::Default),
        fallback,
        per_session: raw.per == Some(Per::Session),
    };
    if script.turns.is_empty() && script.routes.is_empty() {
        return Err("turns: there are none".to_owned());
    }
    Ok(script)
}

fn field<T: DeserializeOwned>(value: Value, path: &str) -> Result<T, String> {
    let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
    serde_json::from_value(value).map_err(|error| format!("{at}{error}"))
}

fn route(value: Value, path: &str) -> Result<Route, String> {
    let raw: RawRoute = field(value, path)?;
    let pattern = |text: &str, name: &str| Regex::new(text).map_err(|error| format!("{path}.{name}: {error}"));
    Ok(Route {
        pattern: pattern(&raw.pattern, "match")?,
        previous: raw.previous.map(|text| pattern(&text, "previous")).transpose()?,
        turns: turns(raw.turns, &format!("{path}.turns"))?,
        after: raw.after.unwrap_or(After::Repeat),
    })
}

fn turns(values: Vec<Value>, path: &str) -> Result<Vec<Turn>, String> {
    let mut turns = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        let (turn, times) = turn(value, &format!("{path}[{at}]"))?;
        turns.extend(std::iter::repeat_n(turn, times));
    }
    Ok(turns)
}

/// Returns a turn and how often it is given.
fn turn(value: Value, path: &str) -> Result<(Turn, usize), String> {
    let raw: RawTurn = field(value, path)?;
    let blocks = match (raw.text, raw.blocks) {
        (Some(_), Some(_)) => return Err(format!("{path}: has both text and blocks")),
        (Some(text), None) => vec![Block::Text(text)],
        (None, blocks) => {
            let blocks = blocks.unwrap_or_default().into_iter().enumerate();
            blocks.map(|(at, value)| block(value, &format!("{path}.blocks[{at}]"))).collect::<Result<_, _>>()?
        }
    };
    let has_call = blocks.iter().any(|block| matches!(block, Block::ToolCall { .. }));
    let fault = raw.fault.map(|value| fault(value, &format!("{path}.fault"))).transpose()?;
    if raw.chunk == Some(0) {
        return Err(format!("{path}.chunk: must be at least 1"));
    }
    let turn = Turn {
        chunk: raw.chunk.unwrap_or(DEFAULT_CHUNK),
        delay_ms: millis(raw.delay_ms, path, "delay_ms")?,
        first_byte_ms: millis(raw.first_byte_ms, path, "first_byte_ms")?,
        usage: raw.usage.map_or(Ok(Counts::default()), |value| field(value, &format!("{path}.usage")))?,
        stop: raw.stop.unwrap_or_else(|| if has_call { "toolUse" } else { "stop" }.to_owned()),
        blocks,
        fault,
    };
    Ok((turn, raw.times.unwrap_or(1).min(10_000)))
}

fn plain_turn(text: &str) -> Turn {
    Turn {
        blocks: vec![Block::Text(text.to_owned())],
        chunk: DEFAULT_CHUNK,
        delay_ms: 0,
        first_byte_ms: 0,
        usage: Counts::default(),
        stop: "stop".to_owned(),
        fault: None,
    }
}

fn millis(value: f64, path: &str, name: &str) -> Result<u64, String> {
    if (0.0..=86_400_000.0).contains(&value) {
        Ok(value as u64)
    } else {
        Err(format!("{path}.{name}: must be from 0 to one day"))
    }
}

fn block(value: Value, path: &str) -> Result<Block, String> {
    let raw: RawBlock = field(value, path)?;
    let text = || {
        let text = match raw.chars {
            Some(chars) if chars > MAX_BLOCK_CHARS => return Err(format!("{path}.chars: at most {MAX_BLOCK_CHARS}")),
            Some(chars) => prose(chars),
            None => raw.text.clone().unwrap_or_default(),
        };
        match raw.repeat {
            Some(times) => {
                let text = if text.is_empty() { "x".to_owned() } else { text };
                if text.len().saturating_mul(times) > MAX_BLOCK_CHARS {
                    return Err(format!("{path}.repeat: makes more than {MAX_BLOCK_CHARS} characters"));
                }
                Ok(text.repeat(times))
            }
            None => Ok(text),
        }
    };
    match raw.r#type.as_str() {
        "text" => Ok(Block::Text(text()?)),
        "thinking" => Ok(Block::Thinking(text()?)),
        "toolCall" => {
            let arguments = raw.raw_args.unwrap_or_else(|| Value::Object(raw.args.unwrap_or_default()).to_string());
            let name = raw.name.ok_or_else(|| format!("{path}.name: missing"))?;
            Ok(Block::ToolCall { id: raw.id, name, arguments })
        }
        other => Err(format!("{path}.type: {other:?} is not one of text, thinking, toolCall")),
    }
}

fn fault(value: Value, path: &str) -> Result<Fault, String> {
    let raw: RawFault = field(value, path)?;
    let as_text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let kind = match raw.kind.as_str() {
        "http" | "error" => {
            let status = raw.status.filter(|status| (400..600).contains(status));
            let status = status.ok_or_else(|| format!("{path}.status: must be from 400 to 599"))?;
            let headers = raw.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), as_text(value)));
            let body = raw.body.map_or_else(|| r#"{"error":{"message":"scripted"}}"#.to_owned(), as_text);
            FaultKind::Http { status, body, headers: headers.collect() }
        }
        "error_event" => {
            let overloaded = || serde_json::json!({"type": "overloaded_error", "message": "Overloaded"});
            FaultKind::ErrorEvent { error: raw.error.unwrap_or_else(overloaded) }
        }
        "cut" => FaultKind::Cut,
        "reset" => FaultKind::Reset,
        "truncate" => FaultKind::Truncate,
        "malformed" | "badjson" => FaultKind::Malformed,
        "hang" => FaultKind::Hang { seconds: raw.seconds.unwrap_or(600.0).clamp(0.0, 86_400.0) },
        other => {
            let known = "http, error, error_event, cut, reset, truncate, malformed, badjson, hang";
            return Err(format!("{path}.kind: {other:?} is not one of {known}"));
        }
    };
    Ok(Fault { kind, after: raw.after })
}
