//! Tool schemas in the forms that servers demand. Strict sampling wants every
//! property required, optional ones nullable, nothing beyond what is named.

use serde_json::{Map, Value, json};

/// Schemas nested deeper are left alone; they come from hosts and extensions.
const MAX_DEPTH: usize = 64;

/// Keywords that have no strict form.
const NOT_CONVERTIBLE: [&str; 18] = [
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "unevaluatedItems",
];

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 16] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords whose value has schemas by name.
const NAMED_SCHEMAS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Shows `visit` every schema within a schema, and that one itself. Defaults, examples and other data are none.
pub fn walk(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    walk_from(schema, 0, visit);
}

fn walk_from(schema: &mut Value, depth: usize, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Array(members) => members.iter_mut().for_each(|member| walk_from(member, depth + 1, visit)),
        Value::Object(object) => {
            visit(object);
            for (keyword, value) in object {
                if SCHEMAS.contains(&keyword.as_str()) {
                    walk_from(value, depth + 1, visit);
                } else if let Value::Object(named) = value
                    && NAMED_SCHEMAS.contains(&keyword.as_str())
                {
                    named.values_mut().for_each(|schema| walk_from(schema, depth + 1, visit));
                }
            }
        }
        _ => {}
    }
}

/// Returns the strict form of a tool's parameters, if they have one.
pub fn strict(parameters: &Value) -> Option<Value> {
    let object = parameters.as_object()?;
    if object.contains_key("properties") {
        return convert(parameters, 0);
    }
    // A tool without parameters: nothing named, nothing allowed.
    (object.get("type")? == "object").then_some(())?;
    let mut object = object.clone();
    object.insert("properties".to_owned(), json!({}));
    convert(&Value::Object(object), 0)
}

fn convert(schema: &Value, depth: usize) -> Option<Value> {
    let object = schema.as_object()?;
    if depth > MAX_DEPTH || NOT_CONVERTIBLE.iter().any(|keyword| object.contains_key(*keyword)) {
        return None;
    }
    if is_mixed_union(object) {
        return None;
    }
    let mut strict = object.clone();
    if has_type(object, "object") || object.contains_key("properties") {
        convert_object(object, &mut strict, depth)?;
    }
    if let Some(items) = object.get("items") {
        strict.insert("items".to_owned(), convert(items, depth + 1)?);
    }
    if let Some(members) = object.get("anyOf") {
        let members = members.as_array()?.iter().map(|member| convert(member, depth + 1));
        strict.insert("anyOf".to_owned(), Value::Array(members.collect::<Option<_>>()?));
    }
    Some(Value::Object(strict))
}

fn convert_object(object: &Map<String, Value>, strict: &mut Map<String, Value>, depth: usize) -> Option<()> {
    if object.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return None;
    }
    // An object of which nothing is named may hold anything, which strict mode cannot say.
    let properties = object.get("properties")?.as_object()?;
    let required: Vec<&str> = match object.get("required") {
        Some(names) => names.as_array()?.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let mut converted = Map::new();
    for (name, property) in properties {
        let schema = convert(property, depth + 1)?;
        let is_optional = !required.contains(&name.as_str()) && !allows_null(&schema);
        converted.insert(name.clone(), if is_optional { json!({"anyOf": [schema, {"type": "null"}]}) } else { schema });
    }
    strict.insert("required".to_owned(), converted.keys().cloned().collect());
    strict.insert("properties".to_owned(), Value::Object(converted));
    strict.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(())
}

/// Whether a schema is a choice between several kinds of which one is an object or array.
fn is_mixed_union(object: &Map<String, Value>) -> bool {
    let is_structure = |kind: &Value| kind == "object" || kind == "array";
    if let Some(Value::Array(kinds)) = object.get("type") {
        let kinds: Vec<_> = kinds.iter().filter(|kind| *kind != "null").collect();
        return kinds.len() > 1 && kinds.into_iter().any(is_structure);
    }
    let Some(Value::Array(members)) = object.get("anyOf") else { return false };
    let members: Vec<_> = members.iter().filter(|member| member["type"] != "null").collect();
    members.len() > 1
        && members.into_iter().any(|member| is_structure(&member["type"]) || member.get("properties").is_some())
}

fn has_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

fn allows_null(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return false };
    let is_open = !["type", "anyOf", "enum", "const", "properties"].iter().any(|keyword| object.contains_key(*keyword));
    let in_enum = object.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(&Value::Null));
    let in_union = object.get("anyOf").and_then(Value::as_array).is_some_and(|members| members.iter().any(allows_null));
    is_open || in_enum || in_union || has_type(object, "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Option<Value>) {
        assert_eq!(strict(&schema), expected, "{schema}");
    }

    fn with(property: Value) -> Value {
        json!({"type":"object","properties":{"p": property},"required":["p"]})
    }

    #[test]
    fn every_property_becomes_required() {
        check(
            json!({"type":"object","required":["path"],"properties":{
                "path":{"type":"string"},
                "limit":{"type":"number","description":"Lines"},
                "mode":{"type":["string","null"]},
                "kind":{"anyOf":[{"type":"string"},{"type":"null"}]}}}),
            Some(json!({"type":"object","required":["path","limit","mode","kind"],"additionalProperties":false,
                "properties":{
                    "path":{"type":"string"},
                    "limit":{"anyOf":[{"type":"number","description":"Lines"},{"type":"null"}]},
                    "mode":{"type":["string","null"]},
                    "kind":{"anyOf":[{"type":"string"},{"type":"null"}]}}})),
        );
        check(
            json!({"type":"object"}),
            Some(json!({"type":"object","properties":{},"required":[],"additionalProperties":false})),
        );
    }

    #[test]
    fn nested_objects_are_strict_too() {
        let inner = json!({"type":"object","properties":{"x":{"type":"number"}}});
        check(
            with(json!({"type":"array","items":inner})),
            Some(json!({"type":"object","required":["p"],"additionalProperties":false,"properties":{"p":{
                "type":"array","items":{"type":"object","required":["x"],"additionalProperties":false,
                    "properties":{"x":{"anyOf":[{"type":"number"},{"type":"null"}]}}}}}})),
        );
    }

    #[test]
    fn what_strict_mode_cannot_say_has_no_strict_form() {
        for property in [
            json!({"$ref":"#/x"}),
            json!({"oneOf":[{"type":"string"}]}),
            json!({"type":"object"}),
            json!({"type":"object","properties":{},"additionalProperties":true}),
            json!({"type":"object","properties":{},"additionalProperties":{"type":"string"}}),
            json!({"type":"array","items":[{"type":"string"}]}),
            json!({"type":["object","string"],"properties":{}}),
            json!({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}),
            json!(true),
            json!({"type":"array","items":true}),
        ] {
            check(with(property), None);
        }
        check(json!({"type":"string"}), None);
        check(json!(true), None);
    }

    #[test]
    fn deep_schemas_are_refused() {
        let deep = (0..1000).fold(json!({"type":"string"}), |inner, _| json!({"type":"array","items":inner}));
        check(with(deep), None);
    }
}
