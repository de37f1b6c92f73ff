//! Converts images in user messages to what the model accepts, before they enter the history.

use std::sync::Arc;

use pith_agent::{ToolOutput, blocking};
use pith_protocol::{Block, Content, Message};
use pith_tools::image::{self, Normalised, Rules};

/// Converts the images of the messages on another thread, if any of them needs it.
pub(crate) async fn normalise(messages: Vec<Arc<Message>>, rules: Rules) -> Vec<Arc<Message>> {
    if !messages.iter().any(|message| needs_work(message, rules)) {
        return messages;
    }
    let unchanged = messages.clone();
    let work = move || messages.into_iter().map(|message| normalised(message, rules)).collect();
    // If a decoder panics the prompt goes on with its images unchanged.
    blocking(work).await.unwrap_or(unchanged)
}

/// Whether any image among the blocks has to be converted.
pub(crate) fn need_work(blocks: &[Block], rules: Rules) -> bool {
    blocks.iter().any(|block| matches!(block, Block::Image(picture) if !image::is_ordinary(picture, rules)))
}

/// Converts the images among the blocks; returns remarks about them as well. Slow.
pub(crate) fn fit(blocks: &[Block], rules: Rules) -> (Vec<Block>, Vec<String>) {
    let (mut kept, mut remarks) = (Vec::with_capacity(blocks.len()), Vec::new());
    for block in blocks {
        let Block::Image(picture) = block else {
            kept.push(block.clone());
            continue;
        };
        match image::normalise_block(picture.clone(), rules) {
            Normalised::Image { block, notes } => {
                remarks.extend(notes);
                kept.push(Block::Image(block));
            }
            Normalised::Omitted(remark) => remarks.push(remark),
        }
    }
    (kept, remarks)
}

/// Converts the images of a tool result; remarks about them are appended as text.
pub(crate) async fn fit_output(output: ToolOutput, rules: Rules) -> ToolOutput {
    if !need_work(&output.content, rules) {
        return output;
    }
    let content = output.content.clone();
    let work = blocking(move || fit(&content, rules));
    let Ok((mut content, remarks)) = work.await else { return output };
    if !remarks.is_empty() {
        content.push(Block::text(remarks.join("\n")));
    }
    ToolOutput { content, ..output }
}

fn needs_work(message: &Message, rules: Rules) -> bool {
    let Message::User(user) = message else { return false };
    matches!(&user.content, Content::Blocks(blocks) if need_work(blocks, rules))
}

/// Remarks are appended to the text, after a blank line.
fn normalised(message: Arc<Message>, rules: Rules) -> Arc<Message> {
    let Message::User(user) = &*message else { return message };
    let Content::Blocks(blocks) = &user.content else { return message };
    let (mut kept, remarks) = fit(blocks, rules);
    if let (Some(Block::Text(text)), false) = (kept.first_mut(), remarks.is_empty()) {
        text.text = format!("{}\n\n{}", text.text, remarks.join("\n")).trim_start().to_owned();
    }
    let mut user = user.clone();
    user.content = Content::Blocks(kept);
    Arc::new(Message::User(user))
}
