//! The same as TypeScript declarations.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Declarations of every definition of a [`super::document`].
pub fn typescript(document: &Value) -> String {
    let title = document["title"].as_str().unwrap_or_default();
    let mut out = format!("// {title}. Generated from the schema beside it; see docs/protocol.md.\n");
    for (name, schema) in document["$defs"].as_object().into_iter().flatten() {
        out.push('\n');
        comment(&mut out, schema, "");
        let _ = writeln!(out, "export type {name} = {};", shown(schema, ""));
    }
    out
}

fn comment(out: &mut String, schema: &Value, indent: &str) {
    let Some(text) = schema["description"].as_str() else { return };
    let _ = writeln!(out, "{indent}/** {} */", text.replace("*/", "* /").replace('\n', " "));
}

fn shown(schema: &Value, indent: &str) -> String {
    let mut parts = Vec::new();
    if let Some(name) = schema["$ref"].as_str() {
        parts.push(name.rsplit('/').next().unwrap_or_default().to_owned());
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            parts.push(union(choices.iter().map(|choice| shown(choice, indent)).collect()));
        }
    }
    if let Some(all) = schema["allOf"].as_array() {
        parts.extend(all.iter().map(|part| shown(part, indent)));
    }
    if let Some(value) = schema.get("const") {
        parts.push(value.to_string());
    } else if let Some(values) = schema["enum"].as_array() {
        parts.push(union(values.iter().map(Value::to_string).collect()));
    } else if let Some(kind) = schema.get("type") {
        let kinds = kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice);
        let has_parts = !parts.is_empty();
        let is_plain_object = kind == "object" && schema.get("properties").is_none();
        if !(has_parts && is_plain_object) {
            parts.push(union(kinds.iter().map(|kind| plain(kind, schema, indent)).collect()));
        }
    } else if schema.get("properties").is_some() {
        parts.push(object(schema, indent));
    }
    parts.dedup();
    match parts.len() {
        0 => "unknown".to_owned(),
        1 => parts.remove(0),
        _ => parts.iter().map(|part| grouped(part)).collect::<Vec<_>>().join(" & "),
    }
}

fn plain(kind: &Value, schema: &Value, indent: &str) -> String {
    match kind.as_str().unwrap_or_default() {
        "integer" => "number".to_owned(),
        "array" => format!("{}[]", grouped(&shown(&schema["items"], indent))),
        "object" => object(schema, indent),
        other => other.to_owned(),
    }
}

fn object(schema: &Value, indent: &str) -> String {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return match schema.get("additionalProperties") {
            Some(Value::Object(_)) => format!("Record<string, {}>", shown(&schema["additionalProperties"], indent)),
            _ => "Record<string, unknown>".to_owned(),
        };
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let inner = format!("{indent}  ");
    let mut out = "{\n".to_owned();
    for (key, property) in properties {
        comment(&mut out, property, &inner);
        let mark = if required.iter().any(|name| name == key) { "" } else { "?" };
        let _ = writeln!(out, "{inner}{key}{mark}: {};", shown(property, &inner));
    }
    out.push_str(indent);
    out.push('}');
    out
}

fn union(mut choices: Vec<String>) -> String {
    choices.dedup();
    choices.join(" | ")
}

fn grouped(part: &str) -> String {
    let mut depth = 0;
    let is_union = part.chars().any(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == '|' && depth == 0
    });
    if is_union { format!("({part})") } else { part.to_owned() }
}
