//! `anthropic-messages`: Anthropic's own API and the servers that speak it.

mod request;
mod stream;

use pith_protocol::Model;

use super::{Decoder, HttpRequest, MAX_ERROR_CHARS, Order, Wire, bare_status, cut};
use crate::failure::Fault;

/// The wire module.
pub struct Anthropic;

impl Wire for Anthropic {
    fn request(&self, order: &Order<'_>) -> Result<HttpRequest, Fault> {
        request::build(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }

    fn error_text(&self, _: &Model, status: u16, body: &str) -> String {
        match body.trim() {
            "" => bare_status(status),
            body => format!("{status} {}", cut(body, MAX_ERROR_CHARS)),
        }
    }

    fn optional_fields(&self) -> &'static [&'static str] {
        &["eager_input_streaming", "strict", "display", "output_config", "cache_control", "ttl", "fallbacks"]
    }
}

#[cfg(test)]
mod tests;
