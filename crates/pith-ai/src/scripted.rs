//! A model that follows a script: for trying pith without a key, and for hosts
//! that test their integration.
//!
//! It answers through the same builder and channel as a real provider, so what
//! a consumer sees differs in nothing but the words.

mod prose;
mod script;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pith_protocol::{AssistantEvent, ErrorKind, LlmCall, Message, Model, StopReason, Usage, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::assemble::MessageBuilder;
use crate::client::deliver;
use crate::failure::{Fault, kind_of_status};
use crate::hooks;
use crate::http::server_delay;
use crate::models_file::{ModelConfig, ModelFields, ProviderConfig};
use crate::wire::{MAX_ERROR_CHARS, cut};

pub use script::{After, Script};

use script::{Block, FaultKind, Turn};

/// Provider and API name of scripted models.
pub const SCRIPTED: &str = "scripted";

/// The model that plays the built-in script.
pub const TOUR: &str = "tour";

/// Longest part of a prompt that a script quotes.
const MAX_QUOTE: usize = 200;

/// Returns the description of a scripted model. `tour` is built in; any other id plays the loaded script.
pub fn model(id: &str) -> Model {
    Model {
        id: id.to_owned(),
        name: format!("Scripted: {id}"),
        api: SCRIPTED.to_owned(),
        provider: SCRIPTED.to_owned(),
        base_url: String::new(),
        reasoning: true,
        input: vec!["text".to_owned(), "image".to_owned()],
        context_window: 200_000,
        max_tokens: 16_384,
        ..Model::default()
    }
}

/// Returns the provider of one scripted model, for the registry.
pub fn provider(id: &str) -> ProviderConfig {
    let model = model(id);
    let fields = ModelFields {
        name: Some(model.name),
        reasoning: Some(model.reasoning),
        input: Some(model.input),
        context_window: Some(model.context_window),
        max_tokens: Some(model.max_tokens),
        ..ModelFields::default()
    };
    ProviderConfig {
        id: SCRIPTED.to_owned(),
        name: Some("Scripted".to_owned()),
        // Nothing is ever connected to; the registry wants an address.
        base_url: Some("scripted:".to_owned()),
        api: Some(SCRIPTED.to_owned()),
        keyless: true,
        models: vec![ModelConfig { id: model.id, fields, ..ModelConfig::default() }],
        ..ProviderConfig::default()
    }
}

/// The scripts of a process.
#[derive(Debug, Default)]
pub struct Scripts {
    file: Option<Player>,
    tour: OnceLock<Player>,
}

/// A script and how far it has been played.
#[derive(Debug)]
struct Player {
    script: Script,
    /// Requests served. Held for a few lines.
    served: Mutex<HashMap<Part, usize>>,
}

/// What turns are counted by: the session, if the script says so, and the route.
type Part = (Option<Arc<str>>, Option<usize>);

/// The turn that answers a call.
struct NextTurn<'a> {
    turn: &'a Turn,
    /// Unique among the answers of this script.
    label: String,
    /// What the user said last.
    prompt: String,
}

impl Scripts {
    /// Loads the script of `--script FILE`.
    pub fn load(path: &Path) -> Result<Self, String> {
        Ok(Self::of(Script::load(path)?))
    }

    /// Plays a script.
    pub fn of(script: Script) -> Self {
        Scripts { file: Some(Player::new(script)), tour: OnceLock::new() }
    }

    /// Answers a call. Cancel-safe: undelivered events stay in `message`.
    pub(crate) async fn answer(
        &self,
        call: &LlmCall,
        message: &mut MessageBuilder,
        sender: &mpsc::Sender<AssistantEvent>,
    ) -> Result<(), Fault> {
        let player = match (&self.file, call.model.id.as_str()) {
            (_, TOUR) => self.tour.get_or_init(Player::tour),
            (Some(player), _) => player,
            (None, _) => {
                let text = "No script is loaded: start with --script FILE, or use the model scripted/tour";
                return Err(Fault::new(ErrorKind::InvalidRequest, text));
            }
        };
        let changed = match &call.hooks {
            Some(hooks) => Some(hooks::run_without_server(call, hooks).await),
            None => None,
        };
        player.next_turn(changed.as_ref().unwrap_or(call)).play(message, sender).await
    }
}

impl Player {
    fn new(script: Script) -> Self {
        Player { script, served: Mutex::default() }
    }

    fn tour() -> Self {
        Player::new(Script::parse(include_str!("scripted/tour.json")).expect("the built-in script is tested"))
    }

    /// Returns the turn for a call and counts it.
    fn next_turn(&self, call: &LlmCall) -> NextTurn<'_> {
        let shown =
            |message: Option<&Arc<Message>>| message.map_or(String::new(), |message| json::to_string(&**message));
        let mut newest = call.messages.iter().rev();
        let (last, previous) = (shown(newest.next()), shown(newest.next()));
        let script = &self.script;
        let route = script.routes.iter().position(|route| {
            let follows = route.previous.as_ref().is_none_or(|pattern| pattern.is_match(&previous));
            follows && route.pattern.is_match(&last)
        });
        let (turns, after) = match route {
            Some(at) => (&script.routes[at].turns, script.routes[at].after),
            None => (&script.turns, script.after),
        };
        let session = call.session_id.clone().filter(|_| script.per_session);
        let n = {
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            let count = served.entry((session, route)).or_default();
            *count += 1;
            *count - 1
        };
        let turn = turns.get(n).or(match after {
            After::Default => None,
            After::Repeat => turns.last(),
            After::Loop => n.checked_rem(turns.len()).and_then(|n| turns.get(n)),
        });
        let label = route.map_or(format!("t{n}"), |at| format!("r{at}t{n}"));
        NextTurn { turn: turn.unwrap_or(&script.fallback), label, prompt: last_prompt(call) }
    }
}

impl NextTurn<'_> {
    async fn play(&self, message: &mut MessageBuilder, sender: &mpsc::Sender<AssistantEvent>) -> Result<(), Fault> {
        let turn = self.turn;
        pause(turn.first_byte_ms).await;
        let (fault, mut left) = match &turn.fault {
            Some(fault) => (Some(&fault.kind), fault.after),
            None => (None, u64::MAX),
        };
        if let Some(FaultKind::Http { status, body, headers }) = fault {
            return Err(refusal(*status, body, headers));
        }
        let counts = turn.usage;
        let usage = Usage {
            input: counts.input,
            output: counts.output,
            cache_read: counts.cache_read,
            cache_write: counts.cache_write,
            ..Usage::default()
        };
        message.set_response_id(&format!("script_{}", self.label));
        message.set_usage(Usage { output: 0, ..usage.clone() });
        message.begin();
        for (at, block) in turn.blocks.iter().enumerate() {
            let (place, text) = self.open(at, block, message);
            for piece in pieces(&text, turn.chunk) {
                if left == 0 {
                    break;
                }
                left -= 1;
                pause(turn.delay_ms).await;
                message.push(place, piece.into());
                if deliver(message, sender).await.is_break() {
                    return Ok(());
                }
            }
            if left == 0 {
                break;
            }
            message.close(place);
        }
        if let Some(fault) = fault {
            return Err(play_fault(fault).await);
        }
        message.set_usage(usage);
        message.set_raw_stop_reason(&turn.stop);
        message.finish(match turn.stop.as_str() {
            "stop" => StopReason::Stop,
            "length" => StopReason::Length,
            "toolUse" => StopReason::ToolUse,
            other => return Err(Fault::new(ErrorKind::Protocol, format!("Unhandled stop reason: {other}"))),
        });
        Ok(())
    }

    fn open(&self, at: usize, block: &Block, message: &mut MessageBuilder) -> (usize, String) {
        let spoken = |text: &str| text.replace("${prompt}", &self.prompt);
        match block {
            Block::Text(text) => (message.open_text(), spoken(text)),
            Block::Thinking(text) => (message.open_thinking(), spoken(text)),
            Block::ToolCall { id, name, arguments } => {
                let id = id.clone().unwrap_or_else(|| format!("call_{}b{at}", self.label));
                (message.open_call(&id, name), arguments.clone())
            }
        }
    }
}

/// Splits a text into pieces of `chunk` characters; an empty text is one empty piece.
fn pieces(text: &str, chunk: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.char_indices().nth(chunk).map_or(text.len(), |(end, _)| end);
        rest = Some(&text[end..]).filter(|rest| !rest.is_empty());
        Some(&text[..end])
    })
}

async fn pause(millis: u64) {
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
}

fn refusal(status: u16, body: &str, headers: &[(String, String)]) -> Fault {
    let text = match body {
        "" => format!("{status} status code (no body)"),
        body => format!("{status} {}", cut(body, MAX_ERROR_CHARS)),
    };
    let mut fault = Fault::new(kind_of_status(SCRIPTED, status, body), text);
    fault.failure.status = Some(status);
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    fault.failure.retry_after_ms = server_delay(header).map(|delay| delay.as_millis() as u64);
    fault
}

/// Returns the fault that ends a stream, after its pause if it has one.
async fn play_fault(fault: &FaultKind) -> Fault {
    let network = |text: &str| Fault::new(ErrorKind::Network, text);
    match fault {
        FaultKind::Http { status, body, headers } => refusal(*status, body, headers),
        FaultKind::ErrorEvent { error } => {
            let text = serde_json::json!({"type": "error", "error": error}).to_string();
            Fault::reported(SCRIPTED, error["type"].as_str(), text)
        }
        FaultKind::Cut => network("Connection lost: the connection ended in the middle of a message"),
        FaultKind::Reset => network("Connection lost: Connection reset by peer"),
        FaultKind::Truncate => network("Scripted stream ended without a stop reason"),
        FaultKind::Malformed => {
            Fault::new(ErrorKind::Protocol, "Could not parse an event of the stream: expected value: {\"type\": oops")
        }
        FaultKind::Hang { seconds } => {
            sleep(Duration::from_secs_f64(*seconds)).await;
            network("Connection lost: the connection ended in the middle of a message")
        }
    }
}

/// Returns the text of the newest user message.
fn last_prompt(call: &LlmCall) -> String {
    let text = call.messages.iter().rev().find_map(|message| match &**message {
        Message::User(message) => Some(message.content.text()),
        _ => None,
    });
    cut(text.unwrap_or_default().trim(), MAX_QUOTE)
}

#[cfg(test)]
mod tests;
