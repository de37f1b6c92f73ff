//! Prompts that were accepted before all was known.
//!
//! Some hosts get their answer at once and are told under the same id if the
//! prompt then turns out to be impossible. That frame is not a second answer of
//! a `Reply`: it exists only where the host's protocol has it.

use pith_protocol::{AssistantMessage, ErrorKind, Id, Response};

use crate::reply::InputReply;
use crate::session::Session;

/// A prompt whose run has not been heard of yet.
pub(crate) struct AcceptedPrompt {
    id: Id,
    command: &'static str,
}

impl Session {
    /// What to remember of a prompt that is about to be accepted, where a later failure is to be told.
    pub(crate) fn accepted_prompt(&self, reply: &InputReply) -> Option<AcceptedPrompt> {
        let (id, command) = reply.command().filter(|_| self.options.tells_late_failures)?;
        Some(AcceptedPrompt { id, command })
    }

    /// Looks at the first answer: a credential that could not be had means that nothing was ever asked.
    pub(super) fn judge_accepted(&mut self, answer: &AssistantMessage) {
        let Some(accepted) = self.activity.work_mut().and_then(|work| work.accepted.take()) else { return };
        let is_refused =
            answer.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Auth && error.status.is_none());
        if let Some(why) = answer.error_message.as_deref().filter(|_| is_refused) {
            self.out.respond(&Response::failure(accepted.id.raw(), accepted.command, why));
        }
    }
}
