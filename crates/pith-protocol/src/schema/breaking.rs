//! What would break a host that was written for an older schema.

use serde_json::Value;

/// The differences between two documents that hosts of the older one may stumble over: something that was there is gone,
/// is another type, or a command needs what it did not need. Additions are none.
pub fn breaking_changes(released: &Value, current: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, schema) in released["$defs"].as_object().into_iter().flatten() {
        match current["$defs"].get(name) {
            None => found.push(format!("{name} is gone")),
            Some(now) => compare(name, schema, now, name.ends_with("Command"), &mut found),
        }
    }
    found
}

fn compare(path: &str, before: &Value, now: &Value, is_input: bool, found: &mut Vec<String>) {
    // What was said to be anything gets a type. That a command takes no less than before is for its own tests.
    if *before == Value::Bool(true) {
        return;
    }
    for key in ["type", "const", "$ref"] {
        if before.get(key) != now.get(key) {
            found.push(format!("{path}: {key} was {}, is {}", before[key], now[key]));
        }
    }
    for key in ["enum", "oneOf", "anyOf", "allOf"] {
        let empty = Vec::new();
        let members = |schema: &Value| schema[key].as_array().unwrap_or(&empty).clone();
        let left = members(now);
        for member in members(before).iter().map(bare).filter(|member| !left.iter().any(|kept| bare(kept) == *member)) {
            found.push(format!("{path}: {key} no longer has {member}"));
        }
    }
    if let (Some(before), Some(now)) = (before.get("items"), now.get("items")) {
        compare(&format!("{path}[]"), before, now, is_input, found);
    }
    let required = |schema: &Value, key: &str| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key))
    };
    for (key, property) in before["properties"].as_object().into_iter().flatten() {
        let here = format!("{path}.{key}");
        match now["properties"].get(key) {
            None => found.push(format!("{here} is gone")),
            Some(_) if !is_input && required(before, key) && !required(now, key) => {
                found.push(format!("{here} may be absent"));
            }
            Some(kept) => compare(&here, property, kept, is_input, found),
        }
    }
    for (key, _) in now["properties"].as_object().into_iter().flatten() {
        if is_input && required(now, key) && !required(before, key) {
            found.push(format!("{path}.{key} is required"));
        }
    }
}

/// A schema without the words about it.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| *key != "description")
            .map(|(key, value)| (key.clone(), bare(value)))
            .collect(),
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn additions_break_nothing_and_losses_do() {
        let schema = |properties: Value, required: Value| json!({"$defs": {"X": {"type": "object", "properties": properties, "required": required}}});
        let before = schema(json!({"a": {"type": "string"}, "b": {"enum": ["x", "y"]}}), json!(["a"]));
        let check = |now: Value, wanted: &[&str]| assert_eq!(breaking_changes(&before, &now), wanted, "{now}");
        check(
            schema(
                json!({"a": {"type": "string", "description": "new"}, "b": {"enum": ["x", "y", "z"]}, "c": {}}),
                json!(["a", "c"]),
            ),
            &[],
        );
        check(schema(json!({"b": {"enum": ["x", "y"]}}), json!([])), &["X.a is gone"]);
        check(
            schema(json!({"a": {"type": "string"}, "b": {"enum": ["x"]}}), json!([])),
            &["X.a may be absent", "X.b: enum no longer has \"y\""],
        );
        check(json!({"$defs": {}}), &["X is gone"]);
        let list = |items: Value| schema(json!({"a": {"type": "array", "items": items}}), json!([]));
        let named = list(json!({"$ref": "#/$defs/Y"}));
        assert!(breaking_changes(&list(json!(true)), &named).is_empty(), "a type where there was none");
        assert_eq!(breaking_changes(&named, &list(json!(true))).len(), 1);
    }

    #[test]
    fn a_command_must_not_need_more() {
        let schema = |required: Value| json!({"$defs": {"GoCommand": {"properties": {"a": {}}, "required": required}}});
        assert_eq!(breaking_changes(&schema(json!([])), &schema(json!(["a"]))), ["GoCommand.a is required"]);
        assert!(breaking_changes(&schema(json!(["a"])), &schema(json!([]))).is_empty());
    }
}
