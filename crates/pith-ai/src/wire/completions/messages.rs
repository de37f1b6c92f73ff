//! The conversation as a chat-completions server wants it.

use std::borrow::Cow;

use pith_protocol::LlmCall;
use serde::Serialize;
use serde_json::value::RawValue;

use super::compat::Compat;
use crate::prepare::{Answer, CallResult, Part, PreparedBlock, PreparedMessage, gather, is_blank};
use crate::wire::arguments_text;
use crate::wire::common::joined_text;

const RESULT_IMAGES: &str = "Attached image(s) from tool result:";
const RESULTS_SEEN: &str = "I have processed the tool results.";

#[derive(Default, Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

/// Anthropic's cache mark, for aggregators that pass it on.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    pub(super) fn new(is_long: bool) -> Self {
        CacheControl { r#type: "ephemeral", ttl: is_long.then_some("1h") }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

/// Converts the prepared turns, with the system prompt in front.
pub(super) fn messages<'a>(
    call: &'a LlmCall,
    turns: Vec<PreparedMessage<'a>>,
    compat: &Compat<'_>,
    cache: Option<CacheControl>,
) -> Vec<Message<'a>> {
    let mut conversation = Conversation { messages: Vec::with_capacity(turns.len() + 1), images: Vec::new(), compat };
    if !call.system_prompt.is_empty() {
        let role = if call.model.reasoning && compat.developer_role { "developer" } else { "system" };
        let content = Some(Content::Text(Cow::Borrowed(&*call.system_prompt)));
        conversation.messages.push(Message { role, content, ..Message::default() });
    }
    for turn in turns {
        match turn {
            PreparedMessage::User(parts) => conversation.user(parts),
            PreparedMessage::Assistant(answer) => conversation.assistant(answer),
            PreparedMessage::Result(result) => conversation.result(result),
        }
    }
    conversation.show_images();
    let mut messages = conversation.messages;
    if let Some(cache) = cache {
        mark(&mut messages, cache);
    }
    messages
}

struct Conversation<'a, 'c> {
    messages: Vec<Message<'a>>,
    /// Pictures of the results being collected; tool messages cannot hold them.
    images: Vec<ContentPart<'a>>,
    compat: &'c Compat<'c>,
}

impl<'a> Conversation<'a, '_> {
    fn user(&mut self, parts: Vec<Part<'a>>) {
        self.show_images();
        let parts = gather(parts.len(), parts.into_iter().filter_map(content_part));
        if parts.is_empty() {
            return;
        }
        let is_after_result = self.messages.last().is_some_and(|message| message.role == "tool");
        if is_after_result && self.compat.assistant_after_tool_result {
            let content = Some(Content::Text(Cow::Borrowed(RESULTS_SEEN)));
            self.messages.push(Message { role: "assistant", content, ..Message::default() });
        }
        self.push_user(parts);
    }

    fn push_user(&mut self, parts: Vec<ContentPart<'a>>) {
        self.messages.push(Message { role: "user", content: Some(Content::Parts(parts)), ..Message::default() });
    }

    fn assistant(&mut self, answer: Answer<'a>) {
        self.show_images();
        let mut message = Message { role: "assistant", ..Message::default() };
        let (mut text, mut separator) = (String::new(), "");
        let mut thoughts: Vec<(&'a str, Option<&'a str>)> = Vec::new();
        for piece in answer.pieces {
            match piece {
                PreparedBlock::Text { text: piece, .. } if is_blank(&piece) => {}
                PreparedBlock::Text { text: piece, was_thinking, .. } => {
                    text.push_str(separator);
                    text.push_str(&piece);
                    separator = if was_thinking { "\n\n" } else { "" };
                }
                PreparedBlock::Thinking { text, signature, .. } => thoughts.push((text, signature)),
                PreparedBlock::Call { id, name, arguments, .. } => {
                    let function = Function { name, arguments: arguments_text(arguments) };
                    message.tool_calls.push(Call { id, r#type: "function", function });
                }
            }
        }
        if text.is_empty() && message.tool_calls.is_empty() {
            return;
        }
        message.content = if text.is_empty() {
            self.compat.assistant_after_tool_result.then_some(Content::Text(Cow::Borrowed("")))
        } else {
            Some(Content::Text(Cow::Owned(text)))
        };
        self.add_thinking(&mut message, &thoughts);
        self.messages.push(message);
    }

    /// Adds thinking in the field it came in, which its signature names.
    fn add_thinking(&self, message: &mut Message<'a>, thoughts: &[(&'a str, Option<&'a str>)]) {
        if self.compat.thinking_as_text {
            return prepend_thinking(message, thoughts);
        }
        let field = thoughts.iter().find_map(|(_, signature)| *signature);
        let joined = || {
            let texts = thoughts.iter().map(|(text, _)| *text);
            Some(Cow::Owned(texts.collect::<Vec<_>>().join("\n")))
        };
        match field {
            Some("reasoning_content") => message.reasoning_content = joined(),
            Some("reasoning") => message.reasoning = joined(),
            Some("reasoning_text") => message.reasoning_text = joined(),
            Some("thinking") => message.thinking = joined(),
            Some(details) if details.starts_with('[') => message.reasoning_details = serde_json::from_str(details).ok(),
            Some(_) | None => {}
        }
        if self.compat.reasoning_content_required && message.reasoning_content.is_none() {
            message.reasoning_content = Some(Cow::Borrowed(""));
        }
    }

    fn result(&mut self, result: CallResult<'a>) {
        let mut text = joined_text(&result.parts);
        let images = result.parts.into_iter().filter(|part| matches!(part, Part::Image(_)));
        let before = self.images.len();
        self.images.extend(images.filter_map(content_part));
        if is_blank(&text) {
            let has_images = self.images.len() > before;
            text = if has_images { "(see attached image)" } else { "(no tool output)" }.to_owned();
        }
        self.messages.push(Message {
            role: "tool",
            content: Some(Content::Text(Cow::Owned(text))),
            tool_call_id: Some(result.id),
            name: self.compat.tool_result_name.then_some(result.name),
            ..Message::default()
        });
    }

    /// Ends a run of tool results by showing their pictures.
    fn show_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        let mut parts = vec![ContentPart::Text { text: Cow::Borrowed(RESULT_IMAGES), cache_control: None }];
        parts.append(&mut self.images);
        self.push_user(parts);
    }
}

fn content_part(part: Part<'_>) -> Option<ContentPart<'_>> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(ContentPart::Text { text, cache_control: None }),
        Part::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Some(ContentPart::ImageUrl { image_url: ImageUrl { url } })
        }
    }
}

fn prepend_thinking<'a>(message: &mut Message<'a>, thoughts: &[(&'a str, Option<&'a str>)]) {
    let texts: Vec<_> = thoughts.iter().map(|(text, _)| *text).filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() {
        return;
    }
    let mut parts = vec![ContentPart::Text { text: Cow::Owned(texts.join("\n")), cache_control: None }];
    if let Some(Content::Text(text)) = message.content.take().filter(|content| !is_empty(content)) {
        parts.push(ContentPart::Text { text, cache_control: None });
    }
    message.content = Some(Content::Parts(parts));
}

fn is_empty(content: &Content<'_>) -> bool {
    match content {
        Content::Text(text) => text.is_empty(),
        Content::Parts(parts) => parts.is_empty(),
    }
}

/// Marks the system prompt and the newest message that has text.
fn mark(messages: &mut [Message<'_>], cache: CacheControl) {
    let is_system = |message: &Message<'_>| matches!(message.role, "system" | "developer");
    if let Some(system) = messages.first_mut().filter(|message| is_system(message)) {
        mark_text(system, cache);
    }
    for message in messages.iter_mut().rev() {
        if is_system(message) || mark_text(message, cache) {
            break;
        }
    }
}

/// Marks the last text of a message. A plain string becomes a list for that.
fn mark_text(message: &mut Message<'_>, cache: CacheControl) -> bool {
    if let Some(Content::Text(text)) = &mut message.content {
        let text = std::mem::take(text);
        message.content = Some(Content::Parts(vec![ContentPart::Text { text, cache_control: None }]));
    }
    let Some(Content::Parts(parts)) = &mut message.content else { return false };
    for part in parts.iter_mut().rev() {
        if let ContentPart::Text { text, cache_control } = part
            && !text.is_empty()
        {
            *cache_control = Some(cache);
            return true;
        }
    }
    false
}
