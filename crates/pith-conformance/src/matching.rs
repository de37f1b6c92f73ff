//! Compares a frame with what a transcript expects.
//!
//! Members that a pattern does not list are free; arrays must have the same length. In strings `[ID]` stands for an
//! identifier, `[ID:name]` for one that is remembered under that name or was remembered before, `[TIME]` for a moment,
//! `[CWD]` and `[HOME]` for the host's directories. `"[TIME]"` alone also matches a number, `"[ANY]"` matches
//! everything and `"[ABSENT]"` a missing member; `"[ANY:name]"` is remembered as `[ID:name]` is. `{"[SOME]": x}` matches
//! an array with an item that `x` matches.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Number, Value};

use crate::home::TempHome;

/// The values of placeholders.
#[derive(Clone, Debug, Default)]
pub struct Placeholders {
    cwd: String,
    home: String,
    /// What was remembered, by the whole placeholder, such as `[ID:call]`.
    named: BTreeMap<String, String>,
}

impl Placeholders {
    /// Creates the values for a test home.
    pub fn new(home: &TempHome) -> Self {
        Placeholders {
            cwd: home.work().display().to_string(),
            home: home.home().display().to_string(),
            named: BTreeMap::new(),
        }
    }

    /// Replaces placeholders by their values.
    pub fn fill(&self, text: &str) -> String {
        let text = text.replace("[CWD]", &self.cwd).replace("[HOME]", &self.home);
        self.named.iter().fold(text, |text, (name, value)| text.replace(name.as_str(), value))
    }

    /// Remembers the values of named placeholders in a matched pattern; the first value stays.
    pub fn remember(&mut self, pattern: &Value, frame: &Value) {
        match (pattern, frame) {
            (Value::Object(members), Value::Object(frame)) => {
                for (name, member) in members {
                    self.remember(member, frame.get(name).unwrap_or(&Value::Null));
                }
            }
            (Value::Array(items), Value::Array(frame)) => {
                items.iter().zip(frame).for_each(|(item, frame)| self.remember(item, frame));
            }
            (Value::String(name), Value::String(value)) if is_named(name) => {
                self.named.entry(name.clone()).or_insert_with(|| value.clone());
            }
            _ => {}
        }
    }

    /// Replaces directories by their placeholders.
    fn hide(&self, text: &str) -> String {
        let hide = |text: &str, place: &str, name: &str| {
            if place.is_empty() { text.to_owned() } else { text.replace(place, name) }
        };
        hide(&hide(text, &self.cwd, "[CWD]"), &self.home, "[HOME]")
    }
}

/// Compares `frame` with `pattern`; the error says where they differ.
pub fn matches(pattern: &Value, frame: &Value, placeholders: &Placeholders) -> Result<(), String> {
    compare(pattern, Some(frame), placeholders, &mut Vec::new())
}

fn compare(
    pattern: &Value,
    actual: Option<&Value>,
    placeholders: &Placeholders,
    path: &mut Vec<String>,
) -> Result<(), String> {
    let differs = |path: &[String], wanted: &str| {
        let place = if path.is_empty() { "the frame".to_owned() } else { path.join(".") };
        let got = actual.map_or_else(|| "nothing".to_owned(), Value::to_string);
        Err(format!("{place}: wanted {wanted}, got {got}"))
    };
    let actual = match (pattern.as_str(), actual) {
        (Some("[ANY]"), Some(_)) | (Some("[ABSENT]"), None) | (Some("[TIME]"), Some(Value::Number(_))) => return Ok(()),
        (_, Some(actual)) => actual,
        (_, None) => return differs(path, &pattern.to_string()),
    };
    match (pattern, actual) {
        (Value::Object(members), Value::Array(actual)) if members.contains_key("[SOME]") => {
            let is_wanted = |item| compare(&members["[SOME]"], Some(item), placeholders, &mut Vec::new()).is_ok();
            if actual.iter().any(is_wanted) { Ok(()) } else { differs(path, &format!("an item {}", members["[SOME]"])) }
        }
        (Value::Object(members), Value::Object(actual)) => {
            for (name, member) in members {
                path.push(name.clone());
                compare(member, actual.get(name), placeholders, path)?;
                path.pop();
            }
            Ok(())
        }
        (Value::Array(items), Value::Array(actual)) if items.len() == actual.len() => {
            for (index, (item, actual)) in items.iter().zip(actual).enumerate() {
                path.push(index.to_string());
                compare(item, Some(actual), placeholders, path)?;
                path.pop();
            }
            Ok(())
        }
        (Value::Array(items), Value::Array(_)) => differs(path, &format!("{} items", items.len())),
        (Value::String(text), Value::String(actual)) if text_matches(text, actual, placeholders) => Ok(()),
        (Value::Number(number), Value::Number(actual)) if is_same(number, actual) => Ok(()),
        (Value::Bool(_) | Value::Null, _) if pattern == actual => Ok(()),
        _ => differs(path, &pattern.to_string()),
    }
}

/// Whether two numbers are the same but for the last digits of a sum.
fn is_same(wanted: &Number, actual: &Number) -> bool {
    match (wanted.as_f64(), actual.as_f64()) {
        (Some(wanted), Some(actual)) => (wanted - actual).abs() <= wanted.abs() * 1e-12,
        _ => wanted == actual,
    }
}

/// Whether a text is nothing but a placeholder with a name.
fn is_named(text: &str) -> bool {
    (text.starts_with("[ID:") || text.starts_with("[ANY:")) && text.ends_with(']')
}

fn text_matches(pattern: &str, actual: &str, placeholders: &Placeholders) -> bool {
    if !pattern.contains('[') {
        return pattern == actual;
    }
    let filled = placeholders.fill(pattern);
    // A name without a value yet stands for any identifier.
    let filled = match filled.as_str() {
        name if !is_named(name) => filled,
        name if name.starts_with("[ID:") => "[ID]".to_owned(),
        _ => "[ANY]".to_owned(),
    };
    let expression = regex::escape(&filled)
        .replace(r"\[ID\]", "[0-9A-Za-z_-]+")
        .replace(r"\[TIME\]", "[0-9TZ:.-]+")
        .replace(r"\[ANY\]", "(?s:.*)");
    Regex::new(&format!("^(?:{expression})$")).is_ok_and(|expression| expression.is_match(actual))
}

/// Turns a frame into an expectation: the members of `pattern`, or else those that identify the frame, with volatile
/// values hidden.
pub fn project(frame: &Value, pattern: Option<&Value>, placeholders: &Placeholders) -> Value {
    match (frame, pattern) {
        (Value::Object(members), Some(Value::Object(wanted))) => {
            let names = members.keys().filter(|name| *name == "type" || wanted.contains_key(*name));
            pick(members, names.map(String::as_str), |name, value| {
                project_member(name, value, wanted.get(name), placeholders)
            })
        }
        (Value::Object(members), None) => {
            const NAMING: [&str; 12] = [
                "id",
                "type",
                "command",
                "success",
                "error",
                "reason",
                "method",
                "toolName",
                "isError",
                "message",
                "assistantMessageEvent",
                "role",
            ];
            let names = NAMING.into_iter().filter(|name| members.contains_key(*name));
            pick(members, names, |name, value| project_member(name, value, None, placeholders))
        }
        (Value::Array(items), Some(Value::Array(wanted))) => {
            let items = items.iter().enumerate();
            items.map(|(index, item)| project(item, wanted.get(index).or(Some(item)), placeholders)).collect()
        }
        (Value::String(text), _) => Value::String(placeholders.hide(text)),
        _ => frame.clone(),
    }
}

fn project_member(name: &str, value: &Value, pattern: Option<&Value>, placeholders: &Placeholders) -> Value {
    let is_placeholder = pattern.and_then(Value::as_str).is_some_and(|text| text.contains('['));
    match (name, value) {
        ("timestamp", _) => Value::from("[TIME]"),
        ("sessionId" | "responseId" | "parentId", Value::String(_)) => Value::from("[ID]"),
        _ if is_placeholder && pattern.is_some_and(|pattern| matches(pattern, value, placeholders).is_ok()) => {
            pattern.cloned().unwrap_or_default()
        }
        _ => project(value, pattern.filter(|pattern| pattern.is_object() || pattern.is_array()), placeholders),
    }
}

fn pick<'n>(
    members: &Map<String, Value>,
    names: impl Iterator<Item = &'n str>,
    project: impl Fn(&str, &Value) -> Value,
) -> Value {
    Value::Object(names.map(|name| (name.to_owned(), project(name, &members[name]))).collect())
}
