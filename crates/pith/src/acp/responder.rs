//! The answer to one request of the editor: it is given exactly once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pith_acp::acp::Error;
use pith_acp::error;
use pith_acp::wire::{RequestId, append_answer};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::transport::writer::FrameQueue;

/// Requests that have no answer yet, and what `$/cancel_request` fires for each.
#[derive(Clone, Default)]
pub struct InFlight(Rc<RefCell<HashMap<RequestId, CancellationToken>>>);

impl InFlight {
    /// Fires the token of a request; unknown and answered ones are ignored.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = self.0.borrow().get(id) {
            cancel.cancel();
        }
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
        let cancel = CancellationToken::new();
        if in_flight.0.borrow().contains_key(&id) {
            let error = error::invalid_request("The id is that of a request under way");
            queue.push(|out| append_answer(out, &id, Err(&error)));
            return None;
        }
        in_flight.0.borrow_mut().insert(id.clone(), cancel.clone());
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
        self.in_flight.0.borrow_mut().remove(&self.id);
        self.queue.push(|out| append_answer(out, &self.id, answer));
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
        assert!(in_flight.0.borrow().is_empty());
        let told = frames.written(&queue, writer);
        assert_eq!(told.len(), 1);
        assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&7.into(), &(-32603).into()));
    }
}
