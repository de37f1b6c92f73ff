//! Who asked for a replacement, and how they are answered.

use pith_ext::outgoing::{self, Answer};
use pith_protocol::CommandError;
use pith_protocol::answers::{Cancelled, Forked, Restored};
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};

use crate::checkpoints::Since;
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
        /// What became of the files, if they were to go back.
        files: Option<Restored>,
    },
}

/// Answers the host or the extension that asked. Answers with an error if it is dropped.
pub(crate) enum ReplacementReply {
    New(Reply<NewSession>),
    Switch(Reply<SwitchSession>),
    /// With the calls whose files are to go back.
    Fork(Reply<Fork>, Option<Since>),
    Branch(Reply<Branch>, Option<Since>),
    Clone(Reply<CloneSession>),
    Extension(Answer<outgoing::Replaced>),
}

impl ReplacementReply {
    /// Takes out the calls whose files are to go back, if there are any.
    pub fn take_undone(&mut self) -> Option<Since> {
        match self {
            ReplacementReply::Fork(_, undone) | ReplacementReply::Branch(_, undone) => undone.take(),
            ReplacementReply::New(_)
            | ReplacementReply::Switch(_)
            | ReplacementReply::Clone(_)
            | ReplacementReply::Extension(_) => None,
        }
    }

    pub fn send(self, out: &mut dyn Outbox, outcome: Result<ReplacementOutcome, CommandError>) {
        match self {
            ReplacementReply::New(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Switch(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Clone(reply) => reply.send(out, outcome.map(cancelled)),
            ReplacementReply::Fork(reply, _) => reply.send(out, outcome.map(forked)),
            ReplacementReply::Branch(reply, _) => reply.send(out, outcome.map(forked)),
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
        ReplacementOutcome::Cancelled => Forked { text: None, cancelled: true, restored: None, skipped: None },
        ReplacementOutcome::Done { text, files } => {
            let (restored, skipped) = files.map(|files| (files.restored, files.skipped)).unzip();
            Forked { text, cancelled: false, restored, skipped }
        }
    }
}
