//! Taking typed values out of a JSON object, noting each one that does not fit.

use serde_json::{Map, Value};

use super::Headers;

/// An object and where it stands in the file.
pub(super) struct Fields<'a> {
    pub object: &'a Map<String, Value>,
    at: String,
    /// `<pointer>: <expectation>` of every value left out.
    problems: &'a mut Vec<String>,
}

impl<'a> Fields<'a> {
    pub fn new(object: &'a Map<String, Value>, at: String, problems: &'a mut Vec<String>) -> Fields<'a> {
        Fields { object, at, problems }
    }

    /// Notes that a value was left out, without showing it.
    pub fn complain(&mut self, key: &str, expected: &str) {
        self.problems.push(format!("{}/{key}: expected {expected}", self.at));
    }

    /// Returns the value of a key, if it is there and `read` accepts it.
    pub fn take<T>(&mut self, key: &str, expected: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.object.get(key).filter(|value| !value.is_null())?;
        let taken = read(value);
        if taken.is_none() {
            match key {
                // Not shown: a secret of the wrong type is still a secret.
                "apiKey" | "headers" => self.complain(key, expected),
                _ => {
                    let shown: String = value.to_string().chars().take(60).collect();
                    self.complain(key, &format!("{expected}, got {shown}"));
                }
            }
        }
        taken
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        self.take(key, "a string", |value| value.as_str().map(str::to_owned)).filter(|text| !text.is_empty())
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key, "true or false", Value::as_bool)
    }

    pub fn price(&mut self, key: &str) -> Option<f64> {
        self.take(key, "a number", Value::as_f64)
    }

    /// Returns a number above zero, without its fraction.
    pub fn positive(&mut self, key: &str) -> Option<u64> {
        self.take(key, "a number above 0", |value| {
            value.as_f64().filter(|number| *number >= 1.0 && *number < 1e18).map(|number| number as u64)
        })
    }

    pub fn object(&mut self, key: &str) -> Option<&'a Map<String, Value>> {
        self.take(key, "an object", Value::as_object)
    }

    pub fn array(&mut self, key: &str) -> Option<&'a Vec<Value>> {
        self.take(key, "an array", Value::as_array)
    }

    /// Reads header names and values; a wrong value costs one header.
    pub fn headers(&mut self, key: &str) -> Headers {
        let Some(object) = self.object(key) else { return vec![] };
        let mut headers = Headers::with_capacity(object.len());
        let mut inner = self.inside(key, object);
        for (name, value) in object {
            match value {
                Value::String(text) => headers.push((name.clone(), Some(text.clone()))),
                Value::Null => headers.push((name.clone(), None)),
                _ => inner.complain(name, "a string or null"),
            }
        }
        headers
    }

    /// Returns an object below this one.
    pub fn inside<'b>(&'b mut self, key: &str, object: &'b Map<String, Value>) -> Fields<'b> {
        Fields { object, at: format!("{}/{key}", self.at), problems: self.problems }
    }
}
