//! `google-generative-ai`: the Gemini API.

mod payload;
mod request;
mod schema;
mod stream;

use pith_protocol::Model;
use serde_json::Value;

use super::{
    Decoder, HttpRequest, MAX_ERROR_CHARS, OptionalField, RequestInput, Wire, bare_status, cut, table, unstreamed,
};
use crate::failure::Fault;

/// The wire module.
pub struct Google;

impl Wire for Google {
    fn request(&self, input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
        request::build(input)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }

    fn shown(&self, model: &Model, body: Value) -> Value {
        payload::shown(&model.id, body)
    }

    fn sent(&self, shown: Value) -> Value {
        payload::sent(shown)
    }

    fn optional_fields(&self) -> &'static [OptionalField] {
        table::GOOGLE
    }

    fn unstreamed(&self, document: Value) -> Option<Vec<unstreamed::Event>> {
        unstreamed::google(document)
    }

    fn error_text(&self, _: &Model, status: u16, body: &str) -> String {
        let is_json = serde_json::from_str::<Value>(body).is_ok_and(|body| body.is_object() || body.is_array());
        match body.trim() {
            body if is_json => cut(body, MAX_ERROR_CHARS),
            "" => bare_status(status),
            // An HTML page of a front end says no more than its status.
            _ => format!("{status} {}", status_text(status)),
        }
    }
}

fn status_text(status: u16) -> &'static str {
    reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("error")
}

#[cfg(test)]
mod tests;
