//! Prompts that were accepted before all was known.
//!
//! Some hosts get their answer at once and are told under the same id if the
//! prompt then turns out to be impossible. That frame is not a second answer of
//! a `Reply`: it exists only where the host's protocol has it.

use pith_protocol::{AssistantMessage, Call, ErrorKind, Id, Response};

use crate::reply::Reply;
use crate::session::Session;

/// A prompt whose run has not been heard of yet.
pub(crate) struct Accepted {
    id: Id,
    command: &'static str,
}

impl Session {
    /// Remembers an accepted prompt where a later failure is to be told.
    pub(crate) fn accept<C: Call>(&mut self, reply: &Reply<C>) {
        self.accepted = (self.options.tells_late_failures && reply.is_hosts())
            .then(|| Accepted { id: reply.id(), command: C::NAME });
    }

    /// Tells that the accepted prompt could not be carried out after all.
    pub(crate) fn fail_accepted(&mut self, why: &str) {
        if let Some(accepted) = self.accepted.take() {
            self.out.respond(&Response::failure(accepted.id.raw(), accepted.command, why));
        }
    }

    /// The first answer decides: a credential that could not be had means that nothing was ever asked.
    pub(crate) fn judge_accepted(&mut self, answer: &AssistantMessage) {
        let is_refused =
            answer.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Auth && error.status.is_none());
        match answer.error_message.as_deref().filter(|_| is_refused) {
            Some(why) => self.fail_accepted(why),
            None => self.accepted = None,
        }
    }
}
