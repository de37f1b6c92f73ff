//! Who asked for a replacement, and how they are answered.

use pith_ext::outgoing::{self, Answer};
use pith_protocol::CommandError;
use pith_protocol::answers::{Cancelled, Forked};
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};

use crate::outbox::Outbox;
use crate::reply::Reply;

/// How a replacement ended.
#[derive(Clone, Debug)]
pub(crate) enum ReplacementOutcome {
    /// An extension refused it, or the host aborted it.
    Cancelled,
    Done {
        /// The text of the prompt that a fork left out.
        text: Option<String>,
    },
}

/// Answers the host or the extension that asked. Answers with an error if it is dropped.
pub(crate) enum ReplacementReply {
    New(Reply<NewSession>),
    Switch(Reply<SwitchSession>),
    Fork(Reply<Fork>),
    Branch(Reply<Branch>),
    Clone(Reply<CloneSession>),
    Extension(Answer<outgoing::Replaced>),
}

impl ReplacementReply {
    pub fn send(self, out: &mut dyn Outbox, outcome: Result<ReplacementOutcome, CommandError>) {
        match self {
            ReplacementReply::New(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Switch(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Clone(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Fork(reply) => reply.send(out, outcome.map(forked)),
            ReplacementReply::Branch(reply) => reply.send(out, outcome.map(forked)),
            ReplacementReply::Extension(answer) => match outcome {
                Ok(outcome) => answer.send(outgoing::Replaced { cancelled: cancelled(outcome).cancelled }),
                Err(why) => answer.fail(why),
            },
        }
    }
}

fn cancelled(outcome: ReplacementOutcome) -> Cancelled {
    Cancelled { cancelled: matches!(outcome, ReplacementOutcome::Cancelled) }
}

fn forked(outcome: ReplacementOutcome) -> Forked {
    match outcome {
        ReplacementOutcome::Cancelled => Forked { text: None, cancelled: true },
        ReplacementOutcome::Done { text } => Forked { text, cancelled: false },
    }
}
