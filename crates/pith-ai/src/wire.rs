//! One module per API family: how a call becomes a request, and how its stream
//! becomes an answer. Pure functions over bytes; `http` and `client` do the talking.

pub mod anthropic;
pub mod body;
pub mod common;
pub mod completions;
pub mod google;
pub mod headers;
pub mod refused;
pub mod responses;
mod stop_reason;
pub mod unstreamed;

use bytes::Bytes;
use pith_config::settings::ThinkingBudgets;
use pith_protocol::{ErrorKind, LlmCall, Model};
use serde::Deserialize;
use serde_json::Value;

use crate::assemble::MessageBuilder;
use crate::credentials::Credentials;
use crate::failure::Fault;
use crate::prepare::ForeignThinking;
use crate::repair::repair;
use crate::sse::SseEvent;

pub use headers::Headers;
pub use refused::Refused;
pub use refused::table::OptionalField;

pub(crate) use refused::{is_about_thinking, table};

/// An API family.
pub trait Wire: Send + Sync {
    /// Returns the request of a call, or why it cannot be made.
    fn request(&self, input: &RequestInput<'_>) -> Result<HttpRequest, Fault>;

    /// Reads the stream of one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Returns the events that a whole answer would have had as a stream; `None` if the document is not an answer.
    fn unstreamed(&self, document: Value) -> Option<Vec<unstreamed::Event>>;

    /// Returns the text of an error answer.
    fn error_text(&self, model: &Model, status: u16, body: &str) -> String;

    /// Returns a request body as extensions know it.
    fn shown(&self, _model: &Model, body: Value) -> Value {
        body
    }

    /// Returns the request body for a shown one, which extensions may have changed.
    fn sent(&self, shown: Value) -> Value {
        shown
    }

    /// Returns the fields and values of requests that a server may do without.
    fn optional_fields(&self) -> &'static [OptionalField] {
        &[]
    }
}

/// Turns the events of one stream into an answer.
pub trait Decoder: Send {
    /// Takes the next event. The builder says when the answer is finished.
    fn event(&mut self, event: SseEvent<'_>, message: &mut MessageBuilder);

    /// Called at the end of the stream, with the fault that cut it, if any.
    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder);
}

/// Everything a request is made from.
#[derive(Clone, Copy)]
pub struct RequestInput<'a> {
    pub call: &'a LlmCall,
    pub credentials: &'a Credentials,
    pub options: &'a RequestOptions,
    /// Optional fields this server has refused before.
    pub refused: &'a Refused,
    /// About how many tokens the request is.
    pub input_tokens: u64,
}

/// Choices of the user that shape requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    pub budgets: ThinkingBudgets,
    pub foreign_thinking: ForeignThinking,
    /// Tell aggregators which product is calling.
    pub attribution: bool,
}

/// A request, ready to be sent as `POST`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub url: String,
    pub headers: Headers,
    pub body: Bytes,
}

/// The API families pith speaks, by the names that models have for them.
static FAMILIES: [(&str, &dyn Wire); 4] = [
    ("anthropic-messages", &anthropic::Anthropic),
    (OPENAI_COMPLETIONS, &completions::Completions),
    ("openai-responses", &responses::Responses),
    ("google-generative-ai", &google::Google),
];

/// The family of servers that say nothing about theirs.
pub const OPENAI_COMPLETIONS: &str = "openai-completions";

/// Returns the names of all families.
pub fn api_names() -> [&'static str; FAMILIES.len()] {
    FAMILIES.map(|(name, _)| name)
}

/// Returns the wire module for an API name.
pub fn for_api(api: &str) -> Option<&'static dyn Wire> {
    FAMILIES.iter().find(|(name, _)| *name == api).map(|(_, wire)| *wire)
}

/// Parses the data of an event, if need be after mending its strings.
pub(crate) fn parse<'a, T: Deserialize<'a>>(data: &'a str, mended: &'a mut String) -> Result<T, Fault> {
    let error = match serde_json::from_str(data) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if let Some(text) = repair(data) {
        *mended = text;
        if let Ok(value) = serde_json::from_str(mended) {
            return Ok(value);
        }
    }
    let shown = cut(data, 200);
    Err(Fault::new(ErrorKind::Protocol, format!("Could not parse an event of the stream: {error}: {shown}")))
}

/// Returns the text for an error answer without a usable body.
pub(crate) fn bare_status(status: u16) -> String {
    format!("{status} status code (no body)")
}

/// Returns the `error` member of a JSON body.
pub(crate) fn error_member(body: &str) -> Option<Value> {
    let mut body: Value = serde_json::from_str(body).ok()?;
    body.get_mut("error").map(Value::take).filter(|error| !error.is_null())
}

/// Returns at most `max` characters of a foreign text, saying how many were left out.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}... [truncated {} chars]", &text[..end], text[end..].chars().count()),
        None => text.to_owned(),
    }
}

/// Longest body of an error answer that is quoted.
pub(crate) const MAX_ERROR_CHARS: usize = 4000;

/// Returns arguments as JSON on one line.
pub(crate) fn arguments_text(arguments: &serde_json::Map<String, Value>) -> String {
    serde_json::to_string(arguments).expect("JSON objects always serialize")
}

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod odd_stream_tests;
#[cfg(test)]
mod stream_error_tests;
#[cfg(test)]
mod tool_result_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_say_how_much_is_missing() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß!", 3), "äöü... [truncated 2 chars]");
    }
}
