//! The event stream of an Anthropic answer.

use std::borrow::Cow;

use pith_protocol::{ErrorKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::assemble::MessageBuilder;
use crate::failure::Fault;
use crate::sse::SseEvent;
use crate::wire::common::{Bill, Count, Text};
use crate::wire::stop_reason::finish_unknown;
use crate::wire::{Decoder, MAX_ERROR_CHARS, cut, parse};

const REDACTED: &str = "[Reasoning redacted]";

/// All events in one flat shape: the fields present say what it is.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<BlockStart<'a>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
}

#[derive(Deserialize)]
struct StopDetails<'a> {
    #[serde(borrow, default)]
    explanation: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: Option<CacheCreation>,
    output_tokens_details: Option<OutputDetails>,
    #[serde(flatten)]
    bill: Bill,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Text<'a>>,
}

/// State of one stream.
#[derive(Default)]
pub(super) struct Stream {
    /// The server's block numbers and ours; they need not be equal.
    blocks: Vec<Numbered>,
    usage: Usage,
    has_begun: bool,
    stop_reason: Option<String>,
    explanation: Option<String>,
}

struct Numbered {
    theirs: Option<u64>,
    /// Nothing for blocks that are not shown.
    ours: Option<usize>,
    /// Of a call.
    call: Option<Call>,
}

struct Call {
    id: String,
    /// Input that came whole with its start.
    input: Option<String>,
    is_done: bool,
}

impl Decoder for Stream {
    fn event(&mut self, event: SseEvent<'_>, message: &mut MessageBuilder) {
        if event.data.is_empty() || event.data == "[DONE]" || event.name == "ping" {
            return;
        }
        let mut mended = String::new();
        let parsed = match parse::<Event<'_>>(event.data, &mut mended) {
            Ok(parsed) => parsed,
            // An event of a kind yet to come may use our field names in its own way, and one without a name may be
            // no event of this API at all.
            Err(_) if is_unknown(event.name) => return,
            Err(fault) => return message.fail(fault),
        };
        let kind = if parsed.kind.is_empty() { event.name } else { &parsed.kind };
        match kind {
            "content_block_delta" => self.delta(parsed.index, parsed.delta, message),
            "content_block_start" => self.block_start(parsed.index, parsed.content_block, message),
            "content_block_stop" => self.block_stop(parsed.index, message),
            "message_start" => {
                let head = parsed.message.and_then(|head| serde_json::from_str(head.get()).ok());
                self.begin(head, message);
            }
            "message_delta" => self.message_delta(parsed.delta, parsed.usage, message),
            "message_stop" => self.stop(message),
            "error" => {
                let body = parsed.error.and_then(|error| serde_json::from_str::<ErrorBody<'_>>(error.get()).ok());
                let code = body.as_ref().and_then(|body| body.kind.as_ref()).map(Text::as_str);
                let text = cut(event.data, MAX_ERROR_CHARS);
                message.fail(Fault::reported(&message.model().provider, code, text));
            }
            _ => {}
        }
    }

    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        let text = if self.has_begun {
            "Anthropic stream ended before message_stop"
        } else {
            "Anthropic stream ended without a stop reason"
        };
        message.fail(fault.unwrap_or_else(|| Fault::new(ErrorKind::Network, text)));
    }
}

fn is_unknown(name: &str) -> bool {
    name != "error" && !name.starts_with("message_") && !name.starts_with("content_block_")
}

/// Ends an answer whose calls cannot be told apart: none of them is to be run.
fn mixed_up(what: &str, message: &mut MessageBuilder) {
    message.fail(Fault::new(ErrorKind::Protocol, format!("Anthropic stream is mixed up: {what}")));
}

impl Stream {
    fn begin(&mut self, head: Option<Head<'_>>, message: &mut MessageBuilder) {
        self.has_begun = true;
        if let Some(head) = head {
            message.set_response_id(head.id.as_ref().map_or("", Text::as_str));
            message.set_response_model(head.model.as_ref().map_or("", Text::as_str));
            self.usage.cache_write_1h = Some(0);
            self.count(head.usage, message);
        }
        message.begin();
    }

    /// Takes the counts that are present; the others keep their value.
    fn count(&mut self, counts: Option<Counts>, message: &mut MessageBuilder) {
        let Some(counts) = counts else { return };
        let set = |field: &mut u64, count: Count| *field = count.0.unwrap_or(*field);
        set(&mut self.usage.input, counts.input_tokens);
        set(&mut self.usage.output, counts.output_tokens);
        set(&mut self.usage.cache_read, counts.cache_read_input_tokens);
        set(&mut self.usage.cache_write, counts.cache_creation_input_tokens);
        if let Some(Count(Some(long))) = counts.cache_creation.map(|created| created.ephemeral_1h_input_tokens) {
            self.usage.cache_write_1h = Some(long);
        }
        if let Some(Count(Some(thinking))) = counts.output_tokens_details.map(|details| details.thinking_tokens) {
            self.usage.reasoning = Some(thinking);
        }
        message.set_usage(Usage { total_tokens: 0, ..self.usage.clone() });
        if let Some(total) = counts.bill.total(message.model()) {
            message.set_billed(total);
        }
    }

    fn block_start(&mut self, index: Option<u64>, start: Option<BlockStart<'_>>, message: &mut MessageBuilder) {
        let Some(start) = start else { return };
        let text = |text: &Option<Text<'_>>| text.as_ref().map_or(String::new(), |text| text.0.to_string());
        let is_call = start.kind == "tool_use";
        if let Some(other) = self.blocks.iter().rfind(|block| block.theirs == index) {
            match &other.call {
                // The same start once more.
                Some(call) if is_call && call.id == text(&start.id) && !call.id.is_empty() => return,
                Some(call) if !call.is_done => return mixed_up("two blocks have one number", message),
                None if is_call && other.ours.is_some() => return mixed_up("two blocks have one number", message),
                Some(_) | None => {}
            }
        }
        let mut call = None;
        let ours = match &*start.kind {
            "text" => Some(message.open_text()),
            "thinking" => Some(message.open_thinking()),
            "redacted_thinking" => {
                let ours = message.open_thinking();
                message.push(ours, REDACTED.into());
                message.set_signature(ours, start.data.map(|data| data.0.into_owned()).unwrap_or_default());
                message.set_redacted(ours);
                Some(ours)
            }
            "tool_use" if index.is_none() => return mixed_up("a call came without the number of its block", message),
            "tool_use" => {
                let input = start.input.map(|input| input.get().to_owned()).filter(|input| input.len() > "{}".len());
                call = Some(Call { id: text(&start.id), input, is_done: false });
                Some(message.open_call(&text(&start.id), &text(&start.name)))
            }
            // Server-side tools and whatever comes later: nothing we could show or replay.
            _ => None,
        };
        self.blocks.push(Numbered { theirs: index, ours, call });
        let Some(ours) = ours else { return };
        if let Some(text) = start.text.or(start.thinking) {
            message.push(ours, text.0);
        }
        if let Some(signature) = start.signature.filter(|signature| !signature.0.is_empty()) {
            message.push_signature(ours, signature.as_str());
        }
    }

    fn delta(&mut self, index: Option<u64>, delta: Option<Delta<'_>>, message: &mut MessageBuilder) {
        let Some(delta) = delta else { return };
        // The block that grows is almost always the newest one.
        let block = self.blocks.iter_mut().rev().find(|block| block.theirs == index);
        if let Some(json) = delta.partial_json {
            return match block {
                Some(Numbered { ours: Some(ours), call: Some(call), .. }) if !call.is_done => {
                    if !json.0.is_empty() {
                        call.input = None;
                    }
                    message.push(*ours, json.0);
                }
                Some(Numbered { ours: None, .. }) => {}
                _ if json.0.is_empty() => {}
                _ => mixed_up("input came without the call it belongs to", message),
            };
        }
        let Some(ours) = block.filter(|block| block.call.is_none()).and_then(|block| block.ours) else { return };
        if let Some(text) = delta.text.or(delta.thinking) {
            message.push(ours, text.0);
        } else if let Some(signature) = delta.signature {
            message.push_signature(ours, signature.as_str());
        }
    }

    fn block_stop(&mut self, index: Option<u64>, message: &mut MessageBuilder) {
        let Some(at) = self.blocks.iter().rposition(|block| block.theirs == index) else { return };
        let block = &mut self.blocks[at];
        if let Some(ours) = block.ours {
            let input = block.call.as_mut().and_then(|call| call.input.take());
            if let Some(input) = input {
                message.push(ours, input.into());
            }
            message.close(ours);
        }
        match &mut block.call {
            // Remembered, as it may be sent again.
            Some(call) => call.is_done = true,
            None => _ = self.blocks.remove(at),
        }
    }

    /// Ends the blocks that the server forgot to stop. False if the input of a call may still be missing.
    fn stop_blocks(&mut self, message: &mut MessageBuilder) -> bool {
        self.blocks.iter_mut().all(|block| {
            let Some(ours) = block.ours.filter(|ours| message.is_open(*ours)) else { return true };
            let input = block.call.as_mut().and_then(|call| call.input.take());
            if let Some(input) = input {
                message.push(ours, input.into());
            }
            let is_whole = block.call.is_none() || message.has_whole_arguments(ours);
            if is_whole {
                message.close(ours);
            }
            is_whole
        })
    }

    fn message_delta(&mut self, delta: Option<Delta<'_>>, usage: Option<Counts>, message: &mut MessageBuilder) {
        self.count(usage, message);
        let Some(delta) = delta else { return };
        if let Some(reason) = delta.stop_reason {
            message.set_raw_stop_reason(reason.as_str());
            self.stop_reason = Some(reason.0.into_owned());
        }
        if let Some(explanation) = delta.stop_details.and_then(|details| details.explanation) {
            self.explanation = Some(explanation.0.into_owned());
        }
    }

    fn stop(&mut self, message: &mut MessageBuilder) {
        let is_whole = self.stop_blocks(message);
        let reason = self.stop_reason.as_deref();
        let runs_nothing = ["max_tokens", "refusal", "sensitive", "model_context_window_exceeded"];
        if !is_whole && reason.is_some_and(|reason| !runs_nothing.contains(&reason)) {
            return mixed_up("a call was never finished", message);
        }
        let refused = |text: String| Fault::new(ErrorKind::InvalidRequest, text);
        match reason {
            Some("end_turn" | "stop_sequence" | "pause_turn") => message.finish(StopReason::Stop),
            Some("max_tokens") => message.finish(StopReason::Length),
            Some("tool_use") => message.finish(StopReason::ToolUse),
            Some("model_context_window_exceeded") => {
                message.fail(Fault::new(ErrorKind::Overflow, "model_context_window_exceeded"));
            }
            Some("refusal") => {
                let explanation = self.explanation.take();
                let text = explanation.unwrap_or_else(|| "The model refused to complete the request".to_owned());
                message.fail(refused(text));
            }
            Some("sensitive") => message.fail(refused("The answer was withheld as sensitive".to_owned())),
            Some(other) => {
                if !finish_unknown(other, message) {
                    message.fail(Fault::new(ErrorKind::Protocol, format!("Unhandled stop reason: {other}")));
                }
            }
            None => message.fail(Fault::new(ErrorKind::Network, "Anthropic stream ended without a stop reason")),
        }
    }
}
