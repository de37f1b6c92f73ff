//! `openai-responses`: OpenAI's newer API and the servers that speak it.

mod events;
mod request;
mod stream;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, THINKING, Wire, bare_status, cut, error_member,
    field, unstreamed,
};
use crate::failure::Fault;

/// What a server may do without.
const OPTIONAL: &[OptionalField] = &[
    field("developer"),
    field("store"),
    field("strict"),
    field("max_output_tokens"),
    field("prompt_cache_key"),
    field("prompt_cache_retention"),
    field("prompt_cache_options"),
    OptionalField { name: "summary", aliases: &["reasoning.summary", "reasoning summaries"] },
    OptionalField { name: "reasoning", aliases: THINKING },
    OptionalField { name: "include", aliases: &["encrypted_content", "encrypted content"] },
];

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
        OPTIONAL
    }
}

#[cfg(test)]
mod tests;
