//! Messages of a conversation. One set of types serves wire, file and providers.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Block, Content, ToolCall, Usage};

/// Anything that can stand in a conversation. Unknown roles round-trip untouched.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    BashExecution(BashExecution),
    Custom(CustomMessage),
    CompactionSummary(CompactionSummary),
    BranchSummary(BranchSummary),
    Other(Map<String, Value>),
}

/// What the person (or the host on their behalf) said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "user", default)]
pub struct UserMessage {
    #[serde(deserialize_with = "content")]
    pub content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<String>,
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "assistant", rename_all = "camelCase", default)]
pub struct AssistantMessage {
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Block>,
    pub api: String,
    pub provider: String,
    pub model: String,
    pub usage: Usage,
    pub stop_reason: StopReason,
    pub timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Only when it differs from the requested model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The vendor's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// What went wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Why an answer ended. Only these five ever leave pith, except that an answer which has just begun is `pending` for
/// hosts that read deltas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    #[default]
    #[serde(alias = "pending", alias = "deferred")]
    Stop,
    Length,
    ToolUse,
    Error,
    Aborted,
}

/// A failed model call in structured form; retry and compaction act on the kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub kind: ErrorKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `false` when the server wants no further request, whatever the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
}

/// Classes of failure a caller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    Auth,
    RateLimit,
    Overloaded,
    Overflow,
    Quota,
    InvalidRequest,
    Network,
    Timeout,
    Protocol,
    /// Nothing went wrong: a limit the user has set was reached, such as `maxTurns`.
    Limit,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "toolResult", rename_all = "camelCase", default)]
pub struct ToolResultMessage {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    pub is_error: bool,
    pub timestamp: i64,
    /// Model usage spent inside the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A command the host ran with the `bash` command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "bashExecution", rename_all = "camelCase", default)]
pub struct BashExecution {
    pub command: String,
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A message placed by an extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "custom", rename_all = "camelCase", default)]
pub struct CustomMessage {
    pub custom_type: String,
    #[serde(deserialize_with = "content")]
    pub content: Content,
    pub display: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Stands for everything a compaction removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "compactionSummary", rename_all = "camelCase", default)]
pub struct CompactionSummary {
    pub summary: String,
    pub tokens_before: u64,
    pub timestamp: i64,
}

/// Stands for a branch that was left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename = "branchSummary", rename_all = "camelCase", default)]
pub struct BranchSummary {
    pub summary: String,
    pub from_id: Option<String>,
    pub timestamp: i64,
}

impl Message {
    /// The wire name of the role.
    pub fn role(&self) -> &str {
        match self {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "toolResult",
            Message::BashExecution(_) => "bashExecution",
            Message::Custom(_) => "custom",
            Message::CompactionSummary(_) => "compactionSummary",
            Message::BranchSummary(_) => "branchSummary",
            Message::Other(object) => object.get("role").and_then(Value::as_str).unwrap_or("unknown"),
        }
    }

    /// The assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Message::Assistant(message) => Some(message),
            _ => None,
        }
    }
}

impl UserMessage {
    /// A prompt as hosts send it: one text block, then the images.
    pub fn new(text: String, images: Vec<crate::ImageBlock>, timestamp: i64) -> Self {
        let blocks = std::iter::once(Block::text(text)).chain(images.into_iter().map(Block::Image)).collect();
        UserMessage { content: Content::Blocks(blocks), attribution: None, timestamp, extra: Map::new() }
    }
}

impl AssistantMessage {
    /// The calls of the message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Error and abort end a run; everything else lets it go on.
    pub fn failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Message::User(message) => message.serialize(serializer),
            Message::Assistant(message) => message.serialize(serializer),
            Message::ToolResult(message) => message.serialize(serializer),
            Message::BashExecution(message) => message.serialize(serializer),
            Message::Custom(message) => message.serialize(serializer),
            Message::CompactionSummary(message) => message.serialize(serializer),
            Message::BranchSummary(message) => message.serialize(serializer),
            Message::Other(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Message, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value::<Value>()?;
            if name == "role" && object.is_empty() {
                // Where everybody writes it. The rest goes straight into its type: as a JSON tree first, a long session
                // takes several times as long to read.
                return of_role(value, MapAccessDeserializer::new(members));
            }
            object.insert(name, value);
        }
        match object.shift_remove("role") {
            Some(role) => of_role(role, Value::Object(object)).map_err(A::Error::custom),
            None => Ok(Message::Other(object)),
        }
    }
}

/// Reads the members of a message beside its role.
fn of_role<'de, D: Deserializer<'de>>(role: Value, members: D) -> Result<Message, D::Error> {
    Ok(match role.as_str().unwrap_or_default() {
        "user" => Message::User(Deserialize::deserialize(members)?),
        "assistant" => Message::Assistant(Deserialize::deserialize(members)?),
        "toolResult" => Message::ToolResult(Deserialize::deserialize(members)?),
        "bashExecution" => Message::BashExecution(Deserialize::deserialize(members)?),
        "custom" => Message::Custom(Deserialize::deserialize(members)?),
        "compactionSummary" => Message::CompactionSummary(Deserialize::deserialize(members)?),
        "branchSummary" => Message::BranchSummary(Deserialize::deserialize(members)?),
        _ => {
            let mut object = Map::new();
            object.insert("role".to_owned(), role);
            object.extend(Map::<String, Value>::deserialize(members)?);
            Message::Other(object)
        }
    })
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    let mut blocks: Vec<Block> = null_as_default(deserializer)?;
    // A conversation is kept for long, and most of its messages have one block.
    blocks.shrink_to_fit();
    Ok(blocks)
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    null_as_default(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round_trip(value: Value) {
        let message: Message = serde_json::from_value(value.clone()).expect("loads");
        assert_eq!(serde_json::to_value(&message).expect("saves"), value);
    }

    #[test]
    fn messages_round_trip_with_fields_we_do_not_know() {
        round_trip(json!({"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1,"mystery":{"a":1}}));
        round_trip(json!({"role":"user","content":"plain","timestamp":1}));
        round_trip(json!({"role":"fileMention","files":["a"],"timestamp":1}));
        round_trip(json!({"role":"toolResult","toolCallId":"a","toolName":"b",
            "content":[{"type":"hologram","x":1}],"isError":false,"timestamp":2}));
    }

    #[test]
    fn a_message_is_the_same_wherever_its_role_stands() {
        let check = |message: &str, moved: &str| {
            let read = |text: &str| serde_json::from_str::<Message>(text).expect("loads");
            assert_eq!(read(message), read(moved));
            assert_eq!(serde_json::to_string(&read(message)).expect("saves"), message);
        };
        check(
            r#"{"role":"user","content":"a","timestamp":1,"x":[{"role":"y"}]}"#,
            r#"{"content":"a","x":[{"role":"y"}],"timestamp":1,"role":"user"}"#,
        );
        check(r#"{"role":"hologram","x":1,"y":2}"#, r#"{"x":1,"role":"hologram","y":2}"#);
        check(r#"{"role":7,"x":1}"#, r#"{"x":1,"role":7}"#);
        check(r#"{"x":1}"#, r#"{"x":1}"#);
        assert!(serde_json::from_str::<Message>(r#"{"role":"user","timestamp":"soon"}"#).is_err());
    }

    #[test]
    fn null_content_is_empty_content() {
        let message: Message =
            serde_json::from_value(json!({"role":"assistant","content":null,"timestamp":1})).expect("loads");
        assert_eq!(message.as_assistant().expect("assistant").content, vec![]);
    }
}
