//! Turns the input schema of a tool into one that models accept. Schemas come from anywhere, so everything is bounded.

use pith_agent::References;
use serde_json::{Map, Value, json};

/// How many references are followed one after the other, then anything goes. The next number counts where the one
/// before makes a schema too large, because references multiply.
const MAX_REFERENCES: [usize; 5] = [8, 4, 2, 1, 0];
/// Deeper schemas are cut.
const MAX_DEPTH: usize = 64;
/// A larger schema costs more than its tool is worth.
pub const MAX_BYTES: usize = 64 * 1024;

/// A property that differs in more alternatives at the top may be anything.
const MAX_ALTERNATIVES: usize = 200;

/// Keys that say nothing to a model.
const DROPPED: [&str; 7] = ["$schema", "$id", "$comment", "$anchor", "examples", "$defs", "definitions"];

/// Prepares a schema for the model; `Err` says why the tool cannot be offered.
pub fn prepare(schema: &Value) -> Result<Value, String> {
    let Value::Object(root) = schema else { return Err("its input schema is no object".to_owned()) };
    let references = References::of(schema);
    for max_references in MAX_REFERENCES {
        let mut preparation = Preparation { references: &references, max_references, n_bytes_left: MAX_BYTES };
        let mut prepared = match preparation.object(root, 0, 0) {
            Ok(prepared) => merge_alternatives(prepared),
            Err(Unusable::TooLarge) => continue,
            Err(Unusable::RefersTo(reference)) => {
                return Err(format!("its input schema refers to {reference}, which is not in it"));
            }
        };
        prepared.insert("type".to_owned(), json!("object"));
        if !prepared.get("properties").is_some_and(Value::is_object) {
            prepared.insert("properties".to_owned(), json!({}));
        }
        let prepared = Value::Object(prepared);
        if size(&prepared) <= MAX_BYTES {
            return Ok(prepared);
        }
    }
    Err(format!("its input schema has more than {MAX_BYTES} bytes"))
}

/// Returns how many bytes a value has as JSON.
pub fn size(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("JSON values always serialize");
    count.0
}

struct Preparation<'a> {
    references: &'a References<'a>,
    max_references: usize,
    /// What the prepared schema may still take. Every step of the preparation takes some of it, so that it ends.
    n_bytes_left: usize,
}

/// Why a preparation has no result.
enum Unusable {
    TooLarge,
    /// Something that is not in the schema.
    RefersTo(String),
}

impl<'a> Preparation<'a> {
    fn value(&mut self, value: &Value, depth: usize, n_references: usize) -> Result<Value, Unusable> {
        if depth > MAX_DEPTH {
            self.take("{}".len())?;
            return Ok(json!({}));
        }
        match value {
            Value::Object(object) => self.object(object, depth, n_references).map(Value::Object),
            Value::Array(items) => {
                self.take("[]".len())?;
                let items = items.iter().map(|item| self.value(item, depth + 1, n_references));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            other => self.copy(other),
        }
    }

    fn object(
        &mut self,
        object: &Map<String, Value>,
        depth: usize,
        n_references: usize,
    ) -> Result<Map<String, Value>, Unusable> {
        self.take("{}".len())?;
        let mut prepared = match object.get("$ref").and_then(Value::as_str) {
            Some(_) if n_references >= self.max_references => Map::new(),
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
            self.take(key.len())?;
            let value = match (key.as_str(), value) {
                // Names of properties are no keywords.
                ("properties" | "patternProperties", Value::Object(members)) => {
                    let member = |(name, member): (&String, &Value)| {
                        self.take(name.len())?;
                        Ok((name.clone(), self.value(member, depth + 2, n_references)?))
                    };
                    Value::Object(members.iter().map(member).collect::<Result<_, Unusable>>()?)
                }
                ("enum" | "const" | "default" | "required", value) => self.copy(value)?,
                (_, value) => self.value(value, depth + 1, n_references)?,
            };
            prepared.insert(key.clone(), value);
        }
        Ok(prepared)
    }

    fn copy(&mut self, value: &Value) -> Result<Value, Unusable> {
        self.take(size(value))?;
        Ok(value.clone())
    }

    fn take(&mut self, n_bytes: usize) -> Result<(), Unusable> {
        self.n_bytes_left = self.n_bytes_left.checked_sub(n_bytes).ok_or(Unusable::TooLarge)?;
        Ok(())
    }

    /// Returns what a reference refers to; anything goes where that is not to be found.
    fn target(&self, reference: &str) -> Result<&'a Value, Unusable> {
        match self.references.targets(reference).first() {
            Some(target) => Ok(target),
            None if reference.starts_with('#') => Ok(&Value::Bool(true)),
            None => Err(Unusable::RefersTo(reference.to_owned())),
        }
    }
}

/// Merges alternatives at the top, which models refuse, into one object, and those within them. What all alternatives
/// require stays required.
fn merge_alternatives(mut schema: Map<String, Value>) -> Map<String, Value> {
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(members)) = schema.remove(key) else { continue };
        let members = members.into_iter().filter_map(|member| match member {
            // No deeper than `MAX_DEPTH`: the schema was cut there.
            Value::Object(member) => Some(merge_alternatives(member)),
            _ => None,
        });
        let mut required: Option<Vec<Value>> = None;
        for mut member in members {
            if let Some(Value::Object(own)) = member.remove("properties") {
                let properties = schema.entry("properties").or_insert_with(|| json!({}));
                for (name, property) in own {
                    allow(properties, name, property);
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

/// Adds a property to those of an object; one that is there already may be either.
fn allow(properties: &mut Value, name: String, property: Value) {
    let Value::Object(properties) = properties else { return };
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, property);
        return;
    };
    let mut either = alternatives(known.take());
    for alternative in alternatives(property) {
        if !either.contains(&alternative) {
            either.push(alternative);
        }
    }
    if either.len() > MAX_ALTERNATIVES {
        either = vec![json!({})];
    }
    *known = if either.len() == 1 { either.remove(0) } else { json!({ "anyOf": either }) };
}

/// Takes apart what [`allow`] has put together.
fn alternatives(property: Value) -> Vec<Value> {
    match property {
        Value::Object(mut only) if only.len() == 1 => match only.remove("anyOf") {
            Some(Value::Array(either)) => either,
            Some(other) => vec![json!({ "anyOf": other })],
            None => vec![Value::Object(only)],
        },
        property => vec![property],
    }
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
        for reference in ["#/%24defs/n%20n", "#here"] {
            check(
                json!({"$defs": {"n n": {"$anchor": "here", "type": "string"}}, "properties": {"a": {"$ref": reference}}}),
                json!({"properties": {"a": {"type": "string"}}, "type": "object"}),
            );
        }
        for reference in ["#/$defs/none", "#none"] {
            let missing = json!({"properties": {"a": {"$ref": reference, "description": "d"}}});
            check(missing, json!({"properties": {"a": {"description": "d"}}, "type": "object"}));
        }
        let root = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "name": {"type": "string"}}});
        let text = prepare(&root).expect("usable").to_string();
        assert_eq!(text.matches("name").count(), MAX_REFERENCES[0] + 1, "{text}");
    }

    #[test]
    fn recursion_ends() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
        let text = prepare(&json!({"$defs": {"node": node}, "$ref": "#/$defs/node"})).expect("usable").to_string();
        assert_eq!(text.matches("next").count(), MAX_REFERENCES[0], "{text}");
        assert!(text.contains(r#""next":{}"#));
    }

    #[test]
    fn references_that_multiply_are_followed_less_far() {
        let text = |schema: Value| {
            let prepared = prepare(&schema).expect("usable").to_string();
            assert!(prepared.len() <= MAX_BYTES);
            prepared
        };
        let node = json!({"$ref": "#/$defs/node"});
        let properties = |n: usize| -> Map<String, Value> { (0..n).map(|k| (format!("p{k}"), node.clone())).collect() };
        // Each level has twice, seven times or forty times as many nodes as the one above.
        for (n_properties, n_levels) in [(2, 8), (7, 4), (40, 2), (2000, 1)] {
            let schema = json!({"$defs": {"node": {"properties": properties(n_properties)}}, "$ref": "#/$defs/node"});
            let text = text(schema);
            let nesting = (0..text.len()).fold((0, 0), |(depth, most), at| match text.as_bytes()[at] {
                b'{' => (depth + 1, most.max(depth + 1)),
                b'}' => (depth - 1, most),
                _ => (depth, most),
            });
            assert_eq!(nesting.1, 2 * n_levels + 1, "{n_properties}");
        }
        // Without recursion.
        let level = |level: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            (
                format!("d{level}"),
                json!({"properties": {"a": next, "b": next, "c": next, "d": next, "e": next, "f": next}}),
            )
        };
        let levels: Map<String, Value> = (0..8).map(level).collect();
        text(json!({"$defs": levels, "$ref": "#/$defs/d0"}));
        // What filters look like.
        let all = json!({"type": "array", "items": node});
        let filter = json!({"properties": {"and": all, "or": all, "not": node, "field": {"type": "string"}}});
        let filter = text(json!({"$defs": {"node": filter}, "properties": {"filter": node}}));
        assert!(filter.contains(r#""field":{"type":"string"}"#), "{filter}");
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
    fn alternatives_of_a_property_are_all_declared() {
        let kind =
            |kind: &str| json!({"properties": {"k": {"const": kind}, "a": {"type": "string"}}, "required": ["k"]});
        check(
            json!({"oneOf": [kind("one"), kind("two"), kind("three"), kind("one")]}),
            json!({"type": "object", "required": ["k"], "properties": {
                "k": {"anyOf": [{"const": "one"}, {"const": "two"}, {"const": "three"}]}, "a": {"type": "string"}}}),
        );
    }

    #[test]
    fn alternatives_within_alternatives_are_merged() {
        let with = |name: &str| json!({"properties": {name: {"type": "string"}}, "required": [name]});
        check(
            json!({"allOf": [with("a"), {"anyOf": [with("b"), {"oneOf": [with("c"), with("d")]}]}]}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"},
                "b": {"type": "string"}, "c": {"type": "string"}, "d": {"type": "string"}}}),
        );
    }

    #[test]
    fn what_is_no_schema_or_too_large_is_refused() {
        assert_eq!(prepare(&json!([])), Err("its input schema is no object".to_owned()));
        let large = json!({"description": "x".repeat(MAX_BYTES)});
        assert_eq!(prepare(&large), Err("its input schema has more than 65536 bytes".to_owned()));
    }
}
