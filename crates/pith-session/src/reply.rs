//! The right, and the duty, to answer one command.

use std::marker::PhantomData;

use pith_protocol::{Answer, Call, Id, Response, json};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::outbox::Outbox;

/// Answers a command exactly once. Dropped without an answer, it answers with an internal error.
#[must_use = "a command gets exactly one answer"]
pub struct Reply<C: Call> {
    id: Option<Id>,
    /// Tells the session of a reply that was dropped; the session then answers for it.
    owed: mpsc::UnboundedSender<Owed>,
    call: PhantomData<fn(C)>,
}

/// An answer nobody gave.
pub(crate) struct Owed {
    pub id: Id,
    pub command: &'static str,
}

impl<C: Call> Reply<C> {
    pub(crate) fn new(id: Id, owed: mpsc::UnboundedSender<Owed>) -> Self {
        Reply { id: Some(id), owed, call: PhantomData }
    }

    /// Sends the answer.
    pub fn send(mut self, out: &mut dyn Outbox, answer: Result<C::Answer, String>) {
        let id = self.id.take().unwrap_or_default();
        match answer {
            Ok(data) if C::Answer::HAS_DATA => {
                let data = RawValue::from_string(json::to_string(&data)).expect("the encoder writes JSON");
                out.respond(&Response::success(id.raw(), C::NAME, Some(&data)));
            }
            Ok(_) => out.respond(&Response::success(id.raw(), C::NAME, None)),
            Err(error) => out.respond(&Response::failure(id.raw(), C::NAME, &error)),
        }
    }

    /// Sends an answer that is JSON already.
    pub(crate) fn send_json(mut self, out: &mut dyn Outbox, answer: Result<String, String>) {
        let id = self.id.take().unwrap_or_default();
        match answer.map(RawValue::from_string) {
            Ok(Ok(data)) => out.respond(&Response::success(id.raw(), C::NAME, Some(&data))),
            Ok(Err(error)) => out.respond(&Response::failure(id.raw(), C::NAME, &format!("Internal error: {error}"))),
            Err(error) => out.respond(&Response::failure(id.raw(), C::NAME, &error)),
        }
    }

    /// The command's id, for events that carry it.
    pub fn id(&self) -> Id {
        self.id.clone().unwrap_or_default()
    }
}

impl<C: Call> Drop for Reply<C> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // The session may be gone at the very end; then nobody reads answers either.
            let _ = self.owed.send(Owed { id, command: C::NAME });
        }
    }
}
