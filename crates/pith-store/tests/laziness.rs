//! Messages that are read long after their file was opened.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::Path;

use pith_store::{CompactionEntry, SessionStore};
use serde_json::Value;
use support::{entry, header, reports, resume, texts, user, write_session};

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
    store.append_context_edit("a", Some(pith_protocol::Content::Text("1".into()))).unwrap();
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
