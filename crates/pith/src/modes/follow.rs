//! Remembers the last answer, so that the end of the work can be reported with it.

use pith_protocol::{AssistantMessage, Block, ErrorKind, Event, Response, StopReason};
use tokio::sync::mpsc;

use super::client::{Failure, Notice, Settled, answered};

/// Turns frames into notices for the client.
pub struct Follower {
    /// To the client; ignored if it is gone.
    notices: mpsc::UnboundedSender<Notice>,
    last: Settled,
}

impl Follower {
    /// Creates a follower and the receiver of its notices.
    pub fn new() -> (Follower, mpsc::UnboundedReceiver<Notice>) {
        let (notices, receiver) = mpsc::unbounded_channel();
        (Follower { notices, last: Settled::default() }, receiver)
    }

    pub fn respond(&self, response: &Response<'_>) {
        if let Some(notice) = answered(response) {
            let _ = self.notices.send(notice);
        }
    }

    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentStart => self.last = Settled::default(),
            Event::MessageEnd { message } => {
                if let Some(answer) = message.as_assistant() {
                    self.last = settled(answer);
                }
            }
            Event::AgentSettled { aborted } => {
                let mut settled = self.last.clone();
                // An abort during a retry delay leaves the failure as the last answer.
                if *aborted {
                    settled.failure = settled.failure.map(|failure| Failure::Stopped(failure.into_text()));
                }
                let _ = self.notices.send(Notice::Settled(settled));
            }
            _ => {}
        }
    }
}

/// How the work ended, if this was its last answer.
pub fn settled(answer: &AssistantMessage) -> Settled {
    let text = |usual: &str| answer.error_message.clone().unwrap_or_else(|| usual.to_owned());
    let is_limit = answer.error.as_ref().is_some_and(|failure| failure.kind == ErrorKind::Limit);
    Settled {
        text: answer.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
        failure: match answer.stop_reason {
            StopReason::Error if is_limit => Some(Failure::Stopped(text("Limit reached"))),
            StopReason::Error => Some(Failure::Failed(text("Request error"))),
            StopReason::Aborted => Some(Failure::Stopped(text("Request aborted"))),
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => None,
        },
    }
}
