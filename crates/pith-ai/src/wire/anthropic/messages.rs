//! The conversation as Anthropic's API wants it.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::prepare::{CallResult, Part, PreparedBlock, PreparedMessage, gather, is_blank};
use crate::wire::common::joined_text;

/// Takes the place of an image in a result that may hold text only.
const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

#[derive(Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
pub(super) struct Block<'a> {
    #[serde(flatten)]
    pub kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Kind<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: Cow<'a, str>, name: &'a str, input: &'a Map<String, Value> },
    ToolResult { tool_use_id: Cow<'a, str>, content: Output<'a>, is_error: bool },
    ToolReference { tool_name: &'a str },
}

#[derive(Serialize)]
pub(super) struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(String),
    Blocks(Vec<Block<'a>>),
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    pub r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<&'static str>,
}

/// Converts the prepared turns.
pub(super) fn messages<'a>(
    turns: Vec<PreparedMessage<'a>>,
    deferred: &HashSet<&str>,
    allow_empty_signature: bool,
) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'_>> = Vec::with_capacity(turns.len());
    // The results of one answer belong into one message, and their pictures behind them.
    let mut results: Option<Results<'_>> = None;
    for turn in turns {
        let (role, content) = match turn {
            PreparedMessage::Result(result) => {
                results.get_or_insert_default().push(result, deferred);
                continue;
            }
            PreparedMessage::User(parts) => ("user", gather(parts.len(), parts.into_iter().filter_map(part))),
            PreparedMessage::Assistant(answer) => {
                let (n_pieces, pieces) = (answer.pieces.len(), answer.pieces.into_iter());
                ("assistant", gather(n_pieces, pieces.filter_map(|block| piece(block, allow_empty_signature))))
            }
        };
        messages.extend(results.take().map(Results::message));
        if !content.is_empty() {
            messages.push(Message { role, content });
        }
    }
    messages.extend(results.map(Results::message));
    messages
}

/// The results of one answer.
#[derive(Default)]
struct Results<'a> {
    blocks: Vec<Block<'a>>,
    /// The pictures of results that report an error. The API takes nothing but text there.
    images: Vec<Block<'a>>,
}

impl<'a> Results<'a> {
    fn push(&mut self, mut result: CallResult<'a>, deferred: &HashSet<&str>) {
        if result.is_error && result.parts.iter().any(|part| matches!(part, Part::Image(_))) {
            let text = Cow::Owned(format!("Images of the failed call {} ({}):", result.id, result.name));
            self.images.push(block(Kind::Text { text }));
            let mut parts = Vec::with_capacity(result.parts.len());
            let mut after_image = false;
            for piece in result.parts {
                let is_image = matches!(piece, Part::Image(_));
                match piece {
                    Part::Image(_) => self.images.extend(part(piece)),
                    Part::Text(_) => parts.push(piece),
                }
                if is_image && !after_image {
                    parts.push(Part::Text(Cow::Borrowed(IMAGE_FOLLOWS)));
                }
                after_image = is_image;
            }
            result.parts = parts;
        }
        self.blocks.push(tool_result(result, deferred));
    }

    fn message(mut self) -> Message<'a> {
        self.blocks.append(&mut self.images);
        Message { role: "user", content: self.blocks }
    }
}

fn block(kind: Kind<'_>) -> Block<'_> {
    Block { kind, cache_control: None }
}

fn part(part: Part<'_>) -> Option<Block<'_>> {
    match part {
        Part::Text(text) if is_blank(&text) => None,
        Part::Text(text) => Some(block(Kind::Text { text })),
        Part::Image(image) => {
            let source = Source { r#type: "base64", media_type: &image.mime_type, data: &image.data };
            Some(block(Kind::Image { source }))
        }
    }
}

fn piece(piece: PreparedBlock<'_>, allow_empty_signature: bool) -> Option<Block<'_>> {
    Some(block(match piece {
        PreparedBlock::Text { text, .. } if is_blank(&text) => return None,
        PreparedBlock::Text { text, .. } => Kind::Text { text },
        PreparedBlock::Thinking { signature: Some(data), redacted: true, .. } => Kind::RedactedThinking { data },
        PreparedBlock::Thinking { redacted: true, .. } => return None,
        PreparedBlock::Thinking { text, signature: Some(signature), .. } => {
            Kind::Thinking { thinking: text, signature }
        }
        PreparedBlock::Thinking { text, .. } if allow_empty_signature => {
            Kind::Thinking { thinking: text, signature: "" }
        }
        PreparedBlock::Thinking { text, .. } => Kind::Text { text: Cow::Borrowed(text) },
        PreparedBlock::Call { id, name, arguments, .. } => Kind::ToolUse { id, name, input: arguments },
    }))
}

fn tool_result<'a>(result: CallResult<'a>, deferred: &HashSet<&str>) -> Block<'a> {
    let references: Vec<_> = result.found.iter().filter(|name| deferred.contains(**name)).collect();
    let has_images = result.parts.iter().any(|part| matches!(part, Part::Image(_)));
    let content = if !references.is_empty() {
        // The server puts the definitions here, which is what the text says, too.
        Output::Blocks(references.into_iter().map(|tool_name| block(Kind::ToolReference { tool_name })).collect())
    } else if has_images {
        let mut blocks: Vec<_> = result.parts.into_iter().filter_map(part).collect();
        if !blocks.iter().any(|block| matches!(block.kind, Kind::Text { .. })) {
            blocks.insert(0, block(Kind::Text { text: Cow::Borrowed("(see attached image)") }));
        }
        Output::Blocks(blocks)
    } else {
        Output::Text(joined_text(&result.parts))
    };
    block(Kind::ToolResult { tool_use_id: result.id, content, is_error: result.is_error })
}

/// Sets the cache breakpoints of the messages. Marking two user turns lets a long tool loop hit the cache again
/// after a branch or a retry.
pub(super) fn mark_last_user_turns(messages: &mut [Message<'_>], cache: Option<CacheControl>) {
    for message in messages.iter_mut().rev().filter(|message| message.role == "user").take(2) {
        if let Some(block) = message.content.last_mut() {
            block.cache_control = cache;
        }
    }
}
