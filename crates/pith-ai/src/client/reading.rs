//! The bytes of a response on their way to becoming an answer.

use std::ops::ControlFlow;

use pith_protocol::ErrorKind;

use crate::assemble::MessageBuilder;
use crate::failure::Fault;
use crate::sse::{SseDecoder, SseEvent};
use crate::wire::{self, Decoder, Wire};

/// The bytes of one response on their way to becoming an answer.
pub(super) struct Reading {
    sse: SseDecoder,
    decoder: Box<dyn Decoder>,
    n_events: u64,
    /// The beginning of a response that has no events so far.
    pub head: Vec<u8>,
}

impl Reading {
    pub fn new(wire: &dyn Wire) -> Self {
        Reading { sse: SseDecoder::default(), decoder: wire.decoder(), n_events: 0, head: Vec::new() }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8], message: &mut MessageBuilder) -> Result<(), Fault> {
        if self.n_events == 0 && self.head.len() < 4 * wire::MAX_ERROR_CHARS {
            self.head.extend_from_slice(bytes);
        }
        let Reading { sse, decoder, n_events, .. } = self;
        let mut handle = |event: SseEvent<'_>| decode(&mut **decoder, n_events, event, message);
        let pushed = sse.push(bytes, &mut handle);
        pushed.map(|_| ()).map_err(|error| Fault::new(ErrorKind::Protocol, error.to_string()))
    }

    /// Whether what came so far is not an event stream at all.
    pub fn is_foreign(&mut self) -> bool {
        self.n_events == 0 && !self.sse.has_pending_data() && !self.head.trim_ascii().is_empty()
    }

    /// The response is over: properly, or with the fault that cut it.
    pub fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        let Reading { sse, decoder, n_events, .. } = self;
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
