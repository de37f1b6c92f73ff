//! What the scripted model answers: turns in order, routes by prompt, faults.
//!
//! A script is written in Rust with the builder methods; a transcript may also give a single answer as JSON, in the
//! format of pith's scripted model. This crate parses that itself so that it does not depend on pith.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::wire::{Api, Rendered};

/// All answers of a model.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) turns: Vec<Turn>,
    pub(super) routes: Vec<Route>,
    /// What follows the last turn.
    pub(super) after: After,
    pub(super) default: Option<Turn>,
}

/// Answers for requests whose newest message matches a pattern.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) matching: Regex,
    pub(super) turns: Vec<Turn>,
    pub(super) after: After,
}

/// What follows when all answers of a list have been given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// The script's default answer.
    #[default]
    Default,
    /// The last answer again.
    Repeat,
    /// The list from its beginning.
    Loop,
}

/// One answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub(super) text: Option<String>,
    pub(super) blocks: Vec<Block>,
    /// The number of characters in one delta.
    pub(super) chunk: usize,
    /// The pause before each delta.
    pub(super) delay_ms: u64,
    /// The pause before the head of the response.
    pub(super) first_byte_ms: u64,
    pub(super) usage: TurnUsage,
    /// `stop`, `toolUse`, `length`, or the vendor's own name.
    pub(super) stop: Option<String>,
    pub(super) fault: Option<Fault>,
    /// The number of deltas sent before the answer waits for `ModelServer::release`.
    pub(super) hold_after: Option<usize>,
    pub(super) times: usize,
    #[serde(skip)]
    pub(super) label: String,
    /// Encoded answers by API: a second request costs only the write.
    #[serde(skip)]
    rendered: Arc<Mutex<HashMap<Api, Arc<Rendered>>>>,
}

/// One block of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Block {
    /// Text for the user.
    Text {
        #[serde(default)]
        text: String,
        /// That many characters of text without repetition, instead of `text`.
        chars: Option<usize>,
        /// How often the text is repeated.
        repeat: Option<usize>,
    },
    /// Reasoning.
    Thinking { text: String },
    /// A call; `raw_args` is sent as it is, valid JSON or not.
    ToolCall {
        id: Option<String>,
        name: String,
        #[serde(default)]
        args: Map<String, Value>,
        raw_args: Option<String>,
    },
}

/// The token usage the answer reports.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnUsage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// What goes wrong with an answer. `after` counts deltas that are still sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Answers with an HTTP status instead.
    Http {
        status: u16,
        #[serde(default = "scripted_error")]
        body: Value,
        #[serde(default)]
        headers: Map<String, Value>,
    },
    /// Resets the connection.
    Reset {
        #[serde(default)]
        after: usize,
    },
    /// Closes the connection inside the body.
    Cut {
        #[serde(default)]
        after: usize,
    },
    /// Ends the body cleanly but early.
    Truncate {
        #[serde(default)]
        after: usize,
    },
    /// Stays silent on an open connection.
    Hang {
        #[serde(default)]
        after: usize,
        #[serde(default = "ten_minutes")]
        seconds: f64,
    },
    /// Sends an event whose data is not JSON, then the rest.
    Badjson {
        #[serde(default)]
        after: usize,
    },
    /// Sends the vendor's error event, then nothing.
    ErrorEvent {
        #[serde(default)]
        after: usize,
        #[serde(default = "overloaded")]
        error: Value,
    },
}

impl Script {
    /// Creates a script without answers; every request gets the default text.
    pub fn new() -> Self {
        Script::default()
    }

    /// Creates a script of answers in order.
    pub fn of(turns: impl IntoIterator<Item = Turn>) -> Self {
        Script { turns: turns.into_iter().collect(), ..Script::default() }
    }

    /// Adds an answer.
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Adds answers for requests whose newest message (as JSON text) matches `pattern`; the last one repeats.
    pub fn route(mut self, pattern: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        let matching = Regex::new(pattern).expect("the test's pattern is a regular expression");
        self.routes.push(Route { matching, turns: turns.into_iter().collect(), after: After::Repeat });
        self
    }

    /// Sets the answer after all others, and to requests for which there is none.
    pub fn fallback(mut self, turn: Turn) -> Self {
        self.default = Some(turn);
        self
    }

    /// Sets what follows the last answer.
    pub fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }
}

impl Turn {
    /// A plain text answer.
    pub fn text(text: impl Into<String>) -> Self {
        Turn { text: Some(text.into()), ..Turn::default() }
    }

    /// An answer that is one tool call.
    pub fn call(tool: &str, arguments: Value) -> Self {
        Turn::blocks([Block::call(tool, arguments)])
    }

    /// An answer of several blocks.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Turn { blocks: blocks.into_iter().collect(), ..Turn::default() }
    }

    /// An answer without content that goes wrong.
    pub fn failing(fault: Fault) -> Self {
        Turn::default().fault(fault)
    }

    /// No answer: the connection stays open and silent.
    pub fn silent() -> Self {
        Turn::default().first_byte(Duration::from_secs(600))
    }

    /// A refused request.
    pub fn status(status: u16) -> Self {
        Turn::failing(Fault::Http { status, body: scripted_error(), headers: Map::new() })
    }

    /// A temporary failure.
    pub fn overloaded() -> Self {
        let body = json!({"type": "error", "error": overloaded()});
        Turn::failing(Fault::Http { status: 529, body, headers: Map::new() })
    }

    /// Sets the number of characters in one delta.
    pub fn chunk(mut self, characters: usize) -> Self {
        self.chunk = characters;
        self
    }

    /// Sets the pause before each delta.
    pub fn delay(mut self, pause: Duration) -> Self {
        self.delay_ms = pause.as_millis() as u64;
        self
    }

    /// Sets the pause before the head of the response.
    pub fn first_byte(mut self, pause: Duration) -> Self {
        self.first_byte_ms = pause.as_millis() as u64;
        self
    }

    /// Sets the token usage the answer reports.
    pub fn usage(mut self, usage: TurnUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the stop reason the answer reports.
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }

    /// Sets what goes wrong.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Waits after that many deltas until the test calls `ModelServer::release`.
    pub fn hold_after(mut self, deltas: usize) -> Self {
        self.hold_after = Some(deltas);
        self
    }

    /// Gives the answer that many times in a row.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// The blocks with texts and ids filled in.
    pub(super) fn content(&self) -> Vec<ResolvedBlock> {
        if let Some(text) = &self.text {
            return vec![ResolvedBlock::Text(text.clone())];
        }
        self.blocks.iter().enumerate().map(|(index, block)| block.resolve(&self.label, index)).collect()
    }

    pub(super) fn stop_reason(&self) -> &str {
        let calls = self.blocks.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        self.stop.as_deref().unwrap_or(if calls { "toolUse" } else { "stop" })
    }

    /// The answer with its label in its list, from which ids are derived.
    pub(super) fn labelled(&self, label: String) -> Self {
        Turn { label, rendered: Arc::default(), ..self.clone() }
    }

    pub(super) fn render(&self, api: Api) -> Arc<Rendered> {
        let mut cache = self.rendered.lock().expect("rendering does not panic");
        Arc::clone(cache.entry(api).or_insert_with(|| Arc::new(Rendered::new(self, api))))
    }
}

/// A block as it is sent.
pub(super) enum ResolvedBlock {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, args: Map<String, Value>, json: String },
}

impl Block {
    /// A text for the user.
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into(), chars: None, repeat: None }
    }

    /// A text of exactly that length without repetition.
    pub fn prose(chars: usize) -> Self {
        Block::Text { text: String::new(), chars: Some(chars), repeat: None }
    }

    /// Reasoning.
    pub fn thinking(text: impl Into<String>) -> Self {
        Block::Thinking { text: text.into() }
    }

    /// A tool call.
    pub fn call(tool: &str, arguments: Value) -> Self {
        let Value::Object(args) = arguments else { panic!("arguments of {tool} must be an object, got {arguments}") };
        Block::ToolCall { id: None, name: tool.to_owned(), args, raw_args: None }
    }

    /// A tool call whose arguments are sent as they are.
    pub fn raw_call(tool: &str, arguments: &str) -> Self {
        let raw_args = Some(arguments.to_owned());
        Block::ToolCall { id: None, name: tool.to_owned(), args: Map::new(), raw_args }
    }

    fn resolve(&self, label: &str, index: usize) -> ResolvedBlock {
        match self {
            Block::Text { chars: Some(chars), .. } => ResolvedBlock::Text(prose(*chars)),
            Block::Text { text, repeat, .. } => ResolvedBlock::Text(text.repeat(repeat.unwrap_or(1))),
            Block::Thinking { text } => ResolvedBlock::Thinking(text.clone()),
            Block::ToolCall { id, name, args, raw_args } => ResolvedBlock::Call {
                id: id.clone().unwrap_or_else(|| format!("{label}b{index}")),
                name: name.clone(),
                args: args.clone(),
                json: raw_args.clone().unwrap_or_else(|| Value::Object(args.clone()).to_string()),
            },
        }
    }
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            text: None,
            blocks: Vec::new(),
            chunk: 16,
            delay_ms: 0,
            first_byte_ms: 0,
            usage: TurnUsage::default(),
            stop: None,
            fault: None,
            hold_after: None,
            times: 1,
            label: String::new(),
            rendered: Arc::default(),
        }
    }
}

impl Default for TurnUsage {
    fn default() -> Self {
        TurnUsage { input: 100, output: 20, cache_read: 0, cache_write: 0 }
    }
}

fn prose(chars: usize) -> String {
    let mut text = String::with_capacity(chars + 8);
    for number in 0.. {
        if text.len() >= chars {
            break;
        }
        text.push_str(&format!("word{number} "));
    }
    text.truncate(chars);
    text
}

fn scripted_error() -> Value {
    json!({"error": {"message": "scripted"}})
}

fn overloaded() -> Value {
    json!({"type": "overloaded_error", "message": "Overloaded"})
}

fn ten_minutes() -> f64 {
    600.0
}
