//! What a run begins with.

use pith_agent::Opening;
use pith_protocol::CustomMessage;
use pith_store::InputId;

use crate::admission::UserInput;

/// What a run begins with.
pub(crate) struct RunStart {
    pub opening: Opening,
    /// What started it, if `before_agent_start` handlers are to see it.
    pub prompted: Option<StartedBy>,
    /// The store's record of the prompt, until its message is an entry.
    pub input: Option<InputId>,
}

/// What starts a run.
pub(crate) enum StartedBy {
    Prompt(UserInput),
    /// A message that an extension sent to start it.
    Message(CustomMessage),
}

impl RunStart {
    /// Starts a run without a prompt.
    pub fn with(opening: Opening) -> Self {
        RunStart { opening, prompted: None, input: None }
    }
}
