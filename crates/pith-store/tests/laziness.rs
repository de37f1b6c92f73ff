//! Messages that are read long after their file was opened.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pith_protocol::{Content, Message};
use pith_store::{CompactionEntry, Kind, SessionStore};
use serde_json::{Value, json};
use support::{entry, header, reports, resume, text, texts, user, write_session};

/// Three prompts, the second of which is JSON that no message can be made of.
fn damaged_session(directory: &Path) -> SessionStore {
    let damaged = entry("b", Some("a"), "two").to_string().replace("\"timestamp\":1}", "\"timestamp\":1,\"x\":1e999}");
    let lines = [
        header(directory).to_string(),
        entry("a", None, "one").to_string(),
        damaged,
        entry("c", Some("b"), "three").to_string(),
    ];
    resume(&write_session(directory, &lines))
}

#[test]
fn a_message_that_cannot_be_read_is_left_out_and_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = damaged_session(directory.path());
    let kept = store.append_message(&user("four"));
    assert_eq!(texts(&store), ["one", "three", "four"]);
    assert_eq!(store.n_messages(), 3);
    assert_eq!(store.message_entries().collect::<Vec<_>>(), ["a", "c", &*kept]);
    let told = reports(&mut store);
    let expected = "1 entries left out of the conversation because they cannot be read (first: b)";
    assert!(told.len() == 1 && told[0].ends_with(expected), "{told:?}");
    store.append_message(&user("five"));
    store.move_leaf(Some(&kept)).unwrap();
    assert_eq!(texts(&store), ["one", "three", "four"]);
    store.append_compaction(&CompactionEntry {
        summary: "s".into(),
        first_kept_entry_id: Some("b".into()),
        ..CompactionEntry::default()
    });
    assert_eq!(texts(&store), ["<s>", "three", "four"]);
    assert_eq!(reports(&mut store), Vec::<String>::new());
}

#[test]
fn changes_go_on_from_what_could_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = damaged_session(directory.path());
    store.append_context_edit("a", Some(Content::Text("1".into()))).unwrap();
    assert_eq!((texts(&store), store.rewritten_to()), (vec!["1".to_owned(), "three".to_owned()], 2));
    store.append_message(&user("four"));
    store.append_context_edit("c", None).unwrap();
    assert_eq!((texts(&store), store.n_messages()), (vec!["1".to_owned(), "four".to_owned()], 2));
}

#[test]
fn a_file_that_was_written_over_gives_no_messages_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [header(directory.path()), entry("a", None, "one"), entry("b", Some("a"), "two")];
    let path = write_session(directory.path(), &lines.each_ref().map(Value::to_string));
    let mut store = resume(&path);
    let other = fs::read_to_string(&path).unwrap().replace("\"id\":\"b\"", "\"id\":\"x\"");
    fs::write(&path, other).unwrap();
    assert_eq!(texts(&store), ["one"]);
    assert_eq!(reports(&mut store).len(), 1);
}

#[test]
fn a_file_emptied_before_it_was_needed_is_reported_and_the_session_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [header(directory.path()), entry("a", None, "one"), entry("b", Some("a"), "two")];
    let path = write_session(directory.path(), &lines.each_ref().map(Value::to_string));
    let mut store = resume(&path);
    fs::write(&path, "").unwrap();
    store.append_message(&user("three"));
    assert_eq!((texts(&store), store.write_error()), (vec!["three".to_owned()], None));
    let told = reports(&mut store);
    assert!(told.len() == 1 && told[0].contains("2 could not be recovered"), "{told:?}");
    drop(store);
    assert_eq!(texts(&resume(&path)), ["three"]);
}

/// The entry of a tool result.
fn result(id: &str, parent: &str, tool: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-15T06:52:59.059Z",
        "message": {"role": "toolResult", "toolCallId": "c", "toolName": tool, "isError": false, "timestamp": 1,
            "content": [{"type": "text", "text": text}]}})
}

#[test]
fn parts_of_a_conversation_are_the_same_before_and_after_it_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        header(directory.path()),
        entry("a", None, "one"),
        result("b", "a", "ls", "files"),
        result("x", "b", "ls", "on another branch"),
        json!({"type": "custom_message", "id": "c", "parentId": "b", "timestamp": "2026-11-15T06:52:59.059Z",
            "customType": "note", "content": "noted", "display": true}),
        result("d", "c", "ls", "hidden"),
        json!({"type": "context_edit", "id": "e", "parentId": "d", "timestamp": "2026-11-15T06:52:59.059Z",
            "targetId": "d", "replacement": null}),
        json!({"type": "context_edit", "id": "f", "parentId": "e", "timestamp": "2026-11-15T06:52:59.059Z",
            "targetId": "c", "replacement": {"content": "replaced"}}),
        result("g", "f", "read", "text"),
    ];
    let store = resume(&write_session(directory.path(), &lines.each_ref().map(Value::to_string)));
    let look = |store: &SessionStore| {
        let texts = |messages: Vec<Arc<Message>>| messages.iter().map(|message| text(message)).collect::<Vec<_>>();
        let results = |tool: &str| store.results_of(tool).map(|message| text(&message)).collect::<Vec<_>>();
        let custom = texts(store.messages_of(|kind| kind == Kind::CustomMessage));
        let recent = store.messages_since(|message| matches!(message, Message::Custom(_))).map(texts);
        (results("ls"), results("read"), results("bash"), custom, recent, store.messages_since(|_| false))
    };
    let before = look(&store);
    assert_eq!(before.0, ["hidden", "files"]);
    assert_eq!((&before.1[..], &before.2[..]), (&["text".to_owned()][..], &[][..]));
    assert_eq!(before.3, ["replaced"]);
    assert_eq!(before.4.as_deref(), Some(&["replaced".to_owned(), "text".to_owned()][..]));
    assert_eq!(before.5, None);
    assert_eq!(texts(&store), ["one", "files", "replaced", "text"]);
    assert_eq!(look(&store), before);
}
