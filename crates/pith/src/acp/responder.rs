//! The answer to one request of the editor: it is given exactly once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::Arc;

use pith_acp::acp::Error;
use pith_acp::error;
use pith_acp::wire::{RequestId, append_answer};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::transport::writer::FrameQueue;

/// Requests that have no answer yet.
#[derive(Clone, Default)]
pub struct InFlight(Rc<Unanswered>);

#[derive(Default)]
struct Unanswered {
    /// What `$/cancel_request` fires for each.
    requests: RefCell<HashMap<RequestId, CancellationToken>>,
    /// Told whenever one is answered.
    answered: Notify,
}

impl InFlight {
    /// Fires the token of a request; unknown and answered ones are ignored.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.0.requests.borrow().get(id) {
            cancel.cancel();
        }
    }

    /// Fires the tokens of all requests.
    pub fn cancel_all(&self) {
        self.0.requests.borrow().values().for_each(CancellationToken::cancel);
    }

    /// Waits until every request has been answered.
    pub async fn all_answered(&self) {
        loop {
            let answered = self.0.answered.notified();
            if self.0.requests.borrow().is_empty() {
                return;
            }
            answered.await;
        }
    }

    /// Takes a request; `None` if there is one of that id.
    fn begin(&self, id: &RequestId) -> Option<CancellationToken> {
        match self.0.requests.borrow_mut().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => Some(place.insert(CancellationToken::new()).clone()),
        }
    }

    fn end(&self, id: &RequestId) {
        self.0.requests.borrow_mut().remove(id);
        self.0.answered.notify_waiters();
    }
}

/// Answers a request. Dropped without an answer, it answers with an internal error.
#[must_use = "a request gets exactly one answer"]
pub struct Responder {
    id: RequestId,
    queue: Arc<FrameQueue>,
    in_flight: InFlight,
    /// Fired when the editor withdraws the request.
    pub cancel: CancellationToken,
    is_answered: bool,
}

impl Responder {
    /// Takes a request; `None` if its id is that of another one under way, which is then refused.
    pub fn new(id: RequestId, queue: &Arc<FrameQueue>, in_flight: &InFlight) -> Option<Self> {
        let Some(cancel) = in_flight.begin(&id) else {
            let error = error::invalid_request("The id is that of a request under way");
            queue.push(|out| append_answer(out, &id, Err(&error)));
            return None;
        };
        Some(Responder { id, queue: queue.clone(), in_flight: in_flight.clone(), cancel, is_answered: false })
    }

    /// Sends the answer.
    pub fn send<T: Serialize>(self, answer: Result<T, Error>) {
        match answer {
            Ok(result) => self.succeed(&result),
            Err(error) => self.fail(&error),
        }
    }

    /// Sends the result.
    pub fn succeed<T: Serialize>(mut self, result: &T) {
        let result = RawValue::from_string(pith_protocol::json::to_string(result)).expect("the encoder writes JSON");
        self.write(Ok(&result));
    }

    /// Sends the error.
    pub fn fail(mut self, error: &Error) {
        self.write(Err(error));
    }

    fn write(&mut self, answer: Result<&RawValue, &Error>) {
        self.is_answered = true;
        self.queue.push(|out| append_answer(out, &self.id, answer));
        self.in_flight.end(&self.id);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_answered {
            self.write(Err(&error::internal("Internal error: the request was not answered")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::tests::Frames;

    #[test]
    fn a_request_whose_task_panics_is_answered() {
        let frames = Frames::default();
        let (queue, writer) = frames.queue();
        let in_flight = InFlight::default();
        let responder = Responder::new(RequestId::of_value(&7.into()), &queue, &in_flight).expect("a new id");
        let panics = std::panic::AssertUnwindSafe(move || {
            let _held = responder;
            panic!("a bug, as the test wants");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(in_flight.begin(&RequestId::of_value(&7.into())).is_some(), "the id is free again");
        let told = frames.written(&queue, writer);
        assert_eq!(told.len(), 1);
        assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&7.into(), &(-32603).into()));
    }
}
