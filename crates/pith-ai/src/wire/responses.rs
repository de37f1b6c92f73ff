//! `openai-responses`: OpenAI's newer API and the servers that speak it.

mod request;
mod stream;

use pith_protocol::Model;

use super::{Decoder, HttpRequest, MAX_ERROR_CHARS, Order, Wire, bare_status, cut, error_member};
use crate::failure::Fault;

/// The wire module.
pub struct Responses;

impl Wire for Responses {
    fn request(&self, order: &Order<'_>) -> Result<HttpRequest, Fault> {
        request::build(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
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

    fn optional_fields(&self) -> &'static [&'static str] {
        &[
            "developer",
            "store",
            "strict",
            "max_output_tokens",
            "prompt_cache_key",
            "prompt_cache_retention",
            "prompt_cache_options",
            "reasoning",
            "include",
        ]
    }
}

#[cfg(test)]
mod tests;
