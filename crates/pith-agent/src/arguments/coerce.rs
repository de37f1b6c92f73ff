//! Converts values of the wrong type whose meaning is clear.
//!
//! References are not followed: values described by a `$ref` are validated, but never changed.

use jsonschema::Validator;
use serde_json::{Map, Number, Value};

/// Removes members that are `null` where the schema neither requires them nor accepts null.
pub(super) fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            let required = schema.get("required").and_then(Value::as_array);
            members.retain(|name, member| {
                let Some(schema) = properties.get(name) else { return true };
                let is_required = required.is_some_and(|names| names.iter().any(|wanted| wanted == name.as_str()));
                !member.is_null() || is_required || accepts_null(schema)
            });
            for (name, member) in members {
                if let Some(schema) = properties.get(name) {
                    drop_nulls(schema, member);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some((schema, _)) = item_schema(schema, index) {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// Whether the schema may accept null; a reference, which is not followed, might.
fn accepts_null(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return schema != &Value::Bool(false) };
    let any = |keyword: &str| {
        keywords.get(keyword).and_then(Value::as_array).is_none_or(|members| members.iter().any(accepts_null))
    };
    if keywords.contains_key("$ref") {
        return true;
    }
    let types = declared_types(schema);
    (types.is_empty() || types.contains(&"null"))
        && keywords.get("const").is_none_or(Value::is_null)
        && keywords.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
        && keywords.get("allOf").and_then(Value::as_array).is_none_or(|all| all.iter().all(accepts_null))
        && any("anyOf")
        && any("oneOf")
}

/// Walks a schema and the value it describes.
pub(super) struct Coercion<F> {
    /// Returns the validator of the sub-schema at a pointer such as `#/properties/a/anyOf/0`.
    part: F,
    /// The position in the schema.
    pointer: String,
}

impl<'v, F: Fn(&str) -> Option<&'v Validator>> Coercion<F> {
    pub(super) fn new(part: F) -> Self {
        Coercion { part, pointer: "#".to_owned() }
    }

    /// Converts `value` towards `schema` where that is safe; the result still has to be validated.
    pub(super) fn apply(&mut self, schema: &Value, value: &mut Value) {
        for (index, member) in list(schema, "allOf").iter().enumerate() {
            self.at(&["allOf", &index.to_string()], |walk| walk.apply(member, value));
        }
        for keyword in ["anyOf", "oneOf"] {
            self.union(keyword, list(schema, keyword), value);
        }
        let types = declared_types(schema);
        if !types.iter().any(|name| matches(name, value))
            && let Some(converted) = types.iter().find_map(|name| convert(name, value))
        {
            *value = converted;
        }
        match value {
            Value::Object(members) => self.members(schema, members),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some((schema, place)) = item_schema(schema, index) {
                        let steps: Vec<&str> = place.iter().map(String::as_str).collect();
                        self.at(&steps, |walk| walk.apply(schema, item));
                    }
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, schema: &Value, members: &mut Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        // With `patternProperties`, only the validator knows which names are additional.
        let others = schema
            .get("additionalProperties")
            .filter(|rest| rest.is_object() && schema.get("patternProperties").is_none());
        for (name, member) in members {
            if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                self.at(&["properties", name], |walk| walk.apply(schema, member));
            } else if let Some(schema) = others {
                self.at(&["additionalProperties"], |walk| walk.apply(schema, member));
            }
        }
    }

    /// Leaves a value that some member accepts; otherwise converts it for the first member that accepts the result.
    fn union(&mut self, keyword: &str, members: &[Value], value: &mut Value) {
        let places: Vec<String> = (0..members.len()).map(|index| index.to_string()).collect();
        if places.iter().any(|place| self.at(&[keyword, place], |walk| walk.accepts(value))) {
            return;
        }
        for (member, place) in members.iter().zip(&places) {
            let mended = self.at(&[keyword, place], |walk| {
                let mut candidate = value.clone();
                walk.apply(member, &mut candidate);
                walk.accepts(&candidate).then_some(candidate)
            });
            if let Some(mended) = mended {
                *value = mended;
                return;
            }
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        (self.part)(&self.pointer).is_some_and(|validator| validator.is_valid(value))
    }

    fn at<T>(&mut self, steps: &[&str], visit: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        for step in steps {
            self.pointer.push('/');
            self.pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        let result = visit(self);
        self.pointer.truncate(length);
        result
    }
}

/// The schema of an array item and its place below the array's schema; handles both spellings of tuples.
fn item_schema(schema: &Value, index: usize) -> Option<(&Value, Vec<String>)> {
    for keyword in ["prefixItems", "items"] {
        if let Some(schema) = list(schema, keyword).get(index) {
            return Some((schema, vec![keyword.to_owned(), index.to_string()]));
        }
    }
    let rest = schema.get("items").filter(|items| items.is_object())?;
    Some((rest, vec!["items".to_owned()]))
}

fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn declared_types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn matches(type_name: &str, value: &Value) -> bool {
    match type_name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(is_integral),
        _ => false,
    }
}

/// Converts the value to the named type, if that is a change and loses nothing.
fn convert(type_name: &str, value: &Value) -> Option<Value> {
    match (type_name, value) {
        ("number" | "integer", Value::Null) => Some(Value::from(0)),
        ("number" | "integer", Value::Bool(yes)) => Some(Value::from(u8::from(*yes))),
        ("number", Value::String(text)) => number(text).map(Value::Number),
        ("integer", Value::String(text)) => number(text).filter(is_integral).map(Value::Number),
        ("boolean", Value::Null) => Some(Value::Bool(false)),
        ("boolean", Value::String(text)) => text.parse().ok().map(Value::Bool),
        ("boolean", Value::Number(number)) => match number.as_f64() {
            Some(1.0) => Some(Value::Bool(true)),
            Some(0.0) => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Null) => Some(Value::from("")),
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(pith_protocol::json::to_string(value))),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        _ => None,
    }
}

fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    // `f64` also parses words such as "infinity"; those are not finite.
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
    let is_exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    if is_exact { Some((float as i64).into()) } else { Number::from_f64(float) }
}

fn is_integral(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}
