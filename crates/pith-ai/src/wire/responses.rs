//! `openai-responses`: OpenAI's newer API and the servers that speak it.

mod events;
mod request;
mod stream;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, Wire, bare_status, cut, error_member, table,
    unstreamed,
};
use crate::failure::Fault;

/// The wire module.
pub struct Responses;

impl Wire for Responses {
    fn request(&self, input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
        request::build(input)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }

    fn unstreamed(&self, document: Value) -> Option<Vec<unstreamed::Event>> {
        unstreamed::responses(document)
    }

    fn error_text(&self, model: &Model, status: u16, body: &str) -> String {
        let provider = if model.provider == "openai" { "OpenAI" } else { &model.provider };
        let text = match (error_member(body), body.trim()) {
            (Some(error), _) => error.to_string(),
            (None, "") => bare_status(status),
            (None, body) => body.to_owned(),
        };
        format!("{provider} API error ({status}): {}", cut(&text, MAX_ERROR_CHARS))
    }

    fn optional_fields(&self) -> &'static [OptionalField] {
        table::RESPONSES
    }
}

#[cfg(test)]
mod tests;
