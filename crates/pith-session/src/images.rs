//! Pictures in user messages are made fit for the model before they enter the history.

use std::sync::Arc;

use pith_protocol::{Block, Content, Message};
use pith_tools::image;

/// How pictures are treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageRules {
    pub auto_resize: bool,
}

impl ImageRules {
    /// Normalises the pictures of the messages, off the event path and only where one needs it.
    pub async fn apply(self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        if !messages.iter().any(|message| has_work(message, self)) {
            return messages;
        }
        let unchanged = messages.clone();
        let work = move || messages.into_iter().map(|message| normalised(message, self)).collect();
        // A decoder that panics must not cost the prompt.
        tokio::task::spawn_blocking(work).await.unwrap_or(unchanged)
    }
}

fn has_work(message: &Message, rules: ImageRules) -> bool {
    let Message::User(user) = message else { return false };
    let Content::Blocks(blocks) = &user.content else { return false };
    blocks.iter().any(|block| matches!(block, Block::Image(picture) if !image::is_fit(picture, rules.auto_resize)))
}

fn normalised(message: Arc<Message>, rules: ImageRules) -> Arc<Message> {
    let Message::User(user) = &*message else { return message };
    let Content::Blocks(blocks) = &user.content else { return message };
    let mut notes = Vec::new();
    let mut kept = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Image(picture) => {
                let result = image::normalise(picture, rules.auto_resize);
                notes.extend(result.notes);
                kept.extend(result.image.map(Block::Image));
            }
            other => kept.push(other.clone()),
        }
    }
    if let (Some(Block::Text(text)), false) = (kept.first_mut(), notes.is_empty()) {
        text.text = format!("{}\n\n{}", text.text, notes.join("\n")).trim_start().to_owned();
    }
    let mut user = user.clone();
    user.content = Content::Blocks(kept);
    Arc::new(Message::User(user))
}
