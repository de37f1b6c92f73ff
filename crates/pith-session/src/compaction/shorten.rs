//! Shortens messages that are too large to keep: a note replaces the middle, and the whole text goes into a file.

use std::path::PathBuf;
use std::sync::Arc;

use pith_ai::message_tokens;
use pith_protocol::{Block, Content, Message};

/// Writes a text to a file; `None` if that is not possible.
pub(crate) type KeepText<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// A message and the content that replaces it.
#[derive(Debug, PartialEq)]
pub(crate) struct Shortening {
    /// Index in the messages that were passed in.
    pub at: usize,
    pub content: Content,
}

/// Messages are not shortened below this size.
const LEAST_TOKENS: u64 = 200;

/// Cuts the middle out of a text so that about `tokens` remain.
pub(crate) fn shorten(text: &str, tokens: u64, keep: KeepText<'_>) -> String {
    let limit = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let n_chars = text.chars().count();
    if n_chars <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..place(half)], &text[place(n_chars - half)..]);
    let n_cut = n_chars - 2 * half;
    let file = keep(text).map(|path| format!("; the whole text is in {}", path.display())).unwrap_or_default();
    format!("{head}\n\n[{n_cut} characters left out here because the context window is too small{file}]\n\n{tail}")
}

/// Shortens the largest prompts and tool results until the messages fit `room` tokens. `None` if they cannot be made to
/// fit.
pub(crate) fn shorten_tail(messages: &[Arc<Message>], room: u64, keep: KeepText<'_>) -> Option<Vec<Shortening>> {
    let mut sizes: Vec<u64> = messages.iter().map(|message| message_tokens(message)).collect();
    let mut targets: Vec<Option<u64>> = vec![None; messages.len()];
    let mut excess = sizes.iter().sum::<u64>().saturating_sub(room);
    while excess > 0 {
        let candidates = (0..messages.len()).filter(|at| targets[*at].is_none() && is_shortenable(&messages[*at]));
        let largest = candidates.max_by_key(|at| sizes[*at]).filter(|at| sizes[*at] > LEAST_TOKENS)?;
        let target = sizes[largest].saturating_sub(excess).max(LEAST_TOKENS);
        excess -= sizes[largest] - target;
        sizes[largest] = target;
        targets[largest] = Some(target);
    }
    let shortened = targets.into_iter().enumerate().filter_map(|(at, target)| {
        let text = shorten(&text_of(&messages[at]), target?, keep);
        Some(Shortening { at, content: Content::Blocks(vec![Block::text(text)]) })
    });
    Some(shortened.collect())
}

fn is_shortenable(message: &Message) -> bool {
    matches!(message, Message::User(_) | Message::ToolResult(_))
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.text(),
        Message::ToolResult(result) => result.content.iter().filter_map(Block::as_text).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{AssistantMessage, UserMessage};

    fn no_file(_: &str) -> Option<PathBuf> {
        None
    }

    fn user(n_tokens: usize) -> Arc<Message> {
        Arc::new(Message::User(UserMessage { content: Content::Text("x".repeat(4 * n_tokens)), ..Default::default() }))
    }

    #[test]
    fn the_middle_is_cut_and_the_file_has_the_whole_text() {
        let kept = std::cell::RefCell::new(String::new());
        let keep = |text: &str| {
            kept.replace(text.to_owned());
            Some(PathBuf::from("/tmp/t"))
        };
        let text = format!("begin{}end", "é".repeat(100));
        let short = shorten(&text, 5, &keep);
        assert!(short.starts_with("begin") && short.ends_with("end") && short.contains("88 characters"), "{short}");
        assert!(short.contains("/tmp/t"));
        assert_eq!(*kept.borrow(), text);
        assert_eq!(shorten("small", 5, &keep), "small");
    }

    #[test]
    fn the_largest_messages_are_shortened_first() {
        let messages = [user(300), user(2000), user(1000)];
        let at =
            |room| shorten_tail(&messages, room, &no_file).map(|all| all.iter().map(|one| one.at).collect::<Vec<_>>());
        assert_eq!(at(4000), Some(vec![]));
        assert_eq!(at(2000), Some(vec![1]));
        assert_eq!(at(1400), Some(vec![1, 2]));
        assert_eq!(at(100), None);
        let answer =
            Message::Assistant(AssistantMessage { content: vec![Block::text("x".repeat(9999))], ..Default::default() });
        assert_eq!(shorten_tail(&[Arc::new(answer)], 100, &no_file), None);
    }
}
