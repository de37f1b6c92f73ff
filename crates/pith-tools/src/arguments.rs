//! Reads a call's arguments once the agent loop has validated their types.
//!
//! Values can still be unusable: fractions, zeros and negative numbers are handled here.

use serde_json::{Map, Value};

/// The arguments of one call.
pub(crate) struct Arguments(pub Map<String, Value>);

impl Arguments {
    /// Returns a required string.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        self.optional_text(name)?.ok_or_else(|| format!("{name}: must have required properties {name}"))
    }

    /// Returns an optional string.
    pub fn optional_text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{name}: must be string")),
        }
    }

    /// Returns a boolean; false if it is missing.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns an optional number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or_else(|| format!("{name}: must be number")),
        }
    }

    /// Returns a count: rounded down, at least `least`.
    pub fn count(&self, name: &str, least: usize) -> Result<Option<usize>, String> {
        // The cast saturates: a number that does not fit is as good as unlimited.
        Ok(self.number(name)?.map(|number| (number.floor().max(0.0) as usize).max(least)))
    }

    /// Returns a limit: rounded down; less than one is an error.
    pub fn limit(&self, name: &str) -> Result<Option<usize>, String> {
        match self.number(name)? {
            Some(number) if number < 1.0 => Err(format!("Invalid {name}: must be at least 1")),
            Some(number) => Ok(Some(number.floor() as usize)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        Arguments(value.as_object().unwrap().clone())
    }

    #[test]
    fn counts_are_rounded_down_and_limits_below_one_refused() {
        let given = arguments(json!({"a": 1.5, "b": -3, "c": 0, "d": 1e300, "e": 2.9, "f": null, "g": 0.5}));
        for (name, expected) in [("a", Some(1)), ("b", Some(1)), ("c", Some(1)), ("d", Some(usize::MAX)), ("f", None)] {
            assert_eq!(given.count(name, 1), Ok(expected), "{name}");
        }
        assert_eq!(given.limit("e"), Ok(Some(2)));
        for name in ["b", "c", "g"] {
            assert_eq!(given.limit(name), Err(format!("Invalid {name}: must be at least 1")));
        }
    }

    #[test]
    fn wrong_types_name_the_field() {
        let given = arguments(json!({"path": 3, "limit": "x"}));
        assert_eq!(given.text("path").unwrap_err(), "path: must be string");
        assert_eq!(given.number("limit").unwrap_err(), "limit: must be number");
        assert_eq!(given.text("gone").unwrap_err(), "gone: must have required properties gone");
    }
}
