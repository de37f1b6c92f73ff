//! The events of a response, and where a stream that was cut goes on.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use pith_ai::{SseDecoder, WebResponse};

use super::target::{Fault, Target};
use crate::stdio::MAX_LINE;

/// Servers that want a reader back sooner are not asked more often.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// How much of a stream is kept to be quoted: more than is shown, because secrets in it are looked for first.
const KEPT_BEGINNING: usize = 4096;

/// One event.
pub struct Event {
    pub name: String,
    pub data: String,
}

/// Where a stream goes on that was cut (`Last-Event-ID`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The last event that was read, if the server numbers them.
    pub last_id: Option<String>,
    /// How long the server wants a reader to wait.
    pub pause: Option<Duration>,
}

/// A response whose events are to be read. Dropping it ends the stream.
pub struct Events {
    response: WebResponse,
    decoder: SseDecoder,
    waiting: VecDeque<Event>,
    place: Place,
    is_over: bool,
    /// The first bytes of the stream.
    beginning: Vec<u8>,
}

impl Events {
    /// Reads a stream that goes on at a place, or begins.
    pub fn of(response: WebResponse, place: Place) -> Self {
        Events {
            response,
            decoder: SseDecoder::with_limit(MAX_LINE),
            waiting: VecDeque::new(),
            place,
            is_over: false,
            beginning: Vec::new(),
        }
    }

    /// Where the stream goes on if it was cut here.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Says of what kind the stream was that has ended too early.
    pub fn end(&self, before: &str, target: &Target) -> Fault {
        let (status, beginning) = (self.response.status, target.quoted(&self.beginning));
        Fault::Unusable(format!("answered {status} and ended its stream before {before}{beginning}"))
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
                    let n_missing = KEPT_BEGINNING.saturating_sub(self.beginning.len()).min(bytes.len());
                    self.beginning.extend_from_slice(&bytes[..n_missing]);
                    if self.decoder.push(&bytes, &mut keep).is_err() {
                        return Err(Fault::Unusable(format!("sent an event longer than {} MiB", MAX_LINE >> 20)));
                    }
                    // An event that the end of the stream cuts is not counted as read.
                    if let Some(id) = self.decoder.last_id() {
                        self.place.last_id = Some(id.to_owned());
                    }
                    self.place.pause = self.decoder.retry().map(|pause| pause.max(SHORTEST_PAUSE)).or(self.place.pause);
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
