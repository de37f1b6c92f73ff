//! Shared by the tests: sessions on disk, made and looked at as text.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_protocol::{AssistantMessage, Block, Message, Usage, UserMessage};
use pith_store::{NewSession, SessionStore};
use serde_json::{Value, json};

pub fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::new(text.to_owned(), vec![], 1)))
}

pub fn assistant(text: &str) -> Arc<Message> {
    let usage = Usage { input: 10, output: 5, total_tokens: 15, ..Usage::default() };
    let content = vec![Block::text(text)];
    Arc::new(Message::Assistant(AssistantMessage { content, usage, timestamp: 2, ..AssistantMessage::default() }))
}

/// A new session below `directory`, whose working directory it is too.
pub fn new_session(directory: &Path) -> SessionStore {
    SessionStore::create(NewSession {
        cwd: directory.to_owned(),
        session_dir: directory.join("deep/er"),
        ..NewSession::default()
    })
}

pub fn header(cwd: &Path) -> Value {
    json!({"type":"session","version":3,"id":"s-1","timestamp":"2026-11-15T06:52:54.872Z","cwd":cwd})
}

/// A user message entry.
pub fn entry(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type":"message","id":id,"parentId":parent,"timestamp":"2026-11-15T06:52:59.059Z",
        "message":{"role":"user","content":[{"type":"text","text":text}],"timestamp":1}})
}

/// Writes a file of the given lines into `directory`, each with its newline.
pub fn write_session(directory: &Path, lines: &[String]) -> PathBuf {
    let path = directory.join("s.jsonl");
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

/// The same from values.
pub fn write_values(directory: &Path, values: &[Value]) -> PathBuf {
    write_session(directory, &values.iter().map(Value::to_string).collect::<Vec<_>>())
}

pub fn resume(path: &Path) -> SessionStore {
    SessionStore::resume(path, Path::new("/")).unwrap_or_else(|error| panic!("{error}"))
}

/// The file's lines; every one must be JSON and end with a newline.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

/// The texts of the conversation.
pub fn texts(store: &SessionStore) -> Vec<String> {
    store.messages().iter().map(|message| text(message)).collect()
}

pub fn text(message: &Message) -> String {
    match message {
        Message::User(message) => message.content.text(),
        Message::Assistant(message) => message.content.iter().filter_map(Block::as_text).collect(),
        Message::ToolResult(message) => message.content.iter().filter_map(Block::as_text).collect(),
        Message::Custom(message) => message.content.text(),
        Message::CompactionSummary(message) => format!("<{}>", message.summary),
        Message::BranchSummary(message) => format!("({})", message.summary),
        other => format!("[{}]", other.role()),
    }
}

/// The reports so far, as `event: message`.
pub fn reports(store: &mut SessionStore) -> Vec<String> {
    store.take_report().iter().map(|report| format!("{}: {}", report.kind.event(), report.message)).collect()
}
