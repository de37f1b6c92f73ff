//! `anthropic-messages`: Anthropic's own API and the servers that speak it.

mod request;
mod stream;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, THINKING, Wire, bare_status, cut, field,
    unstreamed,
};
use crate::failure::Fault;

/// What a server may do without.
const OPTIONAL: &[OptionalField] = &[
    field("eager_input_streaming"),
    field("strict"),
    field("display"),
    OptionalField { name: "output_config", aliases: &["output_config.effort", "effort"] },
    field("cache_control"),
    field("defer_loading"),
    field("ttl"),
    field("fallbacks"),
    OptionalField { name: "thinking", aliases: THINKING },
];

/// The wire module.
pub struct Anthropic;

impl Wire for Anthropic {
    fn request(&self, input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
        request::build(input)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }

    fn unstreamed(&self, document: Value) -> Option<Vec<unstreamed::Event>> {
        unstreamed::anthropic(document)
    }

    fn error_text(&self, _: &Model, status: u16, body: &str) -> String {
        match body.trim() {
            "" => bare_status(status),
            body => format!("{status} {}", cut(body, MAX_ERROR_CHARS)),
        }
    }

    fn optional_fields(&self) -> &'static [OptionalField] {
        OPTIONAL
    }
}

#[cfg(test)]
mod tests;
