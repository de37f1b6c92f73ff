//! Roles only pith knows, as the user text a provider gets instead.

use std::borrow::Cow;
use std::fmt::Write;

use pith_protocol::{BashExecution, Block, Content, Message};
use serde_json::{Map, Value};

use super::{Part, gather};

/// Returns the user message that stands for `message`; none when it is not sent.
pub(super) fn user_parts(message: &Message) -> Option<Vec<Part<'_>>> {
    let text = |text: String| Some(vec![Part::Text(Cow::Owned(text))]);
    match message {
        Message::User(message) => Some(content(&message.content)),
        Message::Custom(message) => Some(content(&message.content)),
        Message::BashExecution(message) if message.exclude_from_context == Some(true) => None,
        Message::BashExecution(message) => text(bash(message)),
        Message::CompactionSummary(message) => text(format!(
            "The conversation history before this point was compacted into the following summary:\n\n\
             <summary>\n{}\n</summary>",
            message.summary
        )),
        Message::BranchSummary(message) => text(format!(
            "The following is a summary of a branch that this conversation came back from:\n\n\
             <summary>\n{}</summary>",
            message.summary
        )),
        Message::Other(object) if object.get("role").is_some_and(|role| role == "developer") => developer(object),
        Message::Assistant(_) | Message::ToolResult(_) | Message::Other(_) => None,
    }
}

/// Returns a reminder of pith or of another agent that uses the role.
fn developer(object: &Map<String, Value>) -> Option<Vec<Part<'_>>> {
    fn text(value: &Value) -> Option<Part<'_>> {
        value.as_str().map(|text| Part::Text(Cow::Borrowed(text)))
    }
    match object.get("content")? {
        Value::Array(blocks) => Some(blocks.iter().filter_map(|block| text(block.get("text")?)).collect()),
        content => text(content).map(|part| vec![part]),
    }
}

fn content(content: &Content) -> Vec<Part<'_>> {
    match content {
        Content::Text(text) => vec![Part::Text(Cow::Borrowed(text))],
        Content::Blocks(blocks) => parts(blocks),
    }
}

/// Returns the texts and pictures among blocks.
pub(super) fn parts(blocks: &[Block]) -> Vec<Part<'_>> {
    fn part(block: &Block) -> Option<Part<'_>> {
        match block {
            Block::Text(block) => Some(Part::Text(Cow::Borrowed(&block.text))),
            Block::Image(image) => Some(Part::Image(image)),
            Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
        }
    }
    gather(blocks.len(), blocks.iter().filter_map(part))
}

/// Returns what a model reads about a command the host ran.
pub fn bash(message: &BashExecution) -> String {
    let mut text = format!("Ran `{}`\n", message.command);
    if message.output.is_empty() {
        text.push_str("(no output)");
    } else {
        let _ = write!(text, "```\n{}\n```", message.output);
    }
    match message.exit_code {
        _ if message.cancelled => text.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => {
            let _ = write!(text, "\n\nCommand exited with code {code}");
        }
        Some(_) | None => {}
    }
    if let Some(path) = message.full_output_path.as_ref().filter(|_| message.truncated) {
        let _ = write!(text, "\n\n[Output truncated. Full output: {path}]");
    }
    text
}
