//! Answers to extension code.

use std::fmt;
use std::marker::PhantomData;
use std::sync::mpsc::SyncSender;

use pith_protocol::host::UiAnswer;
use serde::Serialize;
use serde_json::json;

use crate::engine::inbox::{Inbox, Payload, ToEngine};

/// The answer to a promise of extension code. Dropped without an answer it rejects the promise.
#[must_use = "extension code waits for an answer"]
pub struct Answer<T> {
    op: u64,
    /// `None` once answered.
    inbox: Option<Inbox>,
    kind: PhantomData<fn(T)>,
}

/// Converts a value to what the JavaScript side expects.
pub trait Reply {
    #[doc(hidden)]
    fn payload(&self) -> Payload;
}

macro_rules! plain {
    ($($kind:ty),*) => {
        $(impl Reply for $kind {
            fn payload(&self) -> Payload {
                Payload::json(self)
            }
        })*
    };
}
plain!((), bool, serde_json::Value, super::Replaced, super::ModelAuth);

impl Reply for UiAnswer {
    fn payload(&self) -> Payload {
        Payload::json(&match self {
            UiAnswer::Value(value) => json!({ "value": value }),
            UiAnswer::Confirmed(confirmed) => json!({ "confirmed": confirmed }),
            // An answer of the wrong kind is never taken for consent.
            UiAnswer::Cancelled | UiAnswer::Malformed(_) => json!({ "cancelled": true }),
        })
    }
}

impl<T: Reply> Answer<T> {
    pub(crate) fn new(op: u64, inbox: Inbox) -> Self {
        Answer { op, inbox: Some(inbox), kind: PhantomData }
    }

    /// Resolves the waiting promise.
    pub fn send(mut self, value: T) {
        self.settle(Ok(value.payload()));
    }

    /// Rejects the waiting promise.
    pub fn fail(mut self, why: impl Into<String>) {
        self.settle(Err(why.into()));
    }
}

impl<T> Answer<T> {
    fn settle(&mut self, outcome: Result<Payload, String>) {
        if let Some(inbox) = self.inbox.take() {
            // A closed inbox means that the engine has ended.
            let _ = inbox.send(ToEngine::Settle { op: self.op, outcome });
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.settle(Err("The session did not answer".to_owned()));
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.op)
    }
}

/// The answer to a [`super::Query`], for which the engine's thread waits.
#[must_use = "the extension's thread waits for an answer"]
pub struct QueryReply<T> {
    reply: SyncSender<String>,
    kind: PhantomData<fn(T)>,
}

impl<T: Serialize> QueryReply<T> {
    pub(crate) fn new(reply: SyncSender<String>) -> Self {
        QueryReply { reply, kind: PhantomData }
    }

    /// Sends the answer. Never blocks.
    pub fn send(self, value: T) {
        // The thread may have stopped waiting.
        let _ = self.reply.try_send(serde_json::to_string(&value).expect("plain data serializes"));
    }
}

impl<T> fmt::Debug for QueryReply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueryReply")
    }
}
