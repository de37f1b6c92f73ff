//! Who asked for a replacement, and what they are told.

use pith_ext::outgoing::{self, Answer};
use pith_protocol::answers::Cancelled;
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};
use serde_json::{Value, json};

use crate::outbox::Outbox;
use crate::reply::Reply;

/// How a replacement ended.
#[derive(Clone, Debug)]
pub(crate) enum Replaced {
    /// An extension, or the host itself, did not want it.
    Cancelled,
    Done {
        /// The prompt a fork takes back.
        text: Option<String>,
    },
}

/// Answers whoever asked. Dropped, it answers with an error.
pub(crate) enum ReplacementReply {
    New(Reply<NewSession>),
    Switch(Reply<SwitchSession>),
    Fork(Reply<Fork>),
    Branch(Reply<Branch>),
    Clone(Reply<CloneSession>),
    Extension(Answer<outgoing::Replaced>),
}

impl ReplacementReply {
    pub fn send(self, out: &mut dyn Outbox, outcome: Result<Replaced, String>) {
        match self {
            ReplacementReply::New(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Switch(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Clone(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Fork(reply) => reply.send(out, outcome.map(text)),
            ReplacementReply::Branch(reply) => reply.send(out, outcome.map(text)),
            ReplacementReply::Extension(answer) => match outcome {
                Ok(outcome) => answer.send(outgoing::Replaced { cancelled: cancelled(outcome).cancelled }),
                Err(why) => answer.fail(why),
            },
        }
    }
}

fn cancelled(outcome: Replaced) -> Cancelled {
    Cancelled { cancelled: matches!(outcome, Replaced::Cancelled) }
}

fn text(outcome: Replaced) -> Value {
    match outcome {
        Replaced::Cancelled => json!({"cancelled": true}),
        Replaced::Done { text } => json!({"text": text, "cancelled": false}),
    }
}
