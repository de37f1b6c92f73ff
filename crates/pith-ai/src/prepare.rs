//! A conversation made ready for a provider: roles it does not know turned into
//! text, foreign thinking and ids adapted, every call answered.
//!
//! The result is the same for all APIs and borrows from the history, because a
//! request repeats the whole conversation. Stored messages are never changed:
//! going back to a model finds its thinking where it was.

mod convert;
mod ids;

use std::borrow::Cow;

use pith_protocol::{AssistantMessage, Block, ImageBlock, LlmCall, Message, StopReason, ToolResultMessage};
use serde_json::{Map, Value};

pub use convert::bash as bash_text;
pub use ids::{IdRule, sanitise, short_hash, shorten};

use convert::user_parts;
use ids::Ids;

/// The result of a call that has none.
const NO_RESULT: &str = "No result provided";

/// Follows the text of an answer the user stopped.
const INTERRUPTED: &str = "[The user interrupted this answer here.]";

const TOOL_IMAGE_OMITTED: &str = "(tool image omitted: model does not support images)";
const USER_IMAGE_OMITTED: &str = "(image omitted: model does not support images)";
const IMAGES_BLOCKED: &str = "Image reading is disabled.";

/// One message of a prepared conversation.
#[derive(Debug, PartialEq)]
pub enum PreparedMessage<'a> {
    User(Vec<Part<'a>>),
    Assistant(Answer<'a>),
    Result(CallResult<'a>),
}

/// Text or picture of a user message or tool result.
#[derive(Debug, PartialEq)]
pub enum Part<'a> {
    Text(Cow<'a, str>),
    Image(&'a ImageBlock),
}

/// An earlier answer of a model.
#[derive(Debug, PartialEq)]
pub struct Answer<'a> {
    pub pieces: Vec<PreparedBlock<'a>>,
    /// The provider is the same, whatever the model.
    pub same_provider: bool,
    /// Provider, API and model are the same.
    pub same_model: bool,
}

/// A block of an earlier answer.
#[derive(Debug, PartialEq)]
pub enum PreparedBlock<'a> {
    Text { text: Cow<'a, str>, signature: Option<&'a str>, was_thinking: bool },
    Thinking { text: &'a str, signature: Option<&'a str>, redacted: bool },
    Call { id: Cow<'a, str>, name: &'a str, arguments: &'a Map<String, Value>, signature: Option<&'a str> },
}

/// The result of a tool call.
#[derive(Debug, PartialEq)]
pub struct CallResult<'a> {
    pub id: Cow<'a, str>,
    pub name: &'a str,
    pub parts: Vec<Part<'a>>,
    pub is_error: bool,
    /// The tools that it says were found.
    pub found: Vec<&'a str>,
}

/// What happens to the thinking of another model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignThinking {
    /// It becomes text.
    #[default]
    AsText,
    Drop,
}

/// How a provider wants its conversation.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOptions {
    pub ids: IdRule,
    pub foreign_thinking: ForeignThinking,
    /// User messages that follow each other become one.
    pub merge_users: bool,
}

/// Prepares the history of a call.
pub fn prepare<'a>(call: &'a LlmCall, options: PrepareOptions) -> Vec<PreparedMessage<'a>> {
    let mut preparation = Preparation {
        call,
        options,
        ids: Ids::new(options.ids, &call.model),
        turns: Vec::with_capacity(call.messages.len() + 4),
        open_calls: Vec::new(),
    };
    for message in &call.messages {
        match &**message {
            Message::Assistant(message) => preparation.answer(message),
            Message::ToolResult(message) => preparation.result(message),
            other => {
                if let Some(parts) = user_parts(other) {
                    preparation.user(parts);
                }
            }
        }
    }
    preparation.answer_open_calls();
    preparation.turns
}

/// Returns a message in one of the three roles models know; none when it is not sent.
pub fn as_model_sees(message: &Message) -> Option<Value> {
    if let Message::Assistant(_) | Message::ToolResult(_) = message {
        return serde_json::to_value(message).ok();
    }
    let part = |part: Part<'_>| match part {
        Part::Text(text) => Block::text(text),
        Part::Image(image) => Block::Image(image.clone()),
    };
    let content: Vec<Block> = user_parts(message)?.into_iter().map(part).collect();
    Some(serde_json::json!({ "role": "user", "content": content }))
}

struct Preparation<'a> {
    call: &'a LlmCall,
    options: PrepareOptions,
    ids: Ids<'a>,
    turns: Vec<PreparedMessage<'a>>,
    /// Calls of the last answer without a result: id in the history, id sent, name.
    open_calls: Vec<(&'a str, Cow<'a, str>, &'a str)>,
}

impl<'a> Preparation<'a> {
    fn user(&mut self, mut parts: Vec<Part<'a>>) {
        self.answer_open_calls();
        self.replace_images(&mut parts, USER_IMAGE_OMITTED);
        match self.turns.last_mut() {
            Some(PreparedMessage::User(earlier)) if self.options.merge_users => earlier.append(&mut parts),
            _ => self.turns.push(PreparedMessage::User(parts)),
        }
    }

    fn answer(&mut self, message: &'a AssistantMessage) {
        let model = &self.call.model;
        let same_provider = message.provider == model.provider;
        let same_model = same_provider && message.api == model.api && message.model == model.id;
        let pieces = match message.stop_reason {
            StopReason::Error => return,
            StopReason::Aborted => {
                let Some(seen) = interrupted(message) else { return };
                self.answer_open_calls();
                vec![seen]
            }
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => {
                self.answer_open_calls();
                gather(message.content.len(), message.content.iter().filter_map(|block| self.piece(block, same_model)))
            }
        };
        self.turns.push(PreparedMessage::Assistant(Answer { pieces, same_provider, same_model }));
    }

    fn piece(&mut self, block: &'a Block, same_model: bool) -> Option<PreparedBlock<'a>> {
        match block {
            Block::Text(block) => Some(PreparedBlock::Text {
                text: Cow::Borrowed(&block.text),
                signature: block.text_signature.as_deref().filter(|_| same_model),
                was_thinking: false,
            }),
            Block::Thinking(block) => {
                let (text, redacted) = (block.thinking.as_str(), block.redacted == Some(true));
                let signature = block.thinking_signature.as_deref().filter(|signature| !signature.is_empty());
                if same_model {
                    let is_kept = redacted || signature.is_some() || !text.trim().is_empty();
                    return is_kept.then_some(PreparedBlock::Thinking { text, signature, redacted });
                }
                let is_kept =
                    !redacted && !text.trim().is_empty() && self.options.foreign_thinking == ForeignThinking::AsText;
                is_kept.then_some(PreparedBlock::Text {
                    text: Cow::Borrowed(text),
                    signature: None,
                    was_thinking: true,
                })
            }
            Block::ToolCall(call) => {
                let id = self.ids.assign(&call.id, same_model);
                self.open_calls.push((&call.id, id.clone(), &call.name));
                Some(PreparedBlock::Call {
                    id,
                    name: &call.name,
                    arguments: &call.arguments,
                    signature: call.thought_signature.as_deref().filter(|_| same_model),
                })
            }
            Block::Image(_) | Block::Other(_) => None,
        }
    }

    fn result(&mut self, message: &'a ToolResultMessage) {
        // A result without a call, or a second one, would make the provider refuse the whole request.
        let Some(at) = self.open_calls.iter().position(|(id, ..)| *id == message.tool_call_id) else { return };
        let (_, id, call_name) = self.open_calls.remove(at);
        let name = if message.tool_name.is_empty() { call_name } else { &message.tool_name };
        let mut parts = convert::parts(&message.content);
        self.replace_images(&mut parts, TOOL_IMAGE_OMITTED);
        let found = if self.call.search_tool.as_deref() == Some(name) { found(message) } else { Vec::new() };
        self.turns.push(PreparedMessage::Result(CallResult { id, name, parts, is_error: message.is_error, found }));
    }

    fn answer_open_calls(&mut self) {
        for (_, id, name) in self.open_calls.drain(..) {
            let parts = vec![Part::Text(Cow::Borrowed(NO_RESULT))];
            self.turns.push(PreparedMessage::Result(CallResult { id, name, parts, is_error: true, found: Vec::new() }));
        }
    }

    /// Pictures that may not be sent, or that the model cannot see, become a text; a row of them one text.
    fn replace_images(&self, parts: &mut Vec<Part<'a>>, omitted: &'static str) {
        let placeholder = if self.call.block_images {
            IMAGES_BLOCKED
        } else if !self.call.model.sees_images() {
            omitted
        } else {
            return;
        };
        let mut after_image = false;
        parts.retain_mut(|part| {
            let is_image = matches!(part, Part::Image(_));
            let is_repeat = is_image && after_image;
            if is_image {
                *part = Part::Text(Cow::Borrowed(placeholder));
            }
            after_image = is_image;
            !is_repeat
        });
    }
}

/// Collects at most `n_most` items into a vector of that size. Most messages have one block, and the room for four
/// that a growing vector starts with is, in thousands of messages, more than the conversation itself.
pub fn gather<T>(n_most: usize, items: impl Iterator<Item = T>) -> Vec<T> {
    let mut gathered = Vec::with_capacity(n_most);
    gathered.extend(items);
    gathered
}

/// Whether nothing can be read. Unlike trimming, looks no further than the first letter.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Returns what the user saw of an answer they stopped.
fn interrupted(message: &AssistantMessage) -> Option<PreparedBlock<'_>> {
    let seen: String = message.content.iter().filter_map(Block::as_text).collect();
    let text = Cow::Owned(format!("{}\n\n{INTERRUPTED}", seen.trim_end()));
    (!seen.trim().is_empty()).then_some(PreparedBlock::Text { text, signature: None, was_thinking: false })
}

/// The tools that a search has found.
fn found(message: &ToolResultMessage) -> Vec<&str> {
    let names = message.details.as_ref().and_then(|details| details.get("tools")).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
