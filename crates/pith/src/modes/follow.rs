//! Remembers the last answer, so that the end of the work can be reported with it.

use pith_protocol::{AssistantMessage, Block, ErrorKind, Event, Message, Response, StopReason, ToolResult};
use tokio::sync::mpsc;

use super::client::{Failure, Notice, Settled, Totals, answered};

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
            Event::AgentStart => self.last = Settled { totals: self.last.totals.clone(), ..Settled::default() },
            Event::MessageEnd { message } => self.note(message),
            Event::CompactionEnd { result: Some(result), .. } => {
                result.usage.iter().for_each(|usage| self.last.totals.usage.add(usage));
            }
            Event::ToolExecutionEnd { tool_name, result, .. } if is_refused(result) => {
                let text = result.content.iter().filter_map(Block::as_text).collect::<String>();
                self.last.totals.refused.get_or_insert_with(|| format!("{tool_name} was not run. {text}"));
            }
            Event::AgentSettled { aborted, limit } => {
                let mut settled = Settled { is_limited: limit.is_some(), ..self.last.clone() };
                // An abort during a retry delay leaves the failure as the last answer.
                if let Some(failure) = settled.failure.as_mut().filter(|_| *aborted) {
                    failure.is_on_purpose = true;
                }
                let _ = self.notices.send(Notice::Settled(settled));
            }
            _ => {}
        }
    }

    fn note(&mut self, message: &Message) {
        match message {
            Message::Assistant(answer) => {
                let mut totals = std::mem::take(&mut self.last.totals);
                totals.usage.add(&answer.usage);
                totals.n_turns += u32::from(!answer.failed());
                self.last = Settled { totals, ..settled(answer) };
            }
            Message::ToolResult(result) => {
                result.usage.iter().for_each(|usage| self.last.totals.usage.add(usage));
            }
            _ => {}
        }
    }
}

/// Whether rules or the user have refused a call.
fn is_refused(result: &ToolResult) -> bool {
    result.details.as_ref().is_some_and(|details| details["permission"]["decision"] == "deny")
}

/// How the work ended, if this was its last answer.
pub fn settled(answer: &AssistantMessage) -> Settled {
    let is_limit = answer.error.as_ref().is_some_and(|failure| failure.kind == ErrorKind::Limit);
    let failure = |usual: &str, is_on_purpose| Failure {
        text: answer.error_message.clone().unwrap_or_else(|| usual.to_owned()),
        provider: answer.provider.clone(),
        is_on_purpose,
        cause: answer.error.clone(),
    };
    Settled {
        text: answer.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
        stop_reason: Some(answer.stop_reason),
        failure: match answer.stop_reason {
            StopReason::Error => Some(failure("Request error", is_limit)),
            StopReason::Aborted => Some(failure("Request aborted", true)),
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => None,
        },
        is_limited: false,
        totals: Totals::default(),
    }
}
