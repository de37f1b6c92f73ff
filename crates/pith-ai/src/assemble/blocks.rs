//! The blocks of an answer: opened, filled piece by piece, ended.

use std::borrow::Cow;

use pith_protocol::{AssistantEvent, BadArguments, Block, PartialArguments, TextBlock, ThinkingBlock, ToolCall};
use serde_json::{Map, Value, json};

use super::MessageBuilder;

/// What ended a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is missing, so arguments that are no JSON are no arguments.
    ByModel,
    /// The answer was aborted or has failed and none of its calls is run: arguments stay as the last snapshot
    /// showed them.
    BrokenOff,
}

/// How far a block has come.
#[derive(Debug)]
pub(super) struct Progress {
    is_open: bool,
    /// Of tool calls.
    arguments: PartialArguments,
}

impl MessageBuilder {
    /// Opens a text block and returns its index.
    pub fn open_text(&mut self) -> usize {
        let index = self.open(Block::Text(TextBlock::default()));
        self.events.push_back(AssistantEvent::TextStart { index });
        index
    }

    /// Opens a thinking block and returns its index.
    pub fn open_thinking(&mut self) -> usize {
        let index = self.open(Block::Thinking(ThinkingBlock::default()));
        self.events.push_back(AssistantEvent::ThinkingStart { index });
        index
    }

    /// Opens a tool call and returns its index. Results are matched by id, so one that is missing or taken is
    /// replaced.
    pub fn open_call(&mut self, id: &str, name: &str) -> usize {
        let is_usable = !id.is_empty() && self.message.tool_calls().all(|call| call.id != id);
        let id = if is_usable { id.to_owned() } else { format!("call_{}", uuid::Uuid::new_v4().simple()) };
        let call = ToolCall { id: id.clone(), name: name.to_owned(), ..ToolCall::default() };
        let index = self.open(Block::ToolCall(call));
        self.events.push_back(AssistantEvent::ToolCallStart { index, id, name: name.to_owned() });
        index
    }

    fn open(&mut self, block: Block) -> usize {
        self.begin();
        self.message.content.push(block);
        self.progress.push(Progress { is_open: true, arguments: PartialArguments::new() });
        self.message.content.len() - 1
    }

    /// Appends to an open block. Text and thinking ignore empty pieces; a call reports them.
    pub fn push(&mut self, index: usize, delta: Cow<'_, str>) {
        let is_silent = delta.is_empty() && !matches!(self.message.content.get(index), Some(Block::ToolCall(_)));
        if !is_silent {
            self.push_even_empty(index, delta);
        }
    }

    /// Appends to an open block and reports the piece whatever is in it.
    pub fn push_even_empty(&mut self, index: usize, delta: Cow<'_, str>) {
        if !self.is_open(index) {
            return;
        }
        match &mut self.message.content[index] {
            Block::Text(block) => {
                block.text.push_str(&delta);
                self.events.push_back(AssistantEvent::TextDelta { index, delta: delta.into_owned() });
            }
            Block::Thinking(block) => {
                block.thinking.push_str(&delta);
                self.events.push_back(AssistantEvent::ThinkingDelta { index, delta: delta.into_owned() });
            }
            Block::ToolCall(_) => {
                self.progress[index].arguments.push(&delta);
                self.events.push_back(AssistantEvent::ToolCallDelta { index, delta: delta.into_owned() });
            }
            Block::Image(_) | Block::Other(_) => {}
        }
    }

    /// Appends what `whole` has beyond the pieces received, if it continues them.
    pub fn complete(&mut self, index: usize, whole: &str) {
        if let Some(tail) = whole.strip_prefix(self.received(index)).filter(|tail| !tail.is_empty()) {
            self.push(index, Cow::Borrowed(tail));
        }
    }

    /// Sets the arguments of an open call to `whole`, whatever pieces came before.
    pub fn replace(&mut self, index: usize, whole: &str) {
        if whole.starts_with(self.received(index)) {
            return self.complete(index, whole);
        }
        if let Some(progress) = self.progress.get_mut(index).filter(|progress| progress.is_open) {
            progress.arguments = PartialArguments::new();
            progress.arguments.push(whole);
        }
    }

    /// Returns the text of a block so far; of a call its raw arguments.
    pub fn received(&self, index: usize) -> &str {
        match self.message.content.get(index) {
            Some(Block::Text(block)) => &block.text,
            Some(Block::Thinking(block)) => &block.thinking,
            Some(Block::ToolCall(_)) => self.progress[index].arguments.raw(),
            Some(Block::Image(_) | Block::Other(_)) | None => "",
        }
    }

    /// Whether more may be appended to a block.
    pub fn is_open(&self, index: usize) -> bool {
        self.progress.get(index).is_some_and(|progress| progress.is_open)
    }

    /// Whether the arguments of a call are a whole object already.
    pub fn has_whole_arguments(&self, index: usize) -> bool {
        let arguments = &self.progress[index].arguments;
        arguments.raw().trim_end().ends_with('}') && arguments.finish().is_ok()
    }

    /// Replaces the opaque data of a block; allowed after its end.
    pub fn set_signature(&mut self, index: usize, signature: String) {
        match self.message.content.get_mut(index) {
            Some(Block::Text(block)) => block.text_signature = Some(signature),
            Some(Block::Thinking(block)) => block.thinking_signature = Some(signature),
            Some(Block::ToolCall(call)) => call.thought_signature = Some(signature),
            Some(Block::Image(_) | Block::Other(_)) | None => {}
        }
    }

    /// Appends to the opaque data of a thinking block.
    pub fn push_signature(&mut self, index: usize, piece: &str) {
        if let Some(Block::Thinking(block)) = self.message.content.get_mut(index) {
            block.thinking_signature.get_or_insert_default().push_str(piece);
        }
    }

    /// Marks a thinking block whose text was withheld.
    pub fn set_redacted(&mut self, index: usize) {
        if let Some(Block::Thinking(block)) = self.message.content.get_mut(index) {
            block.redacted = Some(true);
        }
    }

    /// Ends a block; ending it twice does nothing.
    pub fn close(&mut self, index: usize) {
        self.end_block(index, Ended::ByModel);
    }

    pub(super) fn end_block(&mut self, index: usize, ended: Ended) {
        if !self.is_open(index) {
            return;
        }
        self.progress[index].is_open = false;
        let event = match &mut self.message.content[index] {
            Block::Text(block) => {
                AssistantEvent::TextEnd { index, content: block.text.clone(), signature: block.text_signature.clone() }
            }
            Block::Thinking(block) => AssistantEvent::ThinkingEnd {
                index,
                content: block.thinking.clone(),
                signature: block.thinking_signature.clone(),
                redacted: block.redacted == Some(true),
            },
            Block::ToolCall(call) => {
                let arguments = std::mem::take(&mut self.progress[index].arguments);
                match arguments.finish() {
                    Ok(object) => call.arguments = object,
                    Err(error) => {
                        if ended == Ended::BrokenOff {
                            call.arguments = arguments.snapshot();
                        }
                        call.arguments_truncated = Some(true);
                        note_arguments(&mut self.message.diagnostics, &call.id, &error, arguments.raw());
                    }
                }
                AssistantEvent::ToolCallEnd { index, call: call.clone() }
            }
            Block::Image(_) | Block::Other(_) => return,
        };
        self.events.push_back(event);
    }
}

/// Keeps the text of arguments that are no JSON object: `{"toolCalls": {<id>: {error, raw, kind?}}}`. `kind` is what
/// they are if they are JSON.
fn note_arguments(diagnostics: &mut Option<Value>, id: &str, error: &BadArguments, raw: &str) {
    let notes = diagnostics.get_or_insert_with(|| Value::Object(Map::new()));
    let note = &mut notes["toolCalls"][id];
    *note = json!({"error": error.to_string(), "raw": raw});
    if let BadArguments::NotAnObject(kind) = error {
        note["kind"] = json!(kind);
    }
}
