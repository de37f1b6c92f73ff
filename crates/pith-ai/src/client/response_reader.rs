//! Turns the bytes of a response into an answer.

use std::ops::ControlFlow;

use pith_protocol::ErrorKind;
use serde_json::Value;

use crate::assemble::MessageBuilder;
use crate::failure::Fault;
use crate::sse::{EventTooLong, MAX_EVENT_BYTES, SseDecoder, SseEvent};
use crate::wire::{self, Decoder, Wire};

/// Turns the bytes of one response into an answer.
pub(super) struct ResponseReader {
    wire: &'static dyn Wire,
    sse: SseDecoder,
    decoder: Box<dyn Decoder>,
    n_events: u64,
    /// The beginning of a response that has no events so far; all of one that is a JSON document.
    pub head: Vec<u8>,
}

impl ResponseReader {
    pub fn new(wire: &'static dyn Wire) -> Self {
        ResponseReader { wire, sse: SseDecoder::default(), decoder: wire.decoder(), n_events: 0, head: Vec::new() }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8], message: &mut MessageBuilder) -> Result<(), Fault> {
        let too_long = |error: EventTooLong| Fault::new(ErrorKind::Protocol, error.to_string());
        if self.n_events == 0 && (self.head.len() < 4 * wire::MAX_ERROR_CHARS || self.is_document()) {
            self.head.extend_from_slice(bytes);
        }
        if self.n_events == 0 && self.is_document() {
            let is_bearable = self.head.len() <= MAX_EVENT_BYTES;
            return if is_bearable { Ok(()) } else { Err(too_long(EventTooLong(MAX_EVENT_BYTES))) };
        }
        let ResponseReader { sse, decoder, n_events, .. } = self;
        let mut handle = |event: SseEvent<'_>| decode(&mut **decoder, n_events, event, message);
        sse.push(bytes, &mut handle).map(|_| ()).map_err(too_long)
    }

    /// Whether the response begins like JSON, which no event stream does.
    fn is_document(&self) -> bool {
        matches!(self.head.trim_ascii_start().first(), Some(b'{' | b'['))
    }

    /// Whether what came so far is not an event stream at all.
    pub fn is_foreign(&mut self) -> bool {
        self.n_events == 0 && !self.sse.has_pending_data() && !self.head.trim_ascii().is_empty()
    }

    /// Reads a response that is a whole answer instead of a stream. False if it is not an answer.
    pub fn end_unstreamed(&mut self, message: &mut MessageBuilder) -> bool {
        let document: Option<Value> = serde_json::from_slice(&self.head).ok();
        let is_error = |document: &Value| document.get("error").is_some_and(|error| !error.is_null());
        let document = document.filter(|document| !is_error(document));
        let Some(events) = document.and_then(|document| self.wire.unstreamed(document)) else { return false };
        for (name, data) in events {
            if !message.is_finished() {
                self.decoder.event(SseEvent { name, data: &data.to_string() }, message);
            }
        }
        self.end(None, message);
        true
    }

    /// Called at the end of the response, with the fault that cut it, if any.
    pub fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        let ResponseReader { sse, decoder, n_events, .. } = self;
        // A cut may have left half an event behind; only a proper end completes it.
        if fault.is_none() {
            let _ = sse.finish(&mut |event: SseEvent<'_>| decode(&mut **decoder, n_events, event, message));
        }
        if !message.is_finished() {
            decoder.end(fault, message);
        }
    }
}

fn decode(
    decoder: &mut dyn Decoder,
    n_events: &mut u64,
    event: SseEvent<'_>,
    message: &mut MessageBuilder,
) -> ControlFlow<()> {
    *n_events += 1;
    decoder.event(event, message);
    if message.is_finished() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
