//! The schema of one dialect as one document.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::CommandShape;
use crate::Command;
use crate::events::{Event, Ready};
use crate::host::{HostToolFrame, UiRequest};
use crate::permissions::{OptionId, PermissionFrame};
use crate::{ErrorCode, ResultRecord, SessionHeader};

/// Which hosts a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Pi,
    Xcsh,
}

impl Dialect {
    /// The name on the command line and of the file.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Pi => "pi",
            Dialect::Xcsh => "xcsh",
        }
    }

    /// Events that hosts of this dialect never see.
    fn hidden_events(self) -> &'static [&'static str] {
        match self {
            Dialect::Pi => Event::HIDDEN_FROM_PI,
            Dialect::Xcsh => Event::HIDDEN_FROM_XCSH,
        }
    }
}

/// The schema of everything a host of the dialect writes (`FromHost`) and reads (`FromPith`).
pub fn document(dialect: Dialect) -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let shapes = Command::shapes(&mut generator);
    let mut out = Definitions::default();
    let commands: Vec<Value> =
        shapes.iter().map(|shape| out.add(&(pascal(shape.name) + "Command"), command(shape))).collect();
    out.add("Command", json!({ "description": "What a host asks for.", "anyOf": commands }));
    let replies = replies().map(|(name, reply)| out.add(name, reply));
    let from_host: Vec<Value> = std::iter::once(reference("Command")).chain(replies).collect();
    out.add("FromHost", json!({ "description": "A line of stdin.", "anyOf": from_host }));

    let answers: Vec<Value> =
        shapes.iter().map(|shape| out.add(&(pascal(shape.name) + "Response"), success(shape))).collect();
    generator.subschema_for::<ErrorCode>();
    let refusal = out.add("FailedResponse", failure());
    let responses: Vec<Value> = answers.into_iter().chain([refusal]).collect();
    out.add("Response", json!({ "description": "The one answer of a command.", "anyOf": responses }));
    let events: Vec<Value> = variants::<Event<'_>>(&mut generator, "Event")
        .into_iter()
        .filter(|(kind, _)| !dialect.hidden_events().contains(&kind.as_str()))
        .map(|(kind, schema)| out.add(&(pascal(&kind) + "Event"), schema))
        .collect();
    out.add("Event", json!({ "description": "What pith tells without being asked.", "anyOf": events }));
    let mut from_pith = vec![reference("Response"), reference("Event")];
    from_pith.push(generator.subschema_for::<UiRequest>().to_value());
    from_pith.push(generator.subschema_for::<HostToolFrame>().to_value());
    from_pith.push(generator.subschema_for::<PermissionFrame>().to_value());
    if dialect == Dialect::Xcsh {
        from_pith.push(generator.subschema_for::<Ready<'_>>().to_value());
    }
    // Only `--mode json` has these: its first line and its last.
    from_pith.push(generator.subschema_for::<SessionHeader>().to_value());
    from_pith.push(generator.subschema_for::<ResultRecord>().to_value());
    out.add("FromPith", json!({ "description": "A line of stdout.", "anyOf": from_pith }));

    let mut definitions = generator.take_definitions(true);
    definitions.remove("Event");
    definitions.extend(out.0);
    add_tags(&mut definitions);
    // Hosts may write `null` for what they leave out; pith does not.
    let is_written_by_pith = |name: &str| !name.ends_with("Command") && !name.ends_with("Input");
    definitions.iter_mut().filter(|(name, _)| is_written_by_pith(name)).for_each(|(_, schema)| without_null(schema));
    definitions.get_mut("Navigated").expect("an answer")["properties"]["leafId"]["type"] = json!(["string", "null"]);
    let mut definitions: Map<String, Value> =
        definitions.into_iter().map(|(name, schema)| (type_name(&name).to_owned(), schema)).collect();
    definitions.values_mut().for_each(rename_references);
    definitions.sort_keys();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("pith protocol, dialect {}", dialect.name()),
        "description": "One line of JSON each: FromHost on stdin, FromPith on stdout. Hosts ignore keys, events and codes they do not know.",
        "anyOf": [reference("FromHost"), reference("FromPith")],
        "$defs": definitions,
    })
}

/// What is not written at all is never written as `null`.
fn without_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                let optional = properties.iter_mut().filter(|(key, _)| !required.iter().any(|name| name == *key));
                optional.for_each(|(_, property)| drop_null(property));
            }
            members.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

fn drop_null(property: &mut Value) {
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            property["type"] = kind.clone();
        }
    }
    let Some(Value::Array(choices)) = property.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if let [choice] = choices.as_slice() {
        let choice = choice.clone();
        let about = property["description"].take();
        *property = choice;
        if !about.is_null() {
            property["description"] = about;
        }
    }
}

/// Types that a word tells apart: the word, the key it stands under, and the name of the type. The generator calls the
/// type by the word and leaves the key out.
const TAGGED: &[(&str, &str, &str)] = &[
    ("user", "role", "UserMessage"),
    ("assistant", "role", "AssistantMessage"),
    ("toolResult", "role", "ToolResultMessage"),
    ("bashExecution", "role", "BashExecution"),
    ("custom", "role", "CustomMessage"),
    ("compactionSummary", "role", "CompactionSummary"),
    ("branchSummary", "role", "BranchSummary"),
    ("session", "type", "SessionHeader"),
    ("result", "type", "ResultRecord"),
    ("ready", "type", "Ready"),
    ("extension_ui_request", "type", "UiRequest"),
];

fn type_name(name: &str) -> &str {
    TAGGED.iter().find(|(word, ..)| *word == name).map_or(name, |(.., type_name)| type_name)
}

/// Adds the key that says what an object is.
fn add_tags(definitions: &mut Map<String, Value>) {
    for (word, key, _) in TAGGED {
        let Some(Value::Object(schema)) = definitions.get_mut(*word) else { continue };
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        let others = properties.take();
        *properties = json!({ *key: { "const": word } });
        if let (Some(properties), Value::Object(others)) = (properties.as_object_mut(), others) {
            properties.extend(others);
        }
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.insert(0, json!(key));
        }
    }
}

fn rename_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(to)) = members.get_mut("$ref") {
                let name = to.rsplit('/').next().unwrap_or_default();
                *to = format!("#/$defs/{}", type_name(name));
            }
            members.values_mut().for_each(rename_references);
        }
        Value::Array(items) => items.iter_mut().for_each(rename_references),
        _ => {}
    }
}

/// Definitions that no single type has.
#[derive(Default)]
struct Definitions(Map<String, Value>);

impl Definitions {
    fn add(&mut self, name: &str, schema: Value) -> Value {
        self.0.insert(name.to_owned(), schema);
        reference(name)
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// `get_state` → `GetState`.
fn pascal(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

fn command(shape: &CommandShape) -> Value {
    let mut properties = Map::new();
    properties.insert("id".to_owned(), json!({ "description": "Anything; comes back in the response." }));
    properties.insert("type".to_owned(), json!({ "const": shape.name }));
    let mut required = vec!["type"];
    for (key, schema, is_required) in &shape.fields {
        properties.insert((*key).to_owned(), schema.clone().to_value());
        required.extend(is_required.then_some(*key));
    }
    described(shape.about, json!({ "type": "object", "properties": properties, "required": required }))
}

fn success(shape: &CommandShape) -> Value {
    let mut properties = response(json!({ "const": shape.name }), true);
    let mut required = vec!["type", "command", "success"];
    if let Some(answer) = &shape.answer {
        properties.insert("data".to_owned(), answer.clone().to_value());
        required.push("data");
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn failure() -> Value {
    let mut properties =
        response(json!({ "type": "string", "description": "Or `parse`, for a line that names none." }), false);
    properties.insert("error".to_owned(), json!({ "type": "string", "description": "For people." }));
    properties.insert("code".to_owned(), reference("ErrorCode"));
    properties
        .insert("requestId".to_owned(), json!({ "description": "The id of an unknown command, in dialect xcsh." }));
    json!({ "type": "object", "properties": properties, "required": ["type", "command", "success", "error", "code"] })
}

fn response(command: Value, success: bool) -> Map<String, Value> {
    let all = json!({
        "id": { "description": "That of the command, byte for byte." },
        "type": { "const": "response" },
        "command": command,
        "success": { "const": success },
    });
    match all {
        Value::Object(all) => all,
        _ => Map::new(),
    }
}

/// What a host answers to something that pith asked.
fn replies() -> impl Iterator<Item = (&'static str, Value)> {
    let reply = |kind: &str, about: &str, mut properties: Value, required: &[&str]| {
        properties["type"] = json!({ "const": kind });
        properties["id"] = json!({ "type": "string", "description": "That of the request." });
        let required: Vec<&str> = ["type", "id"].iter().chain(required).copied().collect();
        json!({ "description": about, "type": "object", "properties": properties, "required": required })
    };
    let result = json!({
        "type": "object",
        "properties": { "content": { "type": "array", "items": reference("Block") }, "details": {} },
        "required": ["content"],
    });
    [
        (
            "ExtensionUiResponse",
            reply(
                "extension_ui_response",
                "The answer to a dialog: one of `value`, `confirmed` and `cancelled`.",
                json!({ "value": { "type": "string" }, "confirmed": { "type": "boolean" }, "cancelled": { "const": true } }),
                &[],
            ),
        ),
        (
            "PermissionResponse",
            reply(
                "permission_response",
                "The answer to a `permission_request`. The message of a refusal is told to the model.",
                json!({
                    "optionId": { "enum": OptionId::WORDS.iter().map(|(word, _)| word).collect::<Vec<_>>() },
                    "message": { "type": "string" },
                }),
                &["optionId"],
            ),
        ),
        (
            "HostToolUpdate",
            reply("host_tool_update", "Progress of a tool of the host.", json!({ "partialResult": result }), &["partialResult"]),
        ),
        (
            "HostToolResult",
            reply(
                "host_tool_result",
                "The result of a tool of the host.",
                json!({ "result": result, "isError": { "type": "boolean" } }),
                &["result"],
            ),
        ),
    ]
    .into_iter()
}

/// The variants of a type that is told apart by `type`.
fn variants<T: schemars::JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Vec<(String, Value)> {
    generator.subschema_for::<T>();
    let schema = generator.definitions().get(name).cloned().unwrap_or_default();
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let kind = |variant: &Value| variant["properties"]["type"]["const"].as_str().unwrap_or_default().to_owned();
    variants.into_iter().map(|variant| (kind(&variant), variant)).collect()
}

fn described(about: &str, mut schema: Value) -> Value {
    if !about.is_empty() {
        schema["description"] = Value::from(about.trim());
    }
    schema
}
