//! Prompts that turn out to be impossible after they were accepted.
//!
//! Some hosts get their answer at once and are told under the same id if the prompt could not be sent. That frame is
//! not a second answer of a `Reply`; it exists only where the host's protocol has it.

use pith_protocol::{AssistantMessage, CommandError, ErrorCode, ErrorKind, Id, Response};

use crate::reply::InputReply;
use crate::session::Session;

/// An accepted prompt whose first answer has not come yet.
pub(crate) struct AcceptedPrompt {
    id: Id,
    command: &'static str,
}

impl Session {
    /// Remembers a prompt that is about to be accepted, if the host is to be told of a late failure.
    pub(crate) fn accepted_prompt(&self, reply: &InputReply) -> Option<AcceptedPrompt> {
        let (id, command) = reply.command().filter(|_| self.options.tells_late_failures)?;
        Some(AcceptedPrompt { id, command })
    }

    /// Looks at the first answer. If no credential could be obtained, nothing was sent, and the host is told that the
    /// prompt failed.
    pub(super) fn report_late_failure(&mut self, answer: &AssistantMessage) {
        let Some(accepted) = self.activity.work_mut().and_then(|work| work.accepted.take()) else { return };
        let is_refused =
            answer.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Auth && error.status.is_none());
        if let Some(why) = answer.error_message.as_deref().filter(|_| is_refused) {
            let error = CommandError::new(ErrorCode::ModelUnusable, why);
            self.out.respond(&Response::failure(accepted.id.raw(), accepted.command, &error));
        }
    }
}
