//! The session as extensions look at it: questions answered from its state alone.

use pith_ext::Query;
use pith_ext::outgoing::PromptView;

use crate::session::Session;

impl Session {
    /// The extension's thread waits for this answer.
    pub(crate) fn answer_query(&mut self, query: Query) {
        match query {
            Query::SystemPrompt(reply) => {
                let (text, options) = (self.prompt_in_force().to_string(), self.system_prompt_options());
                reply.send(PromptView { text, options });
            }
            Query::BuildPrompt { options, reply } => reply.send(self.build_prompt(&options)),
            Query::Boundary { event, entries, reply } => reply.send(self.boundary_preview(&event, &entries)),
            other => drop(other),
        }
    }
}
