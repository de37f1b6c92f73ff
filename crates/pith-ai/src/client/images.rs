//! Images that servers refuse.
//!
//! An image is part of the conversation and sent with every request, so one
//! that a server cannot take would end the session. Once refused it is replaced
//! by a note that tells the model what happened.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use pith_protocol::{Block, Content, ImageBlock, LlmCall, Message, StopReason};
use regex::{Regex, RegexSet};
use serde_json::Value;

use crate::wire::cut;

/// How servers say that a model takes no images at all.
const NO_IMAGES: &[&str] = &[
    // llama.cpp, xAI, Mistral, Fireworks
    r"\b(images?|vision)( inputs?| content| understanding)?( is| are)?( not|n't) (supported|enabled|allowed)",
    // Ollama, OpenRouter, gateways
    r"(do|does)( not|n't) support (any )?(images?|vision|multimodal|image_url)",
    r"no endpoints found that support image",
    r"missing data required for image input",
    // vLLM
    r"is not a multimodal model",
    r"at most 0 image",
    // OpenAI
    r"image_url is only supported by certain models",
    // DeepSeek and other servers that know texts only
    r"unknown variant `image_url`",
];

/// How servers say that they cannot take an image.
const BAD_IMAGE: &[&str] = &[
    // Anthropic
    r"could not process image",
    r"image exceeds .{0,20}maximum",
    r"image dimensions exceed",
    r"image does not match the provided media type",
    // OpenAI, Azure
    r"unsupported image",
    r"invalid_image",
    r"image_parse_error",
    r"invalid (base64 )?(image|image_url)\b",
    r"(failed|unable) to (load|process|decode|read|parse|download|open) (the |input |an? )?image",
    // vLLM, SGLang
    r"cannot identify image file",
    r"image file is truncated",
    // Gemini
    r"unsupported mime type:? ?'?image/",
    // Ollama
    r"image: unknown format",
    r"illegal base64 data",
    // Groq, vLLM: the limit of one request
    r"too many images",
    r"at most \d+ image",
];

static NONE_AT_ALL: LazyLock<RegexSet> = LazyLock::new(|| set(NO_IMAGES));
static NOT_THIS: LazyLock<RegexSet> = LazyLock::new(|| set(BAD_IMAGE));
/// Where in the request the refused part is: `messages.3.content.1.image`, `input[2].content[1]`.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(messages|input|contents)[.\[][\w.\[\]]*").expect("the pattern is a constant"));

fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns.iter().map(|pattern| format!("(?i){pattern}"))).expect("the patterns are constants")
}

/// The images one server has refused for one model.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedImages {
    /// Why, by the hash of an image's data.
    reasons: HashMap<u64, Arc<str>>,
    /// Why none is taken.
    none: Option<Arc<str>>,
}

impl RefusedImages {
    /// Looks for refused images in an error answer. Returns how many there are and why.
    pub fn learn(&mut self, call: &LlmCall, request: &[u8], status: u16, body: &str) -> Option<(usize, Arc<str>)> {
        let is_refusal = matches!(status, 400 | 404 | 413 | 415 | 422 | 500 | 501);
        let takes_none = NONE_AT_ALL.is_match(body);
        if !is_refusal || call.block_images || !(takes_none || NOT_THIS.is_match(body)) {
            return None;
        }
        let images: Vec<_> = images_of_call(call).filter(|(_, image)| self.reason(image).is_none()).collect();
        if images.is_empty() {
            return None;
        }
        let reason: Arc<str> = cut(&reason(body), 200).into();
        if takes_none {
            self.none = Some(reason.clone());
            return Some((images.len(), reason));
        }
        let suspects = suspects(call, &images, request, body);
        self.reasons.extend(suspects.iter().map(|image| (hash(image), reason.clone())));
        Some((suspects.len(), reason))
    }

    /// Returns the messages with notes instead of refused images; `None` if no image is affected.
    pub fn replace(&self, messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        if self.reasons.is_empty() && self.none.is_none() {
            return None;
        }
        let mut is_changed = false;
        let replaced = messages.iter().map(|message| match self.replace_in(message) {
            Some(changed) => {
                is_changed = true;
                Arc::new(changed)
            }
            None => message.clone(),
        });
        let replaced: Vec<_> = replaced.collect();
        is_changed.then_some(replaced)
    }

    fn replace_in(&self, message: &Message) -> Option<Message> {
        if !images_of(message).iter().any(|image| self.reason(image).is_some()) {
            return None;
        }
        let mut message = message.clone();
        match &mut message {
            Message::User(message) => self.replace_blocks(content_blocks(&mut message.content)?, "image"),
            Message::Custom(message) => self.replace_blocks(content_blocks(&mut message.content)?, "image"),
            Message::ToolResult(message) => self.replace_blocks(&mut message.content, "tool image"),
            _ => return None,
        }
        Some(message)
    }

    /// Puts notes into the place of refused images; neighbours with the same reason share one.
    fn replace_blocks(&self, blocks: &mut Vec<Block>, what: &str) {
        let mut last: Option<Arc<str>> = None;
        blocks.retain_mut(|block| {
            let reason = if let Block::Image(image) = &*block { self.reason(image).cloned() } else { None };
            let is_repeat = reason.is_some() && reason == last;
            if let Some(reason) = &reason {
                *block = Block::text(format!("({what} omitted: the server refused it: {reason})"));
            }
            last = reason;
            !is_repeat
        });
    }

    fn reason(&self, image: &ImageBlock) -> Option<&Arc<str>> {
        self.none.as_ref().or_else(|| self.reasons.get(&hash(image)))
    }
}

fn content_blocks(content: &mut Content) -> Option<&mut Vec<Block>> {
    match content {
        Content::Blocks(blocks) => Some(blocks),
        Content::Text(_) => None,
    }
}

/// Returns the images a refusal is about: the one it names, else those that no answer has followed yet, else all.
fn suspects<'a>(call: &LlmCall, images: &[(usize, &'a ImageBlock)], request: &[u8], body: &str) -> Vec<&'a ImageBlock> {
    let texts = named_texts(request, body);
    let is_named = |image: &&ImageBlock| texts.iter().any(|text| text.ends_with(&image.data));
    let named: Vec<_> = images.iter().map(|(_, image)| *image).filter(is_named).collect();
    if !named.is_empty() {
        return named;
    }
    let answered = call.messages.iter().rposition(|message| {
        message.as_assistant().is_some_and(|answer| {
            let is_own = answer.provider == call.model.provider && answer.model == call.model.id;
            is_own && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    });
    let new: Vec<_> = images
        .iter()
        .filter(|(at, _)| answered.is_none_or(|answered| *at > answered))
        .map(|(_, image)| *image)
        .collect();
    if new.is_empty() { images.iter().map(|(_, image)| *image).collect() } else { new }
}

/// Returns the texts at the place of the request that a refusal names, an image's data among them.
fn named_texts(request: &[u8], body: &str) -> Vec<String> {
    let Some(path) = PATH.find(body) else { return Vec::new() };
    let request: Value = serde_json::from_slice(request).unwrap_or_default();
    let mut place = &request;
    for step in path.as_str().split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let next = match step.parse::<usize>() {
            Ok(index) => place.get(index),
            Err(_) => place.get(step),
        };
        // Some servers name the type of a block where it has no member of that name.
        place = next.unwrap_or(place);
    }
    let mut texts = Vec::new();
    collect_texts(place, &mut texts);
    texts
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect_texts(member, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the images of a call, each with the place of its message.
fn images_of_call(call: &LlmCall) -> impl Iterator<Item = (usize, &ImageBlock)> {
    let images = |(at, message)| images_of(message).into_iter().map(move |image| (at, image));
    call.messages.iter().map(|message| &**message).enumerate().flat_map(images)
}

fn images_of(message: &Message) -> Vec<&ImageBlock> {
    let blocks = match message {
        Message::User(message) => &message.content,
        Message::Custom(message) => &message.content,
        Message::ToolResult(message) => return of_blocks(&message.content),
        _ => return Vec::new(),
    };
    match blocks {
        Content::Blocks(blocks) => of_blocks(blocks),
        Content::Text(_) => Vec::new(),
    }
}

fn of_blocks(blocks: &[Block]) -> Vec<&ImageBlock> {
    blocks.iter().filter_map(|block| if let Block::Image(image) = block { Some(image) } else { None }).collect()
}

fn hash(image: &ImageBlock) -> u64 {
    let mut hasher = DefaultHasher::new();
    image.data.hash(&mut hasher);
    hasher.finish()
}

/// Returns the message of an error answer.
fn reason(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let places = ["/error/message", "/message", "/detail", "/error"];
    let found = places.iter().find_map(|place| value.pointer(place)?.as_str());
    found.unwrap_or(body).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_images_are_told_apart() {
        for text in [
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "Image inputs are not supported by this model.",
            "Image input is not enabled for this model",
            "this model is missing data required for image input",
            "llama3 does not support images",
            "No endpoints found that support image input",
            "Qwen/Qwen3-8B is not a multimodal model",
            "At most 0 image(s) may be provided in one prompt.",
            "Invalid content type. image_url is only supported by certain models.",
            "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`",
        ] {
            assert!(NONE_AT_ALL.is_match(text), "{text}");
        }
        for text in [
            "Could not process image",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
            "At least one of the image dimensions exceed max allowed size: 8000 pixels",
            "Image does not match the provided media type image/png",
            "You uploaded an unsupported image. Please make sure your image is below 20 MB",
            "Invalid base64 image_url.",
            r#"{"code":"invalid_image_format"}"#,
            "Failed to load image: cannot identify image file <_io.BytesIO object>",
            "Unable to process input image. Please retry or report",
            "Unsupported MIME type: image/tiff",
            "image: unknown format",
            "Too many images provided. This model supports up to 5 images.",
            "At most 1 image(s) may be provided in one request.",
        ] {
            assert!(NOT_THIS.is_match(text) && !NONE_AT_ALL.is_match(text), "{text}");
        }
        for text in ["image generation quota exceeded", "the image model is overloaded", "tools are not supported"] {
            assert!(!NOT_THIS.is_match(text) && !NONE_AT_ALL.is_match(text), "{text}");
        }
    }

    #[test]
    fn the_place_of_a_refusal_is_found_in_the_request() {
        let request = br#"{"messages":[{"content":[{"text":"a"},{"type":"image","source":{"data":"DATA"}}]}],
            "input":[{"content":[{"image_url":"data:image/png;base64,OTHER"}]}]}"#;
        let named = |body: &str| named_texts(request, body);
        assert_eq!(named("messages.0.content.1.image.source.base64: too large"), ["DATA"]);
        assert_eq!(named("bad input[0].content[0].image_url"), ["data:image/png;base64,OTHER"]);
        assert!(named("bad image").is_empty());
    }
}
