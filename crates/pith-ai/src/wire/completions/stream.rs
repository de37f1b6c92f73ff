//! The chunk stream of a chat-completions answer.
//!
//! Chunks do not mark where a block ends. A block is taken to end when
//! something else begins: thinking at the first text or call, text at the first
//! call, a call when its arguments are whole and another one starts.

use std::borrow::Cow;

use pith_protocol::{ErrorKind, StopReason, Usage};
use serde_json::{Map, Value};

use super::chunk::{Call, Choice, Chunk, Content, Counts, Delta};
use super::compat::Vendor;
use super::with_raw;
use crate::assemble::MessageBuilder;
use crate::failure::{Fault, kind_of_status};
use crate::sse::SseEvent;
use crate::wire::common::{Text, flag};
use crate::wire::stop_reason::finish_unknown;
use crate::wire::{Decoder, MAX_ERROR_CHARS, cut, parse};

/// State of one stream.
#[derive(Default)]
pub(super) struct Stream {
    /// The text or thinking block that grows.
    open: Option<(Kind, usize)>,
    /// The thinking block that carries `reasoning_details`.
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    details: Vec<Map<String, Value>>,
    finish_reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// A tool call. It has a place in the message once its name is known.
#[derive(Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    /// Fragments that came before the name.
    early: String,
    place: Option<usize>,
    /// The arguments, once they have ended.
    whole: Option<String>,
}

/// Which call a fragment belongs to.
enum Found {
    At(usize),
    New,
    /// It may be any of several.
    Unclear,
}

impl Decoder for Stream {
    fn event(&mut self, event: SseEvent<'_>, message: &mut MessageBuilder) {
        match event.data.trim() {
            // Some gateways keep a connection alive with records of nothing.
            "" | "null" => return,
            "[DONE]" => return self.end(None, message),
            _ => {}
        }
        let mut mended = String::new();
        match parse::<Chunk<'_>>(event.data, &mut mended) {
            Ok(chunk) => self.chunk(chunk, message),
            Err(fault) => message.fail(fault),
        }
    }

    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        self.close_block(message);
        let is_stray = |call: &OpenCall| call.place.is_none() && !call.early.trim().is_empty();
        if self.calls.len() > 1 && self.calls.iter().any(is_stray) {
            return mixed_up("arguments came for a call without a name", message);
        }
        self.start_late_calls(message);
        self.keep_details(message);
        let reason = match (self.finish_reason.as_deref(), fault) {
            (Some("stop" | "end"), _) => StopReason::Stop,
            (Some("length"), _) => StopReason::Length,
            (Some("tool_calls" | "function_call"), _) => StopReason::ToolUse,
            (Some(other), _) => {
                if finish_unknown(other, message) {
                    return;
                }
                let text = format!("Provider finish_reason: {other}");
                // Mistral's word for a fault of its own, not of the request.
                if other == "error" && Vendor::of(message.model()) == Vendor::Mistral {
                    return message.fail(Fault::new(ErrorKind::Overloaded, text));
                }
                return message.fail(Fault::reported(&message.model().provider, Some(other), text));
            }
            (None, Some(fault)) => return message.fail(fault),
            (None, None) if !flag(message.model(), "supportsFinishReason", true) => StopReason::Stop,
            (None, None) => {
                return message.fail(Fault::new(ErrorKind::Network, "Stream ended without finish_reason"));
            }
        };
        message.finish(reason);
    }
}

impl Stream {
    fn chunk(&mut self, chunk: Chunk<'_>, message: &mut MessageBuilder) {
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            return message.fail(reported(&message.model().provider, error.get()));
        }
        message.set_response_id(chunk.id.as_ref().map_or("", Text::as_str));
        message.set_response_model(chunk.model.as_ref().map_or("", Text::as_str));
        message.begin();
        if let Some(counts) = chunk.usage {
            count(&counts, message);
        }
        if let Some(choice) = chunk.choices.0 {
            self.choice(choice, message);
        }
    }

    fn choice(&mut self, choice: Choice<'_>, message: &mut MessageBuilder) {
        if let Some(counts) = choice.usage {
            count(&counts, message);
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, message);
        }
        if let Some(reason) = choice.finish_reason {
            message.set_raw_stop_reason(reason.as_str());
            self.finish_reason = Some(reason.0.into_owned());
        }
    }

    fn delta(&mut self, delta: Delta<'_>, message: &mut MessageBuilder) {
        let named = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_text", delta.reasoning_text),
            ("thinking", delta.thinking),
        ];
        let thought = named.into_iter().find_map(|(field, content)| Some((field, content.text()?)));
        if let Some((field, text)) = thought {
            self.push(Kind::Thinking, text, Some(field), message);
        }
        for details in delta.reasoning_details.into_iter().flatten() {
            self.add_details(details);
        }
        // What was thought comes before what is said, also where it cannot be read.
        if !self.details.is_empty() && self.open.is_none() && self.calls.is_empty() && self.thinking.is_none() {
            self.block(Kind::Thinking, message);
        }
        match delta.content {
            Content::Text(text) => self.push(Kind::Text, text, None, message),
            Content::Parts(parts) => {
                for (is_thinking, text) in parts {
                    let kind = if is_thinking { Kind::Thinking } else { Kind::Text };
                    self.push(kind, Cow::Owned(text), None, message);
                }
            }
            Content::Nothing => {}
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, message);
        }
    }

    fn push(&mut self, kind: Kind, text: Cow<'_, str>, field: Option<&str>, message: &mut MessageBuilder) {
        if text.is_empty() {
            return;
        }
        let place = match self.open {
            Some((open, place)) if open == kind => place,
            _ => {
                let place = self.block(kind, message);
                if let Some(field) = field.filter(|_| kind == Kind::Thinking) {
                    message.set_signature(place, field.to_owned());
                }
                place
            }
        };
        message.push(place, text);
    }

    /// Opens a block.
    fn block(&mut self, kind: Kind, message: &mut MessageBuilder) -> usize {
        self.close_block(message);
        self.close_whole_calls(message);
        let place = match kind {
            Kind::Text => message.open_text(),
            Kind::Thinking => message.open_thinking(),
        };
        if kind == Kind::Thinking {
            self.thinking.get_or_insert(place);
        }
        self.open = Some((kind, place));
        place
    }

    fn close_block(&mut self, message: &mut MessageBuilder) {
        if let Some((_, place)) = self.open.take() {
            message.close(place);
        }
    }

    /// Ends the calls that cannot grow any more. One with an open argument text stays: servers may interleave.
    fn close_whole_calls(&mut self, message: &mut MessageBuilder) {
        for call in &mut self.calls {
            let Some(place) = call.place else { continue };
            if message.is_open(place) && message.has_whole_arguments(place) {
                call.whole = Some(message.received(place).to_owned());
                message.close(place);
            }
        }
    }

    fn call(&mut self, fragment: Call<'_>, message: &mut MessageBuilder) {
        let function = fragment.function.unwrap_or_default();
        let id = fragment.id.as_ref().map_or("", Text::as_str);
        let name = function.name.as_ref().map_or("", Text::as_str);
        let arguments = function.arguments.0;
        let at = match self.find(fragment.index.0, id, name, message) {
            Found::At(at) => at,
            Found::New => {
                self.close_block(message);
                self.close_whole_calls(message);
                self.calls.push(OpenCall { index: fragment.index.0, ..OpenCall::default() });
                self.calls.len() - 1
            }
            Found::Unclear if arguments.is_empty() => return,
            Found::Unclear => return mixed_up("arguments came without the call they belong to", message),
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        if call.name.is_empty() {
            call.name.push_str(name);
        }
        match call.place {
            // Some servers end with all of a call once more.
            Some(place) if message.has_whole_arguments(place) && message.received(place) == arguments => {}
            Some(place) if !message.is_open(place) => {
                if !arguments.trim().is_empty() && call.whole.as_deref() != Some(&*arguments) {
                    mixed_up("arguments came after their call had ended", message);
                }
            }
            Some(place) => message.push(place, arguments),
            None => {
                call.early.push_str(&arguments);
                if !call.name.is_empty() {
                    call.start(message);
                }
            }
        }
    }

    /// Returns the call a fragment belongs to: by id and index as far as it has them, else the one that is open.
    fn find(&self, index: Option<u64>, id: &str, name: &str, message: &MessageBuilder) -> Found {
        let is_known = |call: &OpenCall| {
            let other_number = index.is_some() && call.index.is_some() && call.index != index;
            !id.is_empty() && call.id == id && !other_number
        };
        if let Some(at) = self.calls.iter().rposition(is_known) {
            return Found::At(at);
        }
        // Some servers number every call 0, and some give every fragment an id of its own; a new id or name that comes
        // with a name is a new call.
        let is_other = |call: &OpenCall| {
            let new_id = !id.is_empty() && !call.id.is_empty();
            let new_name = id.is_empty() && !call.name.is_empty() && call.name != name;
            !name.is_empty() && (new_id || new_name)
        };
        let is_meant = |call: &OpenCall| match index {
            Some(_) => call.index == index && !is_other(call),
            None => id.is_empty() && name.is_empty(),
        };
        let is_open = |call: &OpenCall| call.place.is_none_or(|place| message.is_open(place));
        let meant = || self.calls.iter().enumerate().filter(|(_, call)| is_meant(call)).map(|(at, _)| at);
        let mut open = meant().filter(|at| is_open(&self.calls[*at]));
        match (open.next(), open.next()) {
            (Some(at), None) => Found::At(at),
            (Some(_), Some(_)) => Found::Unclear,
            (None, _) => meant().next_back().map_or(Found::New, Found::At),
        }
    }

    fn start_late_calls(&mut self, message: &mut MessageBuilder) {
        for call in self.calls.iter_mut().filter(|call| call.place.is_none()) {
            if !call.early.is_empty() || !call.id.is_empty() {
                call.start(message);
            }
        }
    }

    /// Collects opaque reasoning; neighbouring pieces of one text are put together.
    fn add_details(&mut self, details: Map<String, Value>) {
        let kind = details.get("type").and_then(Value::as_str).unwrap_or_default();
        let field = match kind {
            "reasoning.text" => "text",
            "reasoning.summary" => "summary",
            "reasoning.encrypted" => "",
            _ => return,
        };
        if let Some(last) = self.details.last_mut().filter(|last| !field.is_empty() && continues(last, &details)) {
            for (key, value) in details {
                match (last.get_mut(&key), value) {
                    (Some(Value::String(text)), Value::String(more)) if key == field => text.push_str(&more),
                    (None | Some(Value::Null), value) => {
                        last.insert(key, value);
                    }
                    _ => {}
                }
            }
            return;
        }
        self.details.push(details);
    }

    fn keep_details(&mut self, message: &mut MessageBuilder) {
        if self.details.is_empty() || message.is_finished() {
            return;
        }
        let place = self.thinking.unwrap_or_else(|| message.open_thinking());
        let details: Vec<Value> = self.details.drain(..).map(Value::Object).collect();
        message.set_signature(place, Value::Array(details).to_string());
        message.close(place);
    }
}

impl OpenCall {
    fn start(&mut self, message: &mut MessageBuilder) {
        let place = message.open_call(&self.id, &self.name);
        self.place = Some(place);
        message.push(place, std::mem::take(&mut self.early).into());
    }
}

/// Ends an answer whose calls cannot be told apart: none of them is to be run.
fn mixed_up(what: &str, message: &mut MessageBuilder) {
    message.fail(Fault::new(ErrorKind::Protocol, format!("Stream is mixed up: {what}")));
}

/// Whether two detail entries are pieces of the same thought.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |key: &str| match (last.get(key), next.get(key)) {
        (Some(last), Some(next)) => last == next || last.is_null() || next.is_null(),
        _ => true,
    };
    last.get("type") == next.get("type") && same("index") && same("id")
}

/// Returns the fault of an `error` member.
fn reported(provider: &str, error: &str) -> Fault {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let text = value["message"].as_str().or(value.as_str()).filter(|text| !text.is_empty()).unwrap_or(error);
    let text = with_raw(cut(text, MAX_ERROR_CHARS), &value);
    // Aggregators put the status of the real provider here; Z.ai has larger numbers of its own.
    let status = value["code"].as_u64().or_else(|| value["code"].as_str()?.parse().ok());
    let status = status.and_then(|status| u16::try_from(status).ok());
    if let Some(status) = status.filter(|status| (400..600).contains(status)) {
        let kind = kind_of_status(provider, status, &text);
        let mut fault = Fault::new(kind, text);
        fault.failure.status = Some(status);
        return fault;
    }
    let number = status.map(|number| number.to_string());
    let code = number.as_deref().or(value["code"].as_str()).or(value["type"].as_str());
    Fault::reported(provider, code, text)
}

fn count(counts: &Counts, message: &mut MessageBuilder) {
    message.set_usage(usage(counts));
    if let Some(total) = counts.bill.total(message.model()) {
        message.set_billed(total);
    }
}

fn usage(counts: &Counts) -> Usage {
    let details = counts.prompt_tokens_details.unwrap_or_default();
    let cached = details.cached_tokens.0.or(counts.prompt_cache_hit_tokens.0).or(counts.cached_tokens.0);
    let (cache_read, cache_write) = (cached.unwrap_or(0), details.cache_write_tokens.or_zero());
    Usage {
        input: counts.prompt_tokens.or_zero().saturating_sub(cache_read + cache_write),
        output: counts.completion_tokens.or_zero(),
        cache_read,
        cache_write,
        reasoning: Some(counts.completion_tokens_details.unwrap_or_default().reasoning_tokens.or_zero()),
        ..Usage::default()
    }
}
