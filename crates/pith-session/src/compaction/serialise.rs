//! A conversation as text for the model that summarises it. It is quoted, not sent as messages, so that the model does
//! not continue it. Thinking is left out: nothing later answers to it, and it can be longer than all the rest.

use std::sync::Arc;

use pith_ai::bash_text;
use pith_protocol::{AssistantMessage, Block, Content, Message, json};

/// How many characters of a tool result are quoted.
const RESULT_CHARS: usize = 2000;

/// One paragraph per part of a message; the caller joins them with blank lines.
pub(crate) fn paragraphs(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().flat_map(|message| of_message(message)).collect()
}

fn of_message(message: &Message) -> Vec<String> {
    let said = |text: String| if text.trim().is_empty() { vec![] } else { vec![format!("[User]: {text}")] };
    match message {
        Message::User(user) => said(content_text(&user.content)),
        Message::Custom(custom) => said(content_text(&custom.content)),
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => vec![],
        Message::BashExecution(bash) => said(bash_text(bash)),
        Message::BranchSummary(summary) => said(summary.summary.clone()),
        Message::CompactionSummary(summary) => said(summary.summary.clone()),
        Message::Assistant(answer) => of_answer(answer),
        Message::ToolResult(result) => {
            let text: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
            vec![format!("[Tool result]: {}", shortened(&text.join("\n")))]
        }
        Message::Other(_) => vec![],
    }
}

fn of_answer(answer: &AssistantMessage) -> Vec<String> {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for block in &answer.content {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => parts.push(format!("[Assistant]: {}", text.text)),
            Block::ToolCall(call) => {
                let arguments: Vec<_> =
                    call.arguments.iter().map(|(key, value)| format!("{key}={}", json::to_string(value))).collect();
                calls.push(format!("{}({})", call.name, arguments.join(", ")));
            }
            _ => {}
        }
    }
    if !calls.is_empty() {
        parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
    }
    parts
}

fn content_text(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(RESULT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[… {} more characters]", &text[..end], text[end..].chars().count()),
    }
}
