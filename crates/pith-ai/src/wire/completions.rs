//! `openai-completions`: chat completions, spoken by OpenAI, most aggregators
//! and every local server, each with its own dialect.

mod chunk;
mod compat;
mod messages;
mod request;
mod stream;
mod thinking;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, Wire, bare_status, cut, error_member, table,
    unstreamed,
};
use crate::failure::Fault;

/// The wire module.
pub struct Completions;

impl Wire for Completions {
    fn request(&self, input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
        request::build(input)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }

    fn unstreamed(&self, document: Value) -> Option<Vec<unstreamed::Event>> {
        unstreamed::completions(document)
    }

    fn error_text(&self, _: &Model, status: u16, body: &str) -> String {
        let body = body.trim();
        let Some(error) = error_member(body) else {
            return if body.is_empty() {
                bare_status(status)
            } else {
                format!("{status} {}", cut(body, MAX_ERROR_CHARS))
            };
        };
        format!("{status}: {}", with_raw(cut(&error.to_string(), MAX_ERROR_CHARS), &error))
    }

    fn optional_fields(&self) -> &'static [OptionalField] {
        table::COMPLETIONS
    }
}

/// Adds what the real provider said, which aggregators put into the error.
fn with_raw(mut text: String, error: &Value) -> String {
    if let Some(raw) = error["metadata"]["raw"].as_str().filter(|raw| !text.contains(raw)) {
        text.push('\n');
        text.push_str(&cut(raw, MAX_ERROR_CHARS));
    }
    text
}

#[cfg(test)]
mod tests;
