//! The committed schemas of the protocol, for holding frames against them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Which schema a frame is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Pi,
    Xcsh,
}

impl Dialect {
    fn document(self) -> &'static Value {
        static DOCUMENTS: OnceLock<[Value; 2]> = OnceLock::new();
        let read = |text: &str| serde_json::from_str(text).expect("the committed schema is JSON");
        let documents = DOCUMENTS.get_or_init(|| {
            [read(include_str!("../../../schema/pi.json")), read(include_str!("../../../schema/xcsh.json"))]
        });
        match self {
            Dialect::Pi => &documents[0],
            Dialect::Xcsh => &documents[1],
        }
    }
}

/// Says what is wrong with a frame that pith wrote; nothing if the schema of the dialect allows it.
pub fn problem(frame: &Value, dialect: Dialect) -> Option<String> {
    let definition = definition(frame);
    let Some(validator) = validator(&definition, dialect) else {
        return Some(format!("the schema has no {definition}"));
    };
    if validator.is_valid(frame) {
        return None;
    }
    let errors: Vec<String> =
        validator.iter_errors(frame).map(|error| format!("{}: {error}", error.instance_path())).collect();
    Some(format!("not a {definition}: {}", errors.join("; ")))
}

/// The definition a frame belongs to.
fn definition(frame: &Value) -> String {
    let pascal = |name: &str| -> String {
        let capital = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
        name.split('_').map(capital).collect()
    };
    let word = |key: &str| frame[key].as_str().unwrap_or_default();
    match word("type") {
        "response" if frame["success"] == true => pascal(word("command")) + "Response",
        "response" => "FailedResponse".to_owned(),
        "extension_ui_request" => "UiRequest".to_owned(),
        "host_tool_call" | "host_tool_cancel" => "HostToolFrame".to_owned(),
        "permission_request" | "permission_cancelled" => "PermissionFrame".to_owned(),
        "ready" => "Ready".to_owned(),
        "session" => "SessionHeader".to_owned(),
        "result" => "ResultRecord".to_owned(),
        event => pascal(event) + "Event",
    }
}

/// Compiled when first needed: a test meets few kinds of frames.
fn validator(definition: &str, dialect: Dialect) -> Option<Arc<Validator>> {
    type Known = HashMap<(Dialect, String), Arc<Validator>>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let key = (dialect, definition.to_owned());
    if let Some(validator) = known.get(&key) {
        return Some(Arc::clone(validator));
    }
    let all = &dialect.document()["$defs"];
    all.get(definition)?;
    let mut needed = Map::new();
    add_needed(definition, all, &mut needed);
    let schema = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": needed });
    let validator = Arc::new(jsonschema::draft202012::new(&schema).expect("the committed schema is one"));
    known.insert(key, Arc::clone(&validator));
    Some(validator)
}

/// Takes over a definition and those it refers to.
fn add_needed(definition: &str, all: &Value, needed: &mut Map<String, Value>) {
    if needed.contains_key(definition) {
        return;
    }
    needed.insert(definition.to_owned(), all[definition].clone());
    let mut open = vec![&all[definition]];
    while let Some(schema) = open.pop() {
        if let Some(to) = schema["$ref"].as_str() {
            add_needed(to.rsplit('/').next().unwrap_or_default(), all, needed);
        }
        match schema {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_frame_is_found() {
        let check = |frame: Value, is_right: bool| {
            let problem = problem(&frame, Dialect::Pi);
            assert_eq!(problem.is_none(), is_right, "{frame}: {problem:?}");
        };
        check(json!({"type": "agent_settled", "aborted": false}), true);
        check(json!({"type": "agent_settled", "aborted": "no"}), false);
        check(json!({"type": "agent_settled"}), false);
        check(json!({"type": "auto_compaction_start", "reason": "overflow", "action": "context-full"}), false);
        check(json!({"type": "response", "command": "abort", "success": true}), true);
        check(json!({"type": "response", "command": "abort", "success": false, "error": "no"}), false);
        let user = |block: Value| json!({"type": "message_end", "message": {"role": "user", "content": [block], "timestamp": 1}});
        check(user(json!({"type": "text", "text": "hi"})), true);
        check(user(json!({"type": "hologram"})), true);
        check(user(json!({"type": "text"})), false);
    }
}
