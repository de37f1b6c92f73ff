//! The stream of a Gemini answer: each event is a partial response.

use std::borrow::Cow;
use std::collections::HashMap;

use pith_protocol::{ErrorKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::assemble::{MessageBuilder, now_ms};
use crate::failure::{Fault, kind_of_status};
use crate::sse::SseEvent;
use crate::wire::common::{Count, First, Text};
use crate::wire::stop_reason::finish_unknown;
use crate::wire::{Decoder, MAX_ERROR_CHARS, cut, parse};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow, default)]
    candidates: First<Candidate<'a>>,
    #[serde(default)]
    usage_metadata: Option<Counts>,
    #[serde(borrow, default)]
    response_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    finish_message: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    block_reason_message: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    total_token_count: Count,
}

/// State of one stream.
#[derive(Default)]
pub(super) struct Stream {
    /// The block that grows: whether it is thinking, and its place.
    open: Option<(bool, usize)>,
    /// The calls so far: what each is called and given, by id.
    calls: HashMap<String, (String, String)>,
    finish: Option<(String, Option<String>)>,
}

impl Decoder for Stream {
    fn event(&mut self, event: SseEvent<'_>, message: &mut MessageBuilder) {
        // Some gateways keep a connection alive with records of nothing.
        if matches!(event.data.trim(), "" | "null" | "[DONE]") {
            return;
        }
        let mut mended = String::new();
        match parse::<Response<'_>>(event.data, &mut mended) {
            Ok(response) => self.response(response, message),
            Err(fault) => message.fail(fault),
        }
    }

    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        self.close(message);
        let Some((reason, explanation)) = self.finish.take() else {
            let text = "Google stream ended without a finish reason";
            return message.fail(fault.unwrap_or_else(|| Fault::new(ErrorKind::Network, text)));
        };
        match reason.as_str() {
            "STOP" => message.finish(StopReason::Stop),
            "MAX_TOKENS" => message.finish(StopReason::Length),
            other => {
                if finish_unknown(other, message) {
                    return;
                }
                let more = explanation.map(|text| format!(": {text}")).unwrap_or_default();
                let kind = if is_policy(other) { ErrorKind::InvalidRequest } else { ErrorKind::Protocol };
                message.fail(Fault::new(kind, format!("Provider stopped with: {other}{more}")));
            }
        }
    }
}

impl Stream {
    fn response(&mut self, response: Response<'_>, message: &mut MessageBuilder) {
        if let Some(error) = response.error.filter(|error| error.get() != "null") {
            return message.fail(reported(&message.model().provider, error.get()));
        }
        message.set_response_id(response.response_id.as_ref().map_or("", Text::as_str));
        if let Some(counts) = response.usage_metadata {
            message.set_usage(usage(&counts));
        }
        message.begin();
        if let Some((reason, feedback)) =
            response.prompt_feedback.and_then(|feedback| Some((feedback.block_reason?, feedback.block_reason_message)))
        {
            let more = feedback.map(|text| format!(": {}", text.0)).unwrap_or_default();
            let text = format!("Provider blocked the prompt: {}{more}", reason.0);
            message.set_raw_stop_reason(reason.as_str());
            return message.fail(Fault::new(ErrorKind::InvalidRequest, text));
        }
        let Some(candidate) = response.candidates.0 else { return };
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, message);
        }
        if let Some(reason) = candidate.finish_reason {
            message.set_raw_stop_reason(reason.as_str());
            let explanation = candidate.finish_message.map(|text| text.0.into_owned());
            self.finish = Some((reason.0.into_owned(), explanation));
        }
    }

    fn part(&mut self, part: Part<'_>, message: &mut MessageBuilder) {
        let signature = part.thought_signature.filter(|signature| !signature.0.is_empty());
        if let Some(call) = part.function_call {
            return self.call(call, signature, message);
        }
        let Some(text) = part.text else { return };
        let is_thinking = part.thought == Some(true);
        let place = match self.open {
            Some((kind, place)) if kind == is_thinking => {
                message.push(place, text.0);
                place
            }
            _ => {
                self.close(message);
                let place = if is_thinking { message.open_thinking() } else { message.open_text() };
                self.open = Some((is_thinking, place));
                // An empty part is a block as well; requests leave it out.
                message.push_even_empty(place, text.0);
                place
            }
        };
        if let Some(signature) = signature {
            message.set_signature(place, signature.0.into_owned());
        }
    }

    fn call(&mut self, call: FunctionCall<'_>, signature: Option<Text<'_>>, message: &mut MessageBuilder) {
        self.close(message);
        let arguments = call.args.map(RawValue::get).filter(|arguments| *arguments != "null");
        let arguments = arguments.map_or("{}".to_owned(), compact);
        let key = (call.name.into_owned(), arguments.clone());
        let given = call.id.map(|id| id.0.into_owned()).filter(|id| !id.is_empty());
        let known = given.as_ref().and_then(|id| self.calls.get(id));
        if known == Some(&key) {
            // The same call once more.
            return;
        }
        let given = given.filter(|_| known.is_none());
        let id = given.unwrap_or_else(|| format!("{}_{}_{}", key.0, now_ms(), self.calls.len() + 1));
        let place = message.open_call(&id, &key.0);
        self.calls.insert(id, key);
        message.push(place, arguments.into());
        if let Some(signature) = signature {
            message.set_signature(place, signature.0.into_owned());
        }
        message.close(place);
    }

    fn close(&mut self, message: &mut MessageBuilder) {
        if let Some((_, place)) = self.open.take() {
            message.close(place);
        }
    }
}

/// Returns JSON without the white space that servers add, and without needless escapes. Numbers stay as they
/// were written, however long.
fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        compact.extend(rest[..start].split_ascii_whitespace());
        let literal = &rest[start..start + literal_length(&rest[start..])];
        match serde_json::from_str::<String>(literal) {
            Ok(text) => compact.push_str(&Value::String(text).to_string()),
            // Half of a surrogate pair cannot be written in any other way.
            Err(_) => compact.push_str(literal),
        }
        rest = &rest[start + literal.len()..];
    }
    compact.extend(rest.split_ascii_whitespace());
    compact
}

/// Returns the length of the string literal that `json` begins with, quotes included.
fn literal_length(json: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let was_escaped = is_escaped;
        is_escaped = byte == b'\\' && !was_escaped;
        byte == b'"' && !was_escaped
    };
    json.bytes().skip(1).position(is_end).map_or(json.len(), |end| end + 2)
}

/// Whether asking again would be refused again.
fn is_policy(reason: &str) -> bool {
    let words = ["SAFETY", "RECITATION", "BLOCK", "PROHIBITED", "SPII", "LANGUAGE"];
    words.iter().any(|word| reason.contains(word))
}

fn reported(provider: &str, error: &str) -> Fault {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let text = value["message"].as_str().filter(|text| !text.is_empty()).unwrap_or(error);
    let text = cut(text, MAX_ERROR_CHARS);
    match value["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400) {
        Some(status) => {
            let mut fault = Fault::new(kind_of_status(provider, status, &text), text);
            fault.failure.status = Some(status);
            fault
        }
        None => Fault::reported(provider, value["status"].as_str(), text),
    }
}

fn usage(counts: &Counts) -> Usage {
    let cache_read = counts.cached_content_token_count.or_zero();
    let thoughts = counts.thoughts_token_count.or_zero();
    Usage {
        input: counts.prompt_token_count.or_zero().saturating_sub(cache_read),
        output: counts.candidates_token_count.or_zero() + thoughts,
        cache_read,
        reasoning: Some(thoughts),
        total_tokens: counts.total_token_count.or_zero(),
        ..Usage::default()
    }
}
