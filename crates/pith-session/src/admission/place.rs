//! Where a prompt goes: it starts a run, joins a queue, or is refused.

use pith_agent::Queue;
use pith_protocol::StreamingBehavior;

/// Where an accepted prompt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Start,
    Queue(Queue),
}

/// The agent is busy and the prompt has no `streamingBehavior`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Decides by what the agent is doing. `streamingBehavior` is ignored while it is idle.
pub(crate) fn place(is_busy: bool, behavior: Option<StreamingBehavior>) -> Result<Placement, Busy> {
    match (is_busy, behavior) {
        (false, _) => Ok(Placement::Start),
        (true, Some(StreamingBehavior::Steer)) => Ok(Placement::Queue(Queue::Steering)),
        (true, Some(StreamingBehavior::FollowUp)) => Ok(Placement::Queue(Queue::FollowUp)),
        (true, None) => Err(Busy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_starts_a_run_or_joins_a_queue_or_is_refused() {
        assert_eq!(place(false, None), Ok(Placement::Start));
        assert_eq!(place(false, Some(StreamingBehavior::FollowUp)), Ok(Placement::Start));
        assert_eq!(place(true, Some(StreamingBehavior::Steer)), Ok(Placement::Queue(Queue::Steering)));
        assert_eq!(place(true, Some(StreamingBehavior::FollowUp)), Ok(Placement::Queue(Queue::FollowUp)));
        assert_eq!(place(true, None), Err(Busy));
    }
}
