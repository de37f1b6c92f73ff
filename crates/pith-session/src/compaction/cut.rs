//! Finds where a conversation is cut: what is summarised and what is kept.

use std::ops::Range;
use std::sync::Arc;

use pith_ai::message_tokens;
use pith_protocol::Message;

/// A cut through the messages of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Whole turns to summarise.
    pub history: Range<usize>,
    /// The beginning of the turn that the cut divides; empty if it falls between turns.
    pub turn_prefix: Range<usize>,
    /// The first message that is kept.
    pub first_kept: usize,
}

/// Finds the cut that keeps about `keep` tokens; `None` if there is nothing to summarise. A message that crosses that
/// line is kept whole, unless more than `most` tokens would remain.
pub(crate) fn find(messages: &[Arc<Message>], keep: u64, most: u64) -> Option<Cut> {
    // The summary of an earlier compaction is merged into the new one, not summarised again.
    let start = messages.iter().take_while(|message| matches!(***message, Message::CompactionSummary(_))).count();
    let first_kept = cut_point(messages, start, keep, most)?;
    let turn_start = (start..=first_kept).rev().find(|at| opens_turn(&messages[*at]));
    let cut = match turn_start {
        Some(turn) if turn < first_kept => Cut { history: start..turn, turn_prefix: turn..first_kept, first_kept },
        _ => Cut { history: start..first_kept, turn_prefix: first_kept..first_kept, first_kept },
    };
    (!cut.history.is_empty() || !cut.turn_prefix.is_empty()).then_some(cut)
}

fn cut_point(messages: &[Arc<Message>], start: usize, keep: u64, most: u64) -> Option<usize> {
    let mut kept = 0;
    let reached = (start..messages.len()).rev().find(|at| {
        kept += message_tokens(&messages[*at]);
        kept >= keep
    });
    let candidates = || (start..messages.len()).filter(|at| can_open_context(&messages[*at]));
    let first = match reached {
        None => candidates().next(),
        Some(at) => candidates().find(|candidate| *candidate >= at).or_else(|| candidates().next_back()),
    }?;
    let fits = |at: &usize| messages[*at..].iter().map(|message| message_tokens(message)).sum::<u64>() <= most;
    candidates().filter(|at| *at >= first).find(fits).or_else(|| candidates().next_back())
}

/// Whether the kept part may begin here: a tool result is never separated from its call.
fn can_open_context(message: &Message) -> bool {
    !matches!(message, Message::ToolResult(_) | Message::Other(_))
}

fn opens_turn(message: &Message) -> bool {
    can_open_context(message) && !matches!(message, Message::Assistant(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{AssistantMessage, Block, CompactionSummary, Content, ToolResultMessage, UserMessage};

    /// Builds messages of ten tokens each. u: user, a: answer, t: tool result, s: summary.
    fn conversation(kinds: &str) -> Vec<Arc<Message>> {
        let text = || "x".repeat(40);
        let message = |kind| match kind {
            'u' => Message::User(UserMessage { content: Content::Text(text()), ..Default::default() }),
            'a' => Message::Assistant(AssistantMessage { content: vec![Block::text(text())], ..Default::default() }),
            't' => Message::ToolResult(ToolResultMessage { content: vec![Block::text(text())], ..Default::default() }),
            _ => Message::CompactionSummary(CompactionSummary { summary: text(), ..Default::default() }),
        };
        kinds.chars().map(message).map(Arc::new).collect()
    }

    fn check(kinds: &str, keep: u64, expected: Option<(Range<usize>, Range<usize>, usize)>) {
        let found = find(&conversation(kinds), keep, 1000).map(|cut| (cut.history, cut.turn_prefix, cut.first_kept));
        assert_eq!(found, expected, "{kinds} keeping {keep}");
    }

    #[test]
    fn cuts_fall_between_turns_or_split_one() {
        check("uaua", 20, Some((0..2, 2..2, 2)));
        check("uaua", 10, Some((0..2, 2..3, 3))); // the answer alone is kept, its question goes into the prefix
        check("uatatua", 20, Some((0..5, 5..5, 5)));
        check("uatata", 20, Some((0..0, 0..5, 5))); // never between a call and its result
        check("uatata", 30, Some((0..0, 0..3, 3)));
        check("suaua", 20, Some((1..3, 3..3, 3)));
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let first = |kinds: &str, keep, most| find(&conversation(kinds), keep, most).map(|cut| cut.first_kept);
        assert_eq!(first("uauaua", 30, 100), Some(3));
        assert_eq!(first("uauaua", 30, 20), Some(4));
        assert_eq!(first("uauaua", 30, 5), Some(5)); // something always stays
    }

    #[test]
    fn small_conversations_have_nothing_to_cut() {
        check("", 20, None);
        check("ua", 1000, None);
        check("u", 1, None);
        check("s", 1, None);
    }
}
