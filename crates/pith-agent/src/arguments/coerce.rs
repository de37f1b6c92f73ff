//! Converts values of the wrong type whose meaning is clear.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Map, Number, Value};

use super::effort::Effort;
use crate::References;

/// How many schemas are looked at to say whether null is accepted.
const NULL_STEPS: u32 = 100;

/// Removes members that are `null` where the schema neither requires them nor accepts null.
pub(super) fn drop_nulls<'a>(references: &References<'a>, schema: &'a Value, value: &mut Value) {
    for schema in meanings(references, schema) {
        match value {
            Value::Object(members) => {
                let Some(properties) = schema.get("properties").and_then(Value::as_object) else { continue };
                let required = schema.get("required").and_then(Value::as_array);
                members.retain(|name, member| {
                    let Some(schema) = properties.get(name).filter(|_| member.is_null()) else { return true };
                    required.is_some_and(|names| names.iter().any(|wanted| wanted == name.as_str()))
                        || accepts_null(references, schema, &mut { NULL_STEPS })
                });
                for (name, member) in members {
                    if let Some(schema) = properties.get(name) {
                        drop_nulls(references, schema, member);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some((schema, _)) = item_schema(schema, index) {
                        drop_nulls(references, schema, item);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns a schema and what its references lead to, each once. A reference that may mean several places is not
/// followed.
fn meanings<'a>(references: &References<'a>, schema: &'a Value) -> Vec<&'a Value> {
    let (mut found, mut last) = (vec![schema], schema);
    while let Some(reference) = reference(last)
        && let [target] = references.targets(reference)[..]
        && !found.iter().any(|known| std::ptr::eq(*known, target))
    {
        found.push(target);
        last = target;
    }
    found
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

/// Whether the schema may accept null. After so many steps it is taken to, as by a reference that is not followed.
fn accepts_null<'a>(references: &References<'a>, schema: &'a Value, n_left: &mut u32) -> bool {
    let Value::Object(keywords) = schema else { return schema != &Value::Bool(false) };
    let Some(left) = n_left.checked_sub(1) else { return true };
    *n_left = left;
    if let Some(reference) = reference(schema)
        && let [target] = references.targets(reference)[..]
        && !accepts_null(references, target, n_left)
    {
        return false;
    }
    let types = declared_types(schema);
    let all = |keyword| list(schema, keyword).iter();
    (types.is_empty() || types.contains(&"null"))
        && keywords.get("const").is_none_or(Value::is_null)
        && keywords.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
        && all("allOf").all(|member| accepts_null(references, member, n_left))
        && ["anyOf", "oneOf"].into_iter().all(|keyword| {
            list(schema, keyword).is_empty() || all(keyword).any(|member| accepts_null(references, member, n_left))
        })
}

/// Walks a schema and the value it describes.
pub(super) struct Coercion<'a, F> {
    root: &'a Value,
    /// Returns the validator of the sub-schema at a pointer such as `#/properties/a/anyOf/0`.
    part: F,
    references: References<'a>,
    /// The pointers of all parts of the schema, by address; made for the first reference.
    places: OnceCell<HashMap<*const Value, String>>,
    /// The position in the schema.
    pointer: String,
    /// Where references of the value at hand have led: each is followed once.
    entered: Vec<*const Value>,
    /// Whether the value at hand must not be put into an array, because it is in one that was made for it.
    is_wrapped: bool,
    /// What may be spent on values that the estimate before the first validation has not seen.
    effort: Effort,
}

impl<'a, 'v, F: Fn(&str) -> Option<&'v Validator>> Coercion<'a, F> {
    pub(super) fn new(root: &'a Value, part: F) -> Self {
        Coercion {
            root,
            part,
            references: References::of(root),
            places: OnceCell::new(),
            pointer: "#".to_owned(),
            entered: Vec::new(),
            // Arguments are an object and stay one.
            is_wrapped: true,
            effort: Effort::default(),
        }
    }

    /// Converts `value` towards `schema` where that is safe; the result still has to be validated.
    pub(super) fn apply(&mut self, schema: &'a Value, value: &mut Value) {
        if let Some(reference) = reference(schema) {
            self.follow(reference, value);
        }
        for (index, member) in list(schema, "allOf").iter().enumerate() {
            self.at(&["allOf", &index.to_string()], |walk| walk.apply(member, value));
        }
        for keyword in ["anyOf", "oneOf"] {
            self.union(keyword, list(schema, keyword), value);
        }
        let types = declared_types(schema);
        if !types.iter().any(|name| matches(name, value)) {
            if let Some(converted) = types.iter().find_map(|name| convert(name, value)) {
                *value = converted;
            } else if types.contains(&"array") {
                return self.wrap(schema, value);
            }
        }
        if !(value.is_object() || value.is_array()) {
            if let Some(choice) = choice(schema, value) {
                *value = choice.clone();
            }
            return;
        }
        let (entered, is_wrapped) = (std::mem::take(&mut self.entered), std::mem::take(&mut self.is_wrapped));
        match value {
            Value::Object(members) => self.members(schema, members),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.item(schema, index, item);
                }
            }
            _ => {}
        }
        (self.entered, self.is_wrapped) = (entered, is_wrapped);
    }

    fn item(&mut self, schema: &'a Value, index: usize, item: &mut Value) {
        if let Some((schema, place)) = item_schema(schema, index) {
            let steps: Vec<&str> = place.iter().map(String::as_str).collect();
            self.at(&steps, |walk| walk.apply(schema, item));
        }
    }

    /// Makes a single value the only item of an array, if that then fits.
    fn wrap(&mut self, schema: &'a Value, value: &mut Value) {
        // The text of an array means its items, not itself, and null means nothing.
        let is_array_text = value.as_str().is_some_and(|text| text.trim_start().starts_with('['));
        if value.is_null() || is_array_text || self.is_wrapped {
            return;
        }
        let mut item = value.clone();
        self.is_wrapped = true;
        let is_bearable = self.effort.covers(&self.references, schema, &Value::Array(vec![item.clone()]));
        if is_bearable {
            self.item(schema, 0, &mut item);
        }
        self.is_wrapped = false;
        let wrapped = Value::Array(vec![item]);
        if is_bearable && self.accepts(&wrapped) {
            *value = wrapped;
        }
    }

    /// Converts the value for what a reference leads to; if that may be several places, for the first that accepts it.
    fn follow(&mut self, reference: &str, value: &mut Value) {
        let mut targets = self.references.targets(reference);
        if let [target] = targets[..] {
            return self.enter(target, |walk| walk.apply(target, value));
        }
        // Inside of a part with an id of its own, what is in there is meant.
        targets.sort_by_key(|target| Reverse(self.n_shared_steps(target)));
        for target in targets {
            let mut candidate = value.clone();
            let mut accepts = false;
            self.enter(target, |walk| {
                walk.apply(target, &mut candidate);
                accepts = walk.accepts(&candidate);
            });
            if accepts {
                *value = candidate;
                return;
            }
        }
    }

    /// How much of the way to a part of the schema is that to the position.
    fn n_shared_steps(&self, part: &Value) -> usize {
        let place = self.places.get_or_init(|| places(self.root)).get(&std::ptr::from_ref(part));
        let steps = place.into_iter().flat_map(|place| place.split('/')).zip(self.pointer.split('/'));
        steps.take_while(|(one, other)| one == other).count()
    }

    fn enter(&mut self, target: &'a Value, visit: impl FnOnce(&mut Self)) {
        let address: *const Value = target;
        let places = self.places.get_or_init(|| places(self.root));
        let Some(place) = places.get(&address).filter(|_| !self.entered.contains(&address)) else { return };
        let outer = std::mem::replace(&mut self.pointer, place.clone());
        self.entered.push(address);
        visit(self);
        self.entered.pop();
        self.pointer = outer;
    }

    fn members(&mut self, schema: &'a Value, members: &mut Map<String, Value>) {
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
    fn union(&mut self, keyword: &str, members: &'a [Value], value: &mut Value) {
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
            push_step(&mut self.pointer, step);
        }
        let result = visit(self);
        self.pointer.truncate(length);
        result
    }
}

fn push_step(pointer: &mut String, step: &str) {
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
}

/// Returns the pointers of all parts of a schema that may be schemas themselves, by their address.
fn places(root: &Value) -> HashMap<*const Value, String> {
    let mut found = HashMap::new();
    let mut left = vec![(root, "#".to_owned())];
    while let Some((part, pointer)) = left.pop() {
        let mut add = |step: &str, part| {
            let mut pointer = pointer.clone();
            push_step(&mut pointer, step);
            left.push((part, pointer));
        };
        match part {
            Value::Object(members) => members.iter().for_each(|(name, part)| add(name, part)),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, part)| add(&index.to_string(), part)),
            _ => continue,
        }
        found.insert(std::ptr::from_ref(part), pointer);
    }
    found
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

/// Returns the only constant of the schema that is written like the value, if the value itself is none of them.
fn choice<'s>(schema: &'s Value, value: &Value) -> Option<&'s Value> {
    let constants = || list(schema, "enum").iter().chain(schema.get("const"));
    let written = |value: &Value| value.as_str().map_or_else(|| pith_protocol::json::to_string(value), str::to_owned);
    let mut alike = constants().filter(|constant| written(constant) == written(value));
    let found = alike.next().filter(|_| alike.next().is_none())?;
    (!constants().any(|constant| constant == value)).then_some(found)
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
