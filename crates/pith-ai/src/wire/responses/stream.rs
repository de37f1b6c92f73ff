//! The event stream of a Responses answer.

use std::borrow::Cow;

use pith_protocol::{ErrorKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::events::{Counts, Event, Item, Response};
use crate::assemble::MessageBuilder;
use crate::failure::Fault;
use crate::sse::SseEvent;
use crate::wire::common::Loose;
use crate::wire::{Decoder, MAX_ERROR_CHARS, cut, parse};

/// State of one stream.
#[derive(Default)]
pub(super) struct Stream {
    items: Vec<Shown>,
    /// Reasoning items by place, to be completed when the response ends.
    reasoning: Vec<(usize, Value)>,
}

/// An item that has a block in the message.
struct Shown {
    index: Option<u64>,
    id: String,
    /// Of a function call.
    call: Option<CallKey>,
    place: usize,
    is_done: bool,
    /// A part of the thinking has ended; the next one is set off from it.
    owes_break: bool,
}

#[derive(PartialEq, Eq)]
struct CallKey {
    call_id: String,
    name: String,
}

/// What an event says about the item it belongs to. The number comes first: some servers make up a new id for every
/// event.
struct Key<'a> {
    index: Option<u64>,
    id: &'a str,
}

impl Key<'_> {
    fn is_empty(&self) -> bool {
        self.index.is_none() && self.id.is_empty()
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: SseEvent<'_>, message: &mut MessageBuilder) {
        if event.data.is_empty() || event.data == "[DONE]" {
            return;
        }
        let mut mended = String::new();
        let parsed = match parse::<Event<'_>>(event.data, &mut mended) {
            Ok(parsed) => parsed,
            Err(fault) => return message.fail(fault),
        };
        let kind = if parsed.kind.is_empty() { event.name } else { &parsed.kind };
        let index = parsed.output_index.0;
        let key = Key { index, id: parsed.item_id.0.as_deref().unwrap_or_default() };
        match kind {
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta" => self.delta(&key, parsed.delta, message),
            "response.reasoning_summary_part.done" => self.part_done(&key),
            "response.function_call_arguments.delta" => {
                self.arguments(&key, parsed.delta, MessageBuilder::push, message);
            }
            "response.function_call_arguments.done" => {
                let replace = |message: &mut MessageBuilder, place, whole: Cow<'_, str>| message.replace(place, &whole);
                self.arguments(&key, parsed.arguments, replace, message);
            }
            "response.output_item.added" => self.item_added(index, parsed.item, message),
            "response.output_item.done" => self.item_done(index, parsed.item, message),
            "response.created" => self.created(parsed.response, message),
            "response.completed" | "response.incomplete" => self.completed(parsed.response, message),
            "response.failed" => failed(parsed.response, message),
            "error" => reported(parsed.code, parsed.message, message),
            _ => {}
        }
    }

    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        let text = "OpenAI Responses stream ended before a terminal response event";
        message.fail(fault.unwrap_or_else(|| Fault::new(ErrorKind::Network, text)));
    }
}

fn read<T: for<'a> Deserialize<'a> + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl Stream {
    fn created(&mut self, response: Option<&RawValue>, message: &mut MessageBuilder) {
        let response: Response = read(response);
        message.set_response_id(&response.id);
        message.begin();
    }

    /// Returns the newest item that an event belongs to.
    fn find(&self, key: &Key<'_>) -> Option<usize> {
        let by_index = || self.items.iter().rposition(|item| item.index == key.index);
        // One of the two events may lack the number.
        let by_id = || {
            let is_same = |item: &Shown| item.id == key.id && (item.index.is_none() || key.index.is_none());
            self.items.iter().rposition(is_same).filter(|_| !key.id.is_empty())
        };
        key.index.and_then(|_| by_index()).or_else(by_id)
    }

    /// Returns the text or thinking that grows: the newest, where a server does not say which.
    fn find_growing(&mut self, key: &Key<'_>) -> Option<&mut Shown> {
        let newest = || self.items.iter().rposition(|item| !item.is_done).filter(|_| key.is_empty());
        let at = self.find(key).or_else(newest)?;
        Some(&mut self.items[at]).filter(|item| item.call.is_none() && !item.is_done)
    }

    fn delta(&mut self, key: &Key<'_>, delta: Loose<'_>, message: &mut MessageBuilder) {
        let (Some(item), Some(delta)) = (self.find_growing(key), delta.0) else { return };
        if !delta.is_empty() && std::mem::take(&mut item.owes_break) {
            message.push(item.place, "\n\n".into());
        }
        message.push(item.place, delta);
    }

    fn part_done(&mut self, key: &Key<'_>) {
        if let Some(item) = self.find_growing(key) {
            item.owes_break = true;
        }
    }

    /// Takes a piece of the arguments of a call, or all of them.
    fn arguments(
        &self,
        key: &Key<'_>,
        text: Loose<'_>,
        take: fn(&mut MessageBuilder, usize, Cow<'_, str>),
        message: &mut MessageBuilder,
    ) {
        if key.is_empty() {
            return mixed_up("arguments came without the call they belong to", message);
        }
        // Those of a call that did not begin are in its last event, too.
        let Some(item) = self.find(key).map(|at| &self.items[at]) else { return };
        if item.call.is_none() {
            return mixed_up("arguments came for something that is no call", message);
        }
        if let Some(text) = text.0.filter(|_| !item.is_done) {
            take(message, item.place, text);
        }
    }

    fn item_added(&mut self, index: Option<u64>, raw: Option<&RawValue>, message: &mut MessageBuilder) {
        let item: Item = read(raw);
        if let Some(at) = self.find(&Key { index, id: &item.id }) {
            let shown = &self.items[at];
            if shown.is_same(&item) {
                return;
            }
            if !shown.is_done && (shown.call.is_some() || item.is_call()) {
                return mixed_up("two items have one number", message);
            }
        }
        if let Some(at) = self.open(index, &item, message) {
            message.complete(self.items[at].place, &item.arguments);
        }
    }

    /// Gives an item its block.
    fn open(&mut self, index: Option<u64>, item: &Item, message: &mut MessageBuilder) -> Option<usize> {
        let place = open(item, message)?;
        let call = item.is_call().then(|| CallKey { call_id: item.call_id.clone(), name: item.name.clone() });
        self.items.push(Shown { index, id: item.id.clone(), call, place, is_done: false, owes_break: false });
        Some(self.items.len() - 1)
    }

    /// Returns where the item is shown that is done now; nothing if it was done before, or cannot be told from
    /// another one.
    fn shown(&mut self, index: Option<u64>, item: &Item, message: &mut MessageBuilder) -> Option<usize> {
        let by_call = |shown: &Shown| {
            let lacks_number = index.is_none() || shown.index.is_none();
            lacks_number && item.is_call() && !item.call_id.is_empty() && shown.is_same(item)
        };
        let found = self.find(&Key { index, id: &item.id }).or_else(|| self.items.iter().rposition(by_call));
        let Some(at) = found else { return self.open(index, item, message) };
        let shown = &self.items[at];
        match (shown.is_same(item), shown.is_done) {
            (true, true) => None,
            (true, false) => Some(at),
            (false, true) => self.open(index, item, message),
            (false, false) => {
                mixed_up("an item ended as another one", message);
                None
            }
        }
    }

    fn item_done(&mut self, index: Option<u64>, raw: Option<&RawValue>, message: &mut MessageBuilder) {
        let item: Item = read(raw);
        let Some(at) = self.shown(index, &item, message) else { return };
        self.items[at].is_done = true;
        let place = self.items[at].place;
        match item.r#type.as_str() {
            "reasoning" => {
                let parts = item.summary.filter(|parts| !parts.is_empty()).or(item.content).unwrap_or_default();
                let texts: Vec<_> = parts.into_iter().map(|part| part.text).collect();
                message.complete(place, &texts.join("\n\n"));
                let whole: Value = read(raw);
                message.set_signature(place, whole.to_string());
                if item.encrypted_content.is_none_or(|content| content.is_null()) {
                    self.reasoning.push((place, whole));
                }
            }
            "message" => {
                let parts = item.content.unwrap_or_default();
                let text: String = parts.into_iter().map(|part| part.text + &part.refusal).collect();
                message.complete(place, &text);
                let mut signature = json!({"v": 1, "id": item.id});
                if let Some(phase) = item.phase {
                    signature["phase"] = json!(phase);
                }
                message.set_signature(place, signature.to_string());
            }
            // This event alone has all of a call, whatever became of the pieces.
            _ if item.arguments.is_empty() => {}
            _ => message.replace(place, &item.arguments),
        }
        message.close(place);
    }

    fn completed(&mut self, raw: Option<&RawValue>, message: &mut MessageBuilder) {
        let response: Response = read(raw);
        message.set_response_id(&response.id);
        self.complete_reasoning(response.output.unwrap_or_default(), message);
        if let Some(counts) = response.usage {
            message.set_usage(usage(&counts));
            match response.service_tier.as_deref() {
                Some("flex") => message.scale_cost(0.5),
                Some("priority" | "fast") if message.model().id == "gpt-5.5" => message.scale_cost(2.5),
                Some("priority" | "fast") => message.scale_cost(2.0),
                Some(_) | None => {}
            }
            if let Some(total) = counts.bill.total(message.model()) {
                message.set_billed(total);
            }
        }
        let status = response.status.unwrap_or_else(|| "completed".to_owned());
        let reason = response.incomplete_details.and_then(|details| details.reason);
        message.set_raw_stop_reason(&reason.as_ref().map_or(status.clone(), |reason| format!("{status}.{reason}")));
        match (status.as_str(), reason.as_deref()) {
            ("completed", _) => match self.unfinished_call() {
                Some(call) => {
                    let text = format!("a call of {} was never finished ({})", call.name, call.call_id);
                    mixed_up(&text, message);
                }
                None => message.finish(StopReason::Stop),
            },
            ("incomplete", Some("max_output_tokens")) => message.finish(StopReason::Length),
            ("incomplete", reason) => {
                let text = format!("Response incomplete: {}", reason.unwrap_or("unknown"));
                message.fail(Fault::new(ErrorKind::InvalidRequest, text));
            }
            _ => failed(raw, message),
        }
    }

    /// Returns a call that has begun and of which the server did not say that it is done. Its arguments may be cut or
    /// mixed with those of others.
    fn unfinished_call(&self) -> Option<&CallKey> {
        self.items.iter().filter(|item| !item.is_done).find_map(|item| item.call.as_ref())
    }

    /// Takes the encrypted reasoning, which the next request needs, from the whole response. Some servers send it only
    /// there.
    fn complete_reasoning(&mut self, output: Vec<Value>, message: &mut MessageBuilder) {
        for (place, mut item) in self.reasoning.drain(..) {
            let same = |other: &&Value| other["type"] == "reasoning" && other["id"] == item["id"];
            let found = output.iter().find(same).and_then(|other| other.get("encrypted_content"));
            if let Some(content) = found.filter(|content| !content.is_null()).cloned() {
                item["encrypted_content"] = content;
                message.set_signature(place, item.to_string());
            }
        }
    }
}

impl Shown {
    /// Whether an item is this one. What a call is called does not change, other than the ids of items.
    fn is_same(&self, item: &Item) -> bool {
        match &self.call {
            Some(call) => item.is_call() && call.call_id == item.call_id && call.name == item.name,
            None => !item.is_call() && (!self.is_done || (!item.id.is_empty() && self.id == item.id)),
        }
    }
}

/// Ends an answer whose calls cannot be told apart: none of them is to be run.
fn mixed_up(what: &str, message: &mut MessageBuilder) {
    message.fail(Fault::new(ErrorKind::Protocol, format!("OpenAI Responses stream is mixed up: {what}")));
}

fn open(item: &Item, message: &mut MessageBuilder) -> Option<usize> {
    match item.r#type.as_str() {
        "reasoning" => Some(message.open_thinking()),
        "message" => Some(message.open_text()),
        "function_call" => Some(message.open_call(&format!("{}|{}", item.call_id, item.id), &item.name)),
        // Hosted tools and whatever comes later: nothing we could show or answer.
        _ => None,
    }
}

fn usage(counts: &Counts) -> Usage {
    let details = counts.input_tokens_details.as_ref();
    let cache_read = details.map_or(0, |details| details.cached_tokens.or_zero());
    let cache_write = details.map_or(0, |details| details.cache_write_tokens.or_zero());
    let reasoning = counts.output_tokens_details.as_ref().map_or(0, |details| details.reasoning_tokens.or_zero());
    Usage {
        input: counts.input_tokens.or_zero().saturating_sub(cache_read + cache_write),
        output: counts.output_tokens.or_zero(),
        cache_read,
        cache_write,
        reasoning: Some(reasoning),
        total_tokens: counts.total_tokens.or_zero(),
        ..Usage::default()
    }
}

fn as_word(code: &Value) -> String {
    code.as_str().map_or_else(|| code.to_string(), str::to_owned)
}

/// Ends the answer of a response that failed as a whole.
fn failed(raw: Option<&RawValue>, message: &mut MessageBuilder) {
    let response: Response = read(raw);
    if let Some(status) = &response.status {
        message.set_raw_stop_reason(status);
    }
    let provider = message.model().provider.clone();
    let fault = match (response.error, response.incomplete_details.and_then(|details| details.reason)) {
        (Some(error), _) => {
            let code = error.code.as_ref().map_or("unknown".to_owned(), as_word);
            let text = format!("{code}: {}", error.message.as_deref().unwrap_or("no message"));
            Fault::reported(&provider, Some(&code), cut(&text, MAX_ERROR_CHARS))
        }
        (None, Some(reason)) => Fault::reported(&provider, Some(&reason), format!("incomplete: {reason}")),
        (None, None) => {
            let status = response.status.as_deref().unwrap_or("failed");
            Fault::new(ErrorKind::Protocol, format!("Response {status} without a reason"))
        }
    };
    message.fail(fault);
}

/// Ends the answer at an `error` event.
fn reported(code: Option<&RawValue>, text: Loose<'_>, message: &mut MessageBuilder) {
    let code = as_word(&read::<Value>(code));
    let text = format!("Error Code {code}: {}", text.0.as_deref().unwrap_or("no message"));
    message.fail(Fault::reported(&message.model().provider, Some(&code), cut(&text, MAX_ERROR_CHARS)));
}
