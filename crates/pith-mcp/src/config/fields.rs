//! Reads the members of an entry; an error names the member.

use std::time::Duration;

use pith_protocol::fields::type_name;
use serde_json::{Map, Value};

/// The members of an object.
pub struct Fields<'a>(pub &'a Map<String, Value>);

impl Fields<'_> {
    pub fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("{key}: expected a string, got {}", type_name(other))),
        }
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(format!("{key}: expected a boolean, got {}", type_name(other))),
        }
    }

    /// A duration's number: not negative, and no longer than a year.
    pub fn number(&self, key: &str) -> Result<Option<f64>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => match number.as_f64().filter(|number| (0.0..=3.2e10).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("{key}: {number} is out of range")),
            },
            Some(other) => Err(format!("{key}: expected a number, got {}", type_name(other))),
        }
    }

    pub fn milliseconds(&self, key: &str) -> Result<Option<Duration>, String> {
        Ok(self.number(key)?.map(|number| Duration::from_secs_f64(number / 1000.0)))
    }

    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let items = match self.0.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(format!("{key}: expected an array, got {}", type_name(other))),
        };
        let text = |(index, item): (usize, &Value)| match scalar(item) {
            Some(text) => Ok(text),
            None => Err(format!("{key}[{index}]: expected a string, got {}", type_name(item))),
        };
        items.iter().enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    pub fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let members = match self.0.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(members)) => members,
            Some(other) => return Err(format!("{key}: expected an object, got {}", type_name(other))),
        };
        let pair = |(name, value): (&String, &Value)| match scalar(value) {
            Some(text) => Ok((name.clone(), text)),
            None => Err(format!("{key}.{name}: expected a string, got {}", type_name(value))),
        };
        members.iter().map(pair).collect()
    }
}

/// Numbers and booleans are taken as the texts they would be in an environment.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
