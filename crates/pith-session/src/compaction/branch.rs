//! The summary of a branch that `navigate_tree` leaves.

use std::sync::Arc;

use pith_ai::message_tokens;
use pith_protocol::Message;

use super::files::FileLists;
use super::material::{Author, Summary};
use super::prompts;
use super::serialise::paragraphs;
use super::summariser::{Instructions, Summariser, SummaryFailure};

/// The window assumed for a model without a known one.
const USUAL_WINDOW: u64 = 128_000;

const INTRODUCTION: &str = "The person explored another branch of this conversation before coming back here. \
                            What happened on it:\n\n";
const NOTHING: &str = "No content to summarize";

/// Everything a branch summary is written from.
pub(crate) struct BranchMaterial {
    messages: Vec<Arc<Message>>,
    files: FileLists,
    instructions: String,
}

impl BranchMaterial {
    /// Takes the newest messages that fit the window.
    pub fn new(
        messages: &[Arc<Message>],
        mut files: FileLists,
        window: u64,
        reserve: u64,
        instructions: Option<&str>,
        replaces: bool,
    ) -> Self {
        files.add(messages);
        let window = if window == 0 { USUAL_WINDOW } else { window };
        let messages = newest(messages, window - reserve.min(window / 4));
        BranchMaterial { messages, files, instructions: prompts::branch(instructions, replaces) }
    }

    /// Writes the summary.
    pub async fn summarise(self, mut summariser: Summariser) -> Result<Summary, SummaryFailure> {
        let paragraphs = paragraphs(&self.messages);
        let text = if paragraphs.is_empty() {
            NOTHING.to_owned()
        } else {
            let (first, further) = (self.instructions.clone(), self.instructions);
            let instructions = Instructions { first, further };
            let summary = summariser.fold(paragraphs, None, &instructions).await?;
            format!("{INTRODUCTION}{summary}{}", self.files.blocks())
        };
        Ok(Summary { text, details: Some(self.files.details()), usage: summariser.usage, author: Author::Model })
    }
}

/// Takes messages, newest first, until the budget is filled. A summary that exceeds it is still taken if less than nine
/// tenths are used.
fn newest(messages: &[Arc<Message>], budget: u64) -> Vec<Arc<Message>> {
    let mut used = 0;
    let mut taken = Vec::new();
    let shown = messages.iter().rev().filter(|message| !matches!(***message, Message::ToolResult(_)));
    for message in shown {
        let tokens = message_tokens(message);
        let is_summary = matches!(**message, Message::CompactionSummary(_) | Message::BranchSummary(_));
        if used + tokens > budget && !(is_summary && used * 10 < budget * 9) {
            break;
        }
        used += tokens;
        taken.push(message.clone());
    }
    taken.reverse();
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{BranchSummary, Content, ToolResultMessage, UserMessage};

    #[test]
    fn the_newest_messages_are_taken() {
        let text = |n: usize| "x".repeat(4 * n);
        let user = |n| Arc::new(Message::User(UserMessage { content: Content::Text(text(n)), ..Default::default() }));
        let summary = |n| Arc::new(Message::BranchSummary(BranchSummary { summary: text(n), ..Default::default() }));
        let result = Arc::new(Message::ToolResult(ToolResultMessage::default()));
        let check = |messages: &[Arc<Message>], budget, expected: &[Arc<Message>]| {
            assert_eq!(newest(messages, budget), expected)
        };
        check(&[user(10), user(11), user(12)], 23, &[user(11), user(12)]);
        check(&[user(10), result, user(12)], 30, &[user(10), user(12)]);
        check(&[summary(50), user(12)], 20, &[summary(50), user(12)]);
        check(&[summary(50), user(19)], 20, &[user(19)]);
        check(&[], 20, &[]);
    }
}
