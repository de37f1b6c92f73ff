//! `anthropic-messages`: Anthropic's own API and the servers that speak it.

mod messages;
mod request;
mod stream;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, Wire, bare_status, cut, table, unstreamed,
};
use crate::failure::Fault;

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
        table::ANTHROPIC
    }
}

#[cfg(test)]
mod tests;
