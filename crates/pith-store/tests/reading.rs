//! Opening files of this and other versions, whole and damaged.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::Path;

use pith_protocol::Message;
use pith_store::{EntryTree, SessionStore, StoreError, fuzz_load};
use serde_json::{Value, json};
use support::{
    assistant, entry, header, lines, new_session, reports, resume, texts, user, write_session, write_values,
};

/// Resumes a file made of the header and the given lines, and returns it with its texts and reports.
fn check(entries: &[Value], expected: &[&str], n_reports: usize) -> SessionStore {
    let directory = tempfile::tempdir().unwrap();
    let values: Vec<_> = [header(directory.path())].iter().chain(entries).cloned().collect();
    let path = write_values(directory.path(), &values);
    let before = fs::read(&path).unwrap();
    let mut store = resume(&path);
    assert_eq!(texts(&store), expected);
    let reports = reports(&mut store);
    assert_eq!(reports.len(), n_reports, "{reports:?}");
    assert_eq!(fs::read(&path).unwrap(), before, "opening does not write");
    store
}

#[test]
fn the_example_of_the_format_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let zero = r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let text = include_str!("files/example-v3.jsonl").replace("{…}", zero).replace("{…zero…}", zero);
    let text = text.replace("/home/u/p", &directory.path().to_string_lossy());
    let path = directory.path().join("2026-11-15T06-52-54-872Z_01a1ddfa.jsonl");
    fs::write(&path, &text).unwrap();

    let mut store = resume(&path);
    assert_eq!(store.id(), "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e");
    assert_eq!(store.message_entries().collect::<Vec<_>>(), ["902fc257", "b88fd491", "04f773a0"]);
    assert_eq!(store.leaf(), Some("04f773a0"));
    assert_eq!(store.settings().model, Some(("mock".into(), "m1".into())));
    assert_eq!(store.settings().thinking_level.as_deref(), Some("off"));
    assert_eq!(store.tree().tally().tool_calls, 1);
    assert_eq!(store.rewritten_to(), 1);
    assert_eq!(store.take_report(), []);
    store.append_message(&user("next"));
    assert!(fs::read_to_string(&path).unwrap().starts_with(&text), "what was there stays as it was");
    assert_eq!(lines(&path).last().unwrap()["parentId"], "04f773a0");
}

#[test]
fn only_null_is_no_parent() {
    let message = |id: &str, parent: Value, text: &str| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-15T06:52:59.059Z", "message": user(text)});
    let first = message("a", Value::Null, "one");
    for odd in [json!(7), json!({}), json!("gone")] {
        check(&[first.clone(), message("b", odd, "two")], &["one", "two"], 1);
    }
    let mut absent = message("b", Value::Null, "two");
    absent.as_object_mut().unwrap().remove("parentId");
    check(&[first.clone(), absent.clone()], &["one", "two"], 1);
    check(&[first.clone(), message("b", Value::Null, "two")], &["two"], 0);
    check(&[absent, message("c", json!("b"), "three")], &["two", "three"], 0);
}

#[test]
fn a_message_entry_without_a_message_is_left_out_and_reported() {
    let first = json!({"type": "message", "id": "a", "parentId": null, "timestamp": "2026-11-15T06:52:59.059Z", "message": user("one")});
    for odd in [json!(null), json!("text"), json!({}), json!({"role": 5})] {
        let second = json!({"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-11-15T06:52:59.059Z", "message": odd});
        check(&[first.clone(), second], &["one"], 1);
    }
}

#[test]
fn what_was_written_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    store.append_message(&user("one"));
    store.append_message(&assistant("two"));
    store.append_session_info(" a\r\n\nname ");
    let path = store.path().unwrap().to_owned();
    let (messages, tally) = (store.messages().to_vec(), store.tree().tally().clone());
    drop(store);
    let again = resume(&path);
    assert_eq!(again.messages(), messages);
    assert_eq!(again.tree().tally(), &tally);
    assert_eq!(again.name(), Some("a name"));
    assert_eq!(again.cwd(), directory.path());
}

#[test]
fn a_broken_line_costs_itself_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        header(directory.path()).to_string(),
        entry("a", None, "one").to_string(),
        "{\"broken".to_owned(),
        entry("c", Some("b"), "three").to_string(),
        entry("d", Some("c"), "four").to_string(),
    ];
    let mut store = resume(&write_session(directory.path(), &lines));
    assert_eq!(texts(&store), ["one", "three", "four"]);
    let reports = reports(&mut store);
    assert_eq!(reports.len(), 1);
    assert!(reports[0].starts_with("session_repair: "), "{reports:?}");
    assert!(reports[0].contains("line 3") && reports[0].contains("parent b"), "{reports:?}");
}

#[test]
fn cycles_end() {
    check(&[entry("a", Some("b"), "one"), entry("b", Some("a"), "two")], &["one", "two"], 1);
    check(&[entry("a", Some("a"), "one"), entry("b", Some("a"), "two")], &["one", "two"], 0);
    let ring = [entry("a", Some("c"), "1"), entry("b", Some("a"), "2"), entry("c", Some("b"), "3")];
    check(&ring, &["1", "2", "3"], 1);
    let beside = [entry("a", Some("b"), "1"), entry("b", Some("a"), "2"), entry("x", None, "apart")];
    check(&beside, &["apart"], 1);
}

#[test]
fn a_parent_may_come_later() {
    check(
        &[entry("b", Some("a"), "two"), entry("a", None, "one"), entry("c", Some("b"), "three")],
        &["one", "two", "three"],
        0,
    );
}

#[test]
fn repeated_entries_count_once_and_the_later_of_different_ones_wins() {
    let (a, b) = (entry("a", None, "one"), entry("b", Some("a"), "two"));
    let store = check(&[a.clone(), header(Path::new("/elsewhere")), a.clone(), b.clone()], &["one", "two"], 0);
    assert_eq!((store.tree().len(), store.tree().tally().user_messages), (2, 2));
    let store = check(&[a, b, entry("b", Some("a"), "deux")], &["one", "deux"], 0);
    assert_eq!((store.tree().len(), store.tree().tally().user_messages), (2, 2));
}

#[test]
fn entries_without_id_are_skipped_and_bad_times_replaced() {
    let nameless = json!({"type":"message","id":7,"message":{"role":"user","content":"no"}});
    let mut timeless = entry("b", Some("a"), "two");
    timeless["timestamp"] = json!("yesterday");
    let summary = json!({"type":"branch_summary","id":"c","parentId":"b","summary":"left","fromId":"a"});
    let store = check(&[entry("a", None, "one"), nameless, timeless, summary], &["one", "two", "(left)"], 1);
    let Message::BranchSummary(summary) = &*store.messages()[2] else { panic!() };
    assert_eq!(summary.timestamp, 1794725579059);
}

#[test]
fn unknown_entries_and_roles_are_kept() {
    let strange = json!({"type":"hologram","id":"b","parentId":"a","timestamp":"2026-11-15T06:52:59.059Z"});
    let mut role = entry("c", Some("b"), "");
    role["message"] = json!({"role":"fileMention","files":["x"],"timestamp":1});
    let mut system = entry("d", Some("c"), "");
    system["message"] = json!({"role":"system","content":"prompt","timestamp":1});
    let store = check(&[entry("a", None, "one"), strange, role, system], &["one", "[fileMention]"], 0);
    assert_eq!(store.leaf(), Some("d"));
    assert_eq!(store.tree().tally().total_messages, 2);
}

#[test]
fn odd_bytes_around_the_lines_are_tolerated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let separators = entry("b", Some("a"), "two\u{2028}lines").to_string();
    let text = format!("\u{feff}{}\r\n\n  \r\n{}\r\n{separators}", header(directory.path()), entry("a", None, "one"));
    fs::write(&path, text).unwrap();
    let mut store = resume(&path);
    assert_eq!(texts(&store), ["one", "two\u{2028}lines"]);
    assert_eq!(store.take_report(), []);
    store.append_message(&user("three"));
    drop(store);
    assert_eq!(texts(&resume(&path)), ["one", "two\u{2028}lines", "three"]);
}

#[test]
fn a_header_without_newline_is_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    fs::write(&path, header(directory.path()).to_string()).unwrap();
    let mut store = resume(&path);
    store.append_message(&user("one"));
    assert_eq!(lines(&path).len(), 2);
}

#[test]
fn a_file_cut_anywhere_in_its_last_line_loses_only_that_line() {
    let directory = tempfile::tempdir().unwrap();
    let head = format!("{}\n{}\n", header(directory.path()), entry("a", None, "one"));
    let last = entry("b", Some("a"), "two é 😀").to_string();
    for n_kept in 0..=last.len() {
        let path = directory.path().join(format!("{n_kept}.jsonl"));
        fs::write(&path, [head.as_bytes(), &last.as_bytes()[..n_kept]].concat()).unwrap();
        let complete = n_kept == last.len();
        let mut store = resume(&path);
        let mut expected = vec!["one"];
        expected.extend(complete.then_some("two é 😀"));
        assert_eq!(texts(&store), expected, "cut after {n_kept} bytes");
        assert_eq!(reports(&mut store).len(), usize::from(n_kept > 0 && !complete));

        store.append_message(&user("three"));
        drop(store);
        expected.push("three");
        let mut again = resume(&path);
        assert_eq!((texts(&again), again.take_report()), (expected.iter().map(|t| t.to_string()).collect(), vec![]));
        assert_eq!(lines(&path).len(), 1 + expected.len());
        let torn: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let torn = torn.iter().find(|file| file.to_string_lossy().contains(&format!("/{n_kept}.jsonl.torn-")));
        assert_eq!(
            torn.map(|file| fs::read(file).unwrap()),
            (n_kept > 0 && !complete).then(|| last.as_bytes()[..n_kept].to_vec())
        );
    }
}

#[test]
fn lines_fused_by_another_program_are_taken_apart() {
    let directory = tempfile::tempdir().unwrap();
    let fragment = &entry("b", Some("a"), "lost").to_string()[..90];
    let lines = [
        header(directory.path()).to_string(),
        entry("a", None, "one").to_string(),
        format!("{fragment}{}", entry("c", Some("a"), "three")),
        format!("{}{}{}", entry("d", Some("c"), "four"), entry("e", Some("d"), "five"), entry("f", Some("e"), "six")),
    ];
    let mut store = resume(&write_session(directory.path(), &lines));
    assert_eq!(texts(&store), ["one", "three", "four", "five", "six"]);
    assert_eq!(reports(&mut store).len(), 1);
}

#[test]
fn files_that_are_no_sessions_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    for content in
        ["hello\n", "{}\n", "\n", "{\"type\":\"session\",\"id\":5}\n", "[]", "{\"type\":\"message\",\"id\":\"a\"}\n"]
    {
        let path = directory.path().join("x.jsonl");
        fs::write(&path, content).unwrap();
        let error = SessionStore::resume(&path, Path::new("/")).err().unwrap().to_string();
        assert_eq!(error, format!("Session file is not a valid pi session: {}", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert!(!directory.path().join("x.jsonl.lock").exists());
    }
    let missing = directory.path().join("missing.jsonl");
    let error = SessionStore::resume(&missing, Path::new("/")).err().unwrap().to_string();
    assert_eq!(error, format!("Session file not found: {}", missing.display()));
    assert!(SessionStore::resume(directory.path(), Path::new("/")).is_err());
}

#[test]
fn an_empty_file_becomes_a_session() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jsonl");
    fs::write(&path, "").unwrap();
    let mut store = SessionStore::resume(&path, directory.path()).unwrap();
    assert_eq!(lines(&path)[0]["id"], store.id());
    store.append_message(&user("one"));
    drop(store);
    assert_eq!(texts(&resume(&path)), ["one"]);
}

#[test]
fn a_lost_working_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(Path::new("/nowhere/at/all"))]);
    let error = SessionStore::resume(&path, Path::new("/now")).err().unwrap().to_string();
    assert_eq!(
        error,
        format!(
            "Stored session working directory does not exist: /nowhere/at/all\nSession file: {}\n\
             Current working directory: /now",
            path.display()
        )
    );
}

#[test]
fn newer_versions_are_read_and_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut newer = header(directory.path());
    newer["version"] = json!(9);
    let path = write_values(directory.path(), &[newer, entry("a", None, "one")]);
    let error = SessionStore::resume(&path, Path::new("/")).err().unwrap();
    assert!(matches!(error, StoreError::NewerVersion { found: 9, .. }));
    let text = error.to_string();
    assert!(text.contains("version 9") && text.contains("version 3") && text.contains("--fork"), "{text}");
    let (tree, report) = EntryTree::open(&path).unwrap();
    assert_eq!((tree.len(), report, tree.header().version), (1, None, 9));
}

#[test]
fn lines_beyond_the_limit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path())]);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // A hole reads as zeros: one very long line that takes no room on the disk.
    file.set_len((64 << 20) + 200).unwrap();
    let error = SessionStore::resume(&path, Path::new("/")).err().unwrap().to_string();
    assert_eq!(error, format!("Session file {}: line 2 is longer than 64 MiB", path.display()));
    file.set_len((2 << 30) + 1).unwrap();
    let error = SessionStore::resume(&path, Path::new("/")).err().unwrap().to_string();
    assert_eq!(error, format!("Session file {} is larger than 2 GiB", path.display()));
}

#[test]
fn hostile_bytes_do_no_harm() {
    for bytes in [
        &b""[..],
        b"\xff\xfe",
        b"{\"type\":\"session\",\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"type\":\"compaction\",\"id\":\"c\",\"firstKeptEntryIndex\":99}",
        b"{\"type\":\"session\",\"id\":\"a\",\"version\":-1e300}\n",
        b"{\"type\":\"session\",\"id\":\"a\",\"version\":3}\n{\"type\":\"compaction\",\"id\":\"c\",\"firstKeptEntryId\":\"c\"}",
        b"{\"type\":\"session\",\"id\":\"a\",\"version\":3}\n{\"type\":\"context_edit\",\"id\":\"c\",\"targetId\":\"c\",\"replacement\":{}}",
    ] {
        fuzz_load(bytes);
    }
    let deep =
        format!("{{\"type\":\"session\",\"id\":\"a\",\"version\":3}}\n{{\"id\":\"b\",\"x\":{}", "[".repeat(100_000));
    fuzz_load(deep.as_bytes());
}
