//! The events of a response.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use pith_ai::{SseDecoder, WebResponse};

use super::target::Fault;
use crate::stdio::MAX_LINE;

/// One event.
pub struct Event {
    pub name: String,
    pub data: String,
}

/// A response whose events are to be read. Dropping it ends the stream.
pub struct Events {
    response: WebResponse,
    decoder: SseDecoder,
    waiting: VecDeque<Event>,
    is_over: bool,
}

impl Events {
    pub fn of(response: WebResponse) -> Self {
        Events { response, decoder: SseDecoder::with_limit(MAX_LINE), waiting: VecDeque::new(), is_over: false }
    }

    /// Returns the next event that has data, nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Event>, Fault> {
        while self.waiting.is_empty() && !self.is_over {
            let chunk = self.response.chunk().await.map_err(Fault::Unreachable)?;
            let waiting = &mut self.waiting;
            let mut keep = |event: pith_ai::SseEvent<'_>| {
                waiting.push_back(Event { name: event.name.to_owned(), data: event.data.to_owned() });
                ControlFlow::Continue(())
            };
            match chunk {
                Some(bytes) => {
                    if self.decoder.push(&bytes, &mut keep).is_err() {
                        return Err(Fault::Unusable(format!("sent an event longer than {} MiB", MAX_LINE >> 20)));
                    }
                }
                None => {
                    self.is_over = true;
                    let _ = self.decoder.finish(&mut keep);
                }
            }
        }
        Ok(self.waiting.pop_front())
    }
}
