//! JSON Schemas of everything that crosses the wire, for the files in `schema/`.

mod breaking;
mod document;
mod typescript;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::message::{
    AssistantMessage, BashExecution, BranchSummary, CompactionSummary, CustomMessage, ToolResultMessage, UserMessage,
};
use crate::{Entry, Message, StopReason};

pub use breaking::breaking_changes;
pub use document::{Dialect, document};
pub use typescript::typescript;

/// A command as a schema needs it.
pub(crate) struct CommandShape {
    pub name: &'static str,
    pub about: &'static str,
    /// Key, value, whether it must be there.
    pub fields: Vec<(&'static str, Schema, bool)>,
    /// `None` if a success has no data.
    pub answer: Option<Schema>,
}

/// A block of a type we do not know. One of a known type that does not fit is no such block.
pub(crate) fn other_block(_: &mut SchemaGenerator) -> Schema {
    other("type", &["text", "image", "thinking", "toolCall"])
}

/// An entry of a type we do not know.
pub(crate) fn other_entry(_: &mut SchemaGenerator) -> Schema {
    other("type", Entry::TYPES)
}

/// Pictures of a prompt.
pub(crate) fn images(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {
                "type": { "const": "image" },
                "data": { "type": "string", "description": "Base64 without a data-URL prefix." },
                "mimeType": { "type": "string" },
            },
            "required": ["type", "data", "mimeType"],
        },
    })
}

/// `null` for an optional field means that it is absent.
pub(crate) fn or_null(schema: Schema) -> Schema {
    let mut value = schema.to_value();
    if value == Value::Bool(true) {
        return Schema::from(true);
    }
    match value.get_mut("type") {
        Some(kind @ Value::String(_)) => *kind = Value::from(vec![kind.take(), Value::from("null")]),
        _ => value = serde_json::json!({ "anyOf": [value, { "type": "null" }] }),
    }
    Schema::try_from(value).expect("an object is a schema")
}

fn other(tag: &str, known: &[&str]) -> Schema {
    json_schema!({
        "type": "object",
        "properties": { tag: { "type": "string", "not": { "enum": known } } },
        "required": [tag],
    })
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let roles =
            ["user", "assistant", "toolResult", "bashExecution", "custom", "compactionSummary", "branchSummary"];
        json_schema!({
            "description": "Anything that can stand in a conversation.",
            "anyOf": [
                generator.subschema_for::<UserMessage>(),
                generator.subschema_for::<AssistantMessage>(),
                generator.subschema_for::<ToolResultMessage>(),
                generator.subschema_for::<BashExecution>(),
                generator.subschema_for::<CustomMessage>(),
                generator.subschema_for::<CompactionSummary>(),
                generator.subschema_for::<BranchSummary>(),
                other("role", &roles),
            ],
        })
    }
}

impl JsonSchema for StopReason {
    fn schema_name() -> Cow<'static, str> {
        "StopReason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Why an answer ended. `pending` is the answer that has just begun, with stream updates `delta`.",
            "type": "string",
            "enum": ["stop", "length", "toolUse", "error", "aborted", "pending"],
        })
    }
}
