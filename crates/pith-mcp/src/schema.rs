//! Turns the input schema of a tool into one that models accept. Schemas come from anywhere, so everything is bounded.

use serde_json::{Map, Value, json};

/// A recursive reference is followed this often, then anything goes.
const MAX_REFERENCES: usize = 8;
/// Deeper schemas are cut.
const MAX_DEPTH: usize = 64;
/// A larger schema costs more than its tool is worth.
pub const MAX_BYTES: usize = 64 * 1024;

/// Keys that say nothing to a model.
const DROPPED: [&str; 7] = ["$schema", "$id", "$comment", "$anchor", "examples", "$defs", "definitions"];

/// Prepares a schema for the model; `Err` says why the tool cannot be offered.
pub fn prepare(schema: &Value) -> Result<Value, String> {
    let Value::Object(root) = schema else { return Err("its input schema is no object".to_owned()) };
    let prepared = Preparation { root }.object(root, 0, 0)?;
    let mut prepared = merge_alternatives(prepared);
    prepared.insert("type".to_owned(), json!("object"));
    if !prepared.get("properties").is_some_and(Value::is_object) {
        prepared.insert("properties".to_owned(), json!({}));
    }
    let prepared = Value::Object(prepared);
    match prepared.to_string().len() {
        size if size > MAX_BYTES => Err(format!("its input schema has {size} bytes, more than {MAX_BYTES}")),
        _ => Ok(prepared),
    }
}

struct Preparation<'a> {
    root: &'a Map<String, Value>,
}

impl Preparation<'_> {
    fn value(&self, value: &Value, depth: usize, n_references: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Ok(json!({}));
        }
        match value {
            Value::Object(object) => self.object(object, depth, n_references).map(Value::Object),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, depth + 1, n_references));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            other => Ok(other.clone()),
        }
    }

    fn object(
        &self,
        object: &Map<String, Value>,
        depth: usize,
        n_references: usize,
    ) -> Result<Map<String, Value>, String> {
        let mut prepared = match object.get("$ref").and_then(Value::as_str) {
            Some(_) if n_references >= MAX_REFERENCES => Map::new(),
            Some(reference) => match self.target(reference)? {
                Value::Object(target) => self.object(target, depth + 1, n_references + 1)?,
                _ => Map::new(),
            },
            None => Map::new(),
        };
        for (key, value) in object {
            if key == "$ref" || DROPPED.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let value = match (key.as_str(), value) {
                // Names of properties are no keywords.
                ("properties" | "patternProperties", Value::Object(members)) => {
                    let member = |(name, member): (&String, &Value)| {
                        Ok((name.clone(), self.value(member, depth + 2, n_references)?))
                    };
                    Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
                }
                ("enum" | "const" | "default" | "required", value) => value.clone(),
                (_, value) => self.value(value, depth + 1, n_references)?,
            };
            prepared.insert(key.clone(), value);
        }
        Ok(prepared)
    }

    fn target(&self, reference: &str) -> Result<&Value, String> {
        let missing = || format!("its input schema refers to {reference}, which is not in it");
        let pointer = reference.strip_prefix('#').ok_or_else(missing)?;
        let mut steps = pointer.split('/');
        let Some("") = steps.next() else { return Err(missing()) };
        let unescape = |step: &str| step.replace("~1", "/").replace("~0", "~");
        let Some(first) = steps.next() else { return Err(missing()) };
        let mut target = self.root.get(&unescape(first)).ok_or_else(missing)?;
        for step in steps {
            let step = unescape(step);
            let next = match target {
                Value::Object(members) => members.get(&step),
                Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            target = next.ok_or_else(missing)?;
        }
        Ok(target)
    }
}

/// Merges alternatives at the top, which models refuse, into one object. What all alternatives require stays required.
fn merge_alternatives(mut schema: Map<String, Value>) -> Map<String, Value> {
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(members)) = schema.remove(key) else { continue };
        let mut required: Option<Vec<Value>> = None;
        for member in members.iter().filter_map(Value::as_object) {
            let properties = schema.entry("properties").or_insert_with(|| json!({}));
            if let (Some(all), Some(own)) =
                (properties.as_object_mut(), member.get("properties").and_then(Value::as_object))
            {
                for (name, property) in own {
                    all.entry(name.clone()).or_insert_with(|| property.clone());
                }
            }
            let own = member.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            required = Some(match required {
                None => own,
                Some(so_far) if key == "allOf" => so_far.into_iter().chain(own).collect(),
                Some(so_far) => so_far.into_iter().filter(|name| own.contains(name)).collect(),
            });
        }
        let required = required.unwrap_or_default();
        if let Value::Array(all) = schema.entry("required").or_insert_with(|| json!([])) {
            for name in required {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value) {
        assert_eq!(prepare(&schema), Ok(expected));
    }

    #[test]
    fn missing_parts_are_filled_in_and_noise_is_removed() {
        check(json!({}), json!({"type": "object", "properties": {}}));
        check(
            json!({"$schema": "x", "x-mcp-header": true, "type": "object",
                "properties": {"x-a": {"type": "string", "examples": [1], "$comment": "c"}, "examples": {}}}),
            json!({"type": "object", "properties": {"x-a": {"type": "string"}, "examples": {}}}),
        );
    }

    #[test]
    fn local_references_are_resolved() {
        check(
            json!({"$defs": {"p": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/p", "description": "d"}}}),
            json!({"properties": {"a": {"type": "string", "description": "d"}}, "type": "object"}),
        );
        let remote = json!({"properties": {"a": {"$ref": "https://example.com/s.json"}}});
        assert_eq!(
            prepare(&remote),
            Err("its input schema refers to https://example.com/s.json, which is not in it".to_owned())
        );
        assert!(prepare(&json!({"properties": {"a": {"$ref": "#/$defs/none"}}})).is_err());
    }

    #[test]
    fn recursion_ends() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
        let text = prepare(&json!({"$defs": {"node": node}, "$ref": "#/$defs/node"})).expect("usable").to_string();
        assert_eq!(text.matches("next").count(), MAX_REFERENCES, "{text}");
        assert!(text.contains(r#""next":{}"#));
    }

    #[test]
    fn alternatives_at_the_top_become_one_object() {
        check(
            json!({"anyOf": [
                {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
                {"properties": {"a": {}, "c": {}}, "required": ["a"]}]}),
            json!({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a"], "type": "object"}),
        );
    }

    #[test]
    fn what_is_no_schema_or_too_large_is_refused() {
        assert_eq!(prepare(&json!([])), Err("its input schema is no object".to_owned()));
        let large = json!({"description": "x".repeat(MAX_BYTES)});
        assert!(prepare(&large).expect_err("too large").starts_with("its input schema has 6"));
    }
}
