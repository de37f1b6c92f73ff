//! What appears on disk, and when.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use pith_protocol::{Content, Message, ThinkingLevel};
use pith_store::{CompactionEntry, ReportKind, SessionStore};
use serde_json::{Value, json};
use support::{assistant, entry, lines, new_session, user};

#[test]
fn settings_alone_leave_no_file_and_the_first_content_brings_everything() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    let model = store.append_model_change("mock", "m1");
    let level = store.append_thinking_level(ThinkingLevel::Off);
    assert!(!store.path().unwrap().exists() && !directory.path().join("deep").exists());

    let prompt = store.append_message(&user("hi"));
    let lines = lines(store.path().unwrap());
    assert_eq!(lines[0]["type"], "session");
    assert_eq!((&lines[0]["version"], &lines[0]["id"]), (&json!(3), &json!(store.id())));
    assert_eq!((&lines[1]["id"], &lines[1]["parentId"]), (&json!(&*model), &Value::Null));
    assert_eq!((&lines[2]["id"], &lines[2]["parentId"]), (&json!(&*level), &json!(&*model)));
    assert_eq!((&lines[3]["id"], &lines[3]["parentId"]), (&json!(&*prompt), &json!(&*level)));
    assert_eq!(lines[3]["message"]["content"][0]["text"], "hi");
    assert_eq!(store.leaf(), Some(&*prompt));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_what_is_created() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    store.lock().unwrap();
    store.append_message(&user("secret"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = store.path().unwrap();
    assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    assert_eq!(mode(&lock), 0o600);
    assert!(fs::read_to_string(&lock).unwrap().starts_with(&std::process::id().to_string()));
}

#[test]
fn every_append_is_one_more_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    for turn in 0..5 {
        store.append_message(&user("q"));
        assert_eq!(lines(store.path().unwrap()).len(), 2 + 2 * turn);
        store.append_message(&assistant("a"));
        assert_eq!(lines(store.path().unwrap()).len(), 3 + 2 * turn);
    }
    assert_eq!(store.messages().len(), 10);
    assert_eq!(store.tree().tally().assistant_messages, 5);
    assert_eq!(store.tree().tally().total_tokens(), 75);
}

#[test]
fn context_edits_and_compactions_change_the_view_and_not_the_history() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    let first = store.append_message(&user("one"));
    let failed = store.append_message(&assistant("broken"));
    store.append_context_edit(&failed, None).unwrap();
    assert_eq!(store.message_entries().collect::<Vec<_>>(), [&*first]);
    assert_eq!(store.rewritten_to(), 1);
    let second = store.append_message(&assistant("fine"));
    store.append_context_edit(&first, Some(Content::Text("uno".into()))).unwrap();
    let Message::User(edited) = &*store.messages()[0] else { panic!() };
    assert_eq!(edited.content.text(), "uno");

    let kept = Some(second.clone());
    let entry =
        CompactionEntry { summary: "s".into(), first_kept_entry_id: kept, tokens_before: 9, ..Default::default() };
    let compaction = store.append_compaction(&entry);
    assert_eq!(store.message_entries().collect::<Vec<_>>(), [&*compaction, &*second]);
    assert_eq!(store.rewritten_to(), 2);
    store.append_compaction(&CompactionEntry { summary: "t".into(), ..CompactionEntry::default() });
    assert_eq!(store.messages().len(), 1);
    assert_eq!(store.tree().tally().total_messages, 3);
    assert!(store.append_context_edit(&compaction, None).is_err());
    assert!(store.append_context_edit("nowhere", None).is_err());
}

#[test]
fn a_failed_creation_is_reported_once_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("deep");
    fs::write(&obstacle, "a file where a directory should be").unwrap();
    let mut store = new_session(directory.path());
    store.append_message(&user("one"));
    store.append_message(&assistant("two"));
    let reports = store.take_report();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].kind, reports[0].kind.event()), (ReportKind::Write, "session_write"));
    assert!(store.write_error().is_some() && !store.is_saved());
    assert_eq!(store.messages().len(), 2);

    fs::remove_file(&obstacle).unwrap();
    store.append_message(&user("three"));
    assert_eq!(lines(store.path().unwrap()).len(), 4);
    assert_eq!(store.take_report(), []);
    assert_eq!(store.write_error(), None);
}

#[test]
fn entries_of_another_program_are_taken_in_and_both_branches_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    let ours = store.append_message(&user("ours"));
    let foreign = entry("f0", Some(&ours), "theirs");
    let mut text = fs::read_to_string(store.path().unwrap()).unwrap();
    // The other program does not end its line.
    text.push_str(&foreign.to_string());
    fs::write(store.path().unwrap(), text).unwrap();

    let next = store.append_message(&assistant("answer"));
    assert!(store.tree().contains("f0"));
    assert_eq!(store.tree().parent(&next), Some(&ours));
    let lines = lines(store.path().unwrap());
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[2]["id"], &lines[3]["id"]), (&json!("f0"), &json!(&*next)));
    assert_eq!(store.messages().len(), 2);
    assert_eq!(store.tree().tally().user_messages, 2);
}

#[test]
fn a_batch_of_writes_needs_one_sync() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    assert!(store.sync_handle().is_none());
    store.append_message(&user("one"));
    store.append_message(&assistant("two"));
    store.sync_handle().unwrap().run().unwrap();
    assert!(store.sync_handle().is_none());
    store.append_message(&user("three"));
    store.sync_handle().unwrap().run().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_takes_no_files_costs_only_the_file() {
    // Nobody can create anything there, whatever their rights.
    let mut store = SessionStore::create(pith_store::NewSession {
        cwd: "/".into(),
        session_dir: "/proc/self/pith".into(),
        ..pith_store::NewSession::default()
    });
    store.append_message(&user("one"));
    store.append_message(&assistant("two"));
    assert_eq!((store.messages().len(), store.is_saved()), (2, false));
    assert_eq!(store.take_report().len(), 1);
    assert!(store.write_error().unwrap().contains("/proc/self/pith/"));
    assert!(store.sync_handle().is_none());
    let clone = store.clone_branch();
    assert!(clone.is_err(), "a copy that cannot be written is refused");
}
