//! The reply to one command: it is answered exactly once.

use pith_protocol::answers::PromptDisposition;
use pith_protocol::commands::{AbortAndPrompt, FollowUp, Prompt, Steer};
use pith_protocol::{Answer, Call, CommandError, Id, Response, json};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::failure;
use crate::outbox::Outbox;

/// Answers a command exactly once. Dropped without an answer, it answers with an internal error.
#[must_use = "a command gets exactly one answer"]
pub struct Reply<C: Call> {
    /// `None` once answered.
    to: Option<Asker<C>>,
}

/// Who sent the command.
enum Asker<C: Call> {
    Host {
        id: Id,
        /// Receives the command if the reply is dropped; the session then answers with an error.
        unanswered: mpsc::UnboundedSender<Unanswered>,
    },
    /// An extension. The callback fails the extension's call when it is dropped.
    Extension(Box<dyn FnOnce(Result<C::Answer, CommandError>) + Send>),
}

/// A command whose reply was dropped without an answer.
pub(crate) struct Unanswered {
    pub id: Id,
    pub command: &'static str,
}

/// The reply to any command that gives the model something to do.
pub(crate) enum InputReply {
    Prompt(Reply<Prompt>),
    AbortAndPrompt(Reply<AbortAndPrompt>),
    Steer(Reply<Steer>),
    FollowUp(Reply<FollowUp>),
}

impl<C: Call> Reply<C> {
    pub(crate) fn new(id: Id, unanswered: mpsc::UnboundedSender<Unanswered>) -> Self {
        Reply { to: Some(Asker::Host { id, unanswered }) }
    }

    /// Creates the reply to a command that an extension sent.
    pub(crate) fn to_extension(answer: impl FnOnce(Result<C::Answer, CommandError>) + Send + 'static) -> Self {
        Reply { to: Some(Asker::Extension(Box::new(answer))) }
    }

    /// Sends the answer.
    pub fn send(mut self, out: &mut dyn Outbox, answer: Result<C::Answer, CommandError>) {
        let id = match self.to.take() {
            Some(Asker::Host { id, .. }) => id,
            Some(Asker::Extension(take)) => return take(answer),
            None => return,
        };
        match answer {
            Ok(data) if C::Answer::HAS_DATA => {
                let data = RawValue::from_string(json::to_string(&data)).expect("the encoder writes JSON");
                out.respond(&Response::success(id.raw(), C::NAME, Some(&data)));
            }
            Ok(_) => out.respond(&Response::success(id.raw(), C::NAME, None)),
            Err(error) => out.respond(&Response::failure(id.raw(), C::NAME, &error)),
        }
    }

    /// Sends an answer that is JSON already. Only hosts use commands with such answers.
    pub(crate) fn send_json(mut self, out: &mut dyn Outbox, answer: Result<String, CommandError>) {
        let Some(Asker::Host { id, .. }) = self.to.take() else { return };
        match answer.map(RawValue::from_string) {
            Ok(Ok(data)) => out.respond(&Response::success(id.raw(), C::NAME, Some(&data))),
            Ok(Err(error)) => {
                let error = failure::internal(format!("Internal error: {error}"));
                out.respond(&Response::failure(id.raw(), C::NAME, &error));
            }
            Err(error) => out.respond(&Response::failure(id.raw(), C::NAME, &error)),
        }
    }

    /// The command's id, for events that carry it.
    pub fn id(&self) -> Id {
        match &self.to {
            Some(Asker::Host { id, .. }) => id.clone(),
            _ => Id::default(),
        }
    }

    /// Whether a host sent the command.
    pub(crate) fn is_hosts(&self) -> bool {
        matches!(self.to, Some(Asker::Host { .. }))
    }
}

impl<C: Call> Drop for Reply<C> {
    fn drop(&mut self) {
        if let Some(Asker::Host { id, unanswered }) = self.to.take() {
            // The receiver is gone only after the session has ended, when no answers are written any more.
            let _ = unanswered.send(Unanswered { id, command: C::NAME });
        }
    }
}

impl InputReply {
    /// Sends the answer.
    pub fn send(self, out: &mut dyn Outbox, answer: Result<PromptDisposition, CommandError>) {
        match self {
            InputReply::Prompt(reply) => reply.send(out, answer),
            InputReply::AbortAndPrompt(reply) => reply.send(out, answer),
            InputReply::Steer(reply) => reply.send(out, answer),
            InputReply::FollowUp(reply) => reply.send(out, answer),
        }
    }

    /// The id and name of the host's command; `None` if an extension asked.
    pub fn command(&self) -> Option<(Id, &'static str)> {
        fn of<C: Call>(reply: &Reply<C>) -> Option<(Id, &'static str)> {
            reply.is_hosts().then(|| (reply.id(), C::NAME))
        }
        match self {
            InputReply::Prompt(reply) => of(reply),
            InputReply::AbortAndPrompt(reply) => of(reply),
            InputReply::Steer(reply) => of(reply),
            InputReply::FollowUp(reply) => of(reply),
        }
    }
}
