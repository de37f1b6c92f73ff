//! Writes a request body field by field, in a fixed order.

use pith_protocol::{Model, json};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Refused;

/// A JSON object under construction. The model's `samplingParams` replace
/// fields of the same name and are appended otherwise; refused fields never
/// get in.
pub struct Body<'a> {
    out: Vec<u8>,
    overrides: Option<&'a Map<String, Value>>,
    refused: &'a Refused,
    written: Vec<&'static str>,
}

impl<'a> Body<'a> {
    /// Makes an empty body for a request to `model`.
    pub fn new(model: &'a Model, refused: &'a Refused) -> Self {
        Body { out: vec![b'{'], overrides: model.sampling_params.as_ref(), refused, written: Vec::with_capacity(16) }
    }

    /// Adds a field.
    pub fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        if self.refused.contains(name) {
            return;
        }
        self.written.push(name);
        match self.overrides.and_then(|overrides| overrides.get(name)) {
            Some(replacement) => self.append(name, replacement),
            None => self.append(name, value),
        }
    }

    /// Adds a field that has a value.
    pub fn optional<T: Serialize>(&mut self, name: &'static str, value: Option<T>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Returns the finished body.
    pub fn finish(mut self) -> Vec<u8> {
        for (name, value) in self.overrides.into_iter().flatten() {
            if !self.written.contains(&name.as_str()) && !self.refused.contains(name) {
                self.append(name, value);
            }
        }
        self.out.push(b'}');
        self.out
    }

    fn append<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        json::append(&mut self.out, name);
        self.out.push(b':');
        json::append(&mut self.out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sampling_parameters_come_last_and_win() {
        let params = json!({"temperature": 0.5, "top_k": 4});
        let model = Model { sampling_params: params.as_object().cloned(), ..Model::default() };
        let refused = Refused::default();
        let mut body = Body::new(&model, &refused);
        body.field("model", "m");
        body.field("temperature", &1);
        body.optional("seed", None::<u8>);
        assert_eq!(body.finish(), br#"{"model":"m","temperature":0.5,"top_k":4}"#);
    }
}
