//! Files of the first two formats.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use pith_store::EntryTree;
use serde_json::{Value, json};
use support::{lines, resume, texts, user};

/// A copy of a golden file whose working directory exists.
fn copy(directory: &Path, name: &str) -> PathBuf {
    let golden = fs::read_to_string(Path::new("tests/files").join(name)).unwrap();
    let path = directory.join(name);
    fs::write(&path, golden.replace("/home/u/p", &directory.to_string_lossy())).unwrap();
    path
}

#[test]
fn version_1_becomes_a_chain() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "v1.jsonl");
    let original = fs::read(&path).unwrap();
    let mut store = resume(&path);
    assert_eq!(texts(&store), ["<so far>", "answer one", "from a hook", "second"]);
    assert_eq!(store.settings().model, Some(("anthropic".into(), "m-2".into())));
    assert_eq!(store.take_report(), []);

    let lines = lines(&path);
    assert_eq!((&lines[0]["version"], &lines[0]["thinkingLevel"]), (&json!(3), &json!("off")));
    assert_eq!(lines[1]["parentId"], Value::Null);
    for pair in lines[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    assert_eq!(lines[4]["firstKeptEntryId"], lines[2]["id"]);
    assert_eq!(lines[4].get("firstKeptEntryIndex"), None);
    assert!(fs::read_to_string(&path).unwrap().contains(r#""extra":1.50}"#), "unknown members keep their bytes");
    assert_eq!(fs::read(directory.path().join("v1.jsonl.v1.bak")).unwrap(), original);

    store.append_message(&user("third"));
    drop(store);
    assert_eq!(texts(&resume(&path)).last().unwrap(), "third");
}

#[test]
fn version_2_gets_its_role_renamed() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "v2.jsonl");
    let store = resume(&path);
    assert_eq!(texts(&store), ["first", "from a hook"]);
    assert_eq!(store.tree().label("aaaa0001").unwrap().text, "start");
    assert_eq!(store.leaf(), Some("aaaa0003"));
    let lines = lines(&path);
    assert_eq!((&lines[2]["message"]["role"], &lines[0]["branchedFrom"]), (&json!("custom"), &json!("/old.jsonl")));
    assert!(directory.path().join("v2.jsonl.v2.bak").exists());
    assert!(fs::read_to_string(&path).unwrap().contains(r#"{"n":1e3}"#));
}

#[test]
fn reading_migrates_in_memory_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "v1.jsonl");
    let original = fs::read(&path).unwrap();
    let (tree, report) = EntryTree::open(&path).unwrap();
    assert_eq!((tree.len(), report), (6, None));
    assert_eq!(fs::read(&path).unwrap(), original);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn damage_in_an_old_file_is_kept_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "v1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("{\"type\":\"message\"", "{broken", 1) + "{\"type\":\"mess").unwrap();
    let mut store = resume(&path);
    // The compaction counts objects, of which there is one less now: index 2 is the hook's message.
    assert_eq!(texts(&store), ["<so far>", "from a hook", "second"]);
    assert_eq!(store.take_report().len(), 1);
    assert!(fs::read_to_string(&path).unwrap().contains("{broken"));
    store.append_message(&user("third"));
    drop(store);
    assert_eq!(texts(&resume(&path)), ["<so far>", "from a hook", "second", "third"]);
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_migrated_file_stays() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "v1.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(directory.path().join("v1.jsonl.v1.bak"), "an older backup").unwrap();
    resume(&path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_to_string(directory.path().join("v1.jsonl.v1.bak")).unwrap(), "an older backup");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
}
