//! Files that others use, remove or replace while they are open.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use pith_store::{EntryTree, SessionStore};
use support::{assistant, entry, header, lines, new_session, reports, resume, texts, user, write_values};

fn append_raw(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_session_has_one_user_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = new_session(directory.path());
    first.append_message(&user("one"));
    let path = first.path().unwrap().to_owned();
    let refused = SessionStore::resume(&path, Path::new("/")).err().unwrap().to_string();
    let pid = std::process::id();
    assert_eq!(refused, format!("Session is in use by another process (pid {pid}): {}", path.display()));
    assert_eq!(EntryTree::open(&path).unwrap().0.len(), 1, "reading is always possible");
    #[cfg(unix)]
    {
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(SessionStore::resume(&link, Path::new("/")).is_err(), "another name is the same session");
    }
    first.append_message(&assistant("two"));
    drop(first);
    assert_eq!(texts(&resume(&path)), ["one", "two"]);
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [path.file_name().unwrap()], "no lock stays behind");
}

#[test]
fn lines_of_others_come_in_before_our_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    let mut store = resume(&path);
    append_raw(&path, &format!("{}\n", entry("f1", Some("a"), "theirs")));
    store.append_message(&user("ours"));
    append_raw(&path, &format!("not json\n{}\n", entry("f2", Some("lost"), "theirs too")));
    let leaf = store.append_message(&user("ours again"));
    assert_eq!(texts(&store), ["one", "ours", "ours again"]);
    assert_eq!(store.tree().parent("f2").map(|id| &**id), store.tree().parent(&leaf).map(|id| &**id));
    assert_eq!(reports(&mut store).len(), 1);
    drop(store);
    let store = resume(&path);
    assert_eq!(texts(&store), ["one", "ours", "ours again"]);
    assert_eq!(store.tree().len(), 5);
}

#[test]
fn half_a_line_of_another_program_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    let mut store = resume(&path);
    append_raw(&path, "{\"type\":\"mess");
    store.append_message(&user("ours"));
    drop(store);
    assert!(fs::read_to_string(&path).unwrap().contains("{\"type\":\"mess\n{"));
    assert_eq!(texts(&resume(&path)), ["one", "ours"]);
}

#[test]
fn a_line_another_program_is_still_writing_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    let mut store = resume(&path);
    let line = entry("f", Some("a"), "theirs").to_string();
    append_raw(&path, &line[..40]);
    store.refresh();
    append_raw(&path, &format!("{}\n", &line[40..]));
    store.refresh();
    assert!(store.tree().contains("f"));
    store.append_message(&user("ours"));
    assert_eq!((lines(&path).len(), reports(&mut store)), (4, vec![]));
}

#[test]
fn a_torn_line_that_is_completed_by_its_writer_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    let line = entry("f", Some("a"), "theirs").to_string();
    append_raw(&path, &line[..40]);
    let mut store = resume(&path);
    append_raw(&path, &format!("{}\n", &line[40..]));
    store.append_message(&user("ours"));
    assert!(store.tree().contains("f"));
    assert_eq!(lines(&path).len(), 4);
}

#[test]
fn a_deleted_file_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    let label = store.append_message(&user("one"));
    store.append_label(&label, Some("mark")).unwrap();
    store.append_message(&assistant("two"));
    let path = store.path().unwrap().to_owned();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    store.append_message(&user("three"));
    assert_eq!(store.write_error(), None);
    assert_eq!(reports(&mut store).len(), 1);
    assert!(SessionStore::resume(&path, Path::new("/")).is_err(), "still locked");
    drop(store);
    let again = resume(&path);
    assert_eq!(texts(&again), ["one", "two", "three"]);
    assert_eq!((again.tree().len(), &*again.tree().label(&label).unwrap().text), (4, "mark"));
}

#[test]
fn a_replaced_file_gets_what_it_lacks() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    let mut store = resume(&path);
    let b = store.append_message(&user("two"));
    let other = directory.path().join("other");
    let old = write_values(
        &{
            fs::create_dir(&other).unwrap();
            other
        },
        &[header(directory.path()), entry("a", None, "one"), entry("x", Some("a"), "theirs")],
    );
    fs::rename(old, &path).unwrap();
    let c = store.append_message(&user("three"));
    assert_eq!(texts(&store), ["one", "two", "three"]);
    assert_eq!(store.tree().parent(&c), Some(&b));
    drop(store);
    let again = resume(&path);
    assert_eq!((texts(&again).len(), again.tree().len()), (3, 4));
}

#[test]
fn a_file_emptied_in_place_is_filled_from_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    store.append_message(&user("one"));
    store.append_message(&assistant("two"));
    let path = store.path().unwrap().to_owned();
    fs::write(&path, "").unwrap();
    store.append_message(&user("three"));
    drop(store);
    assert_eq!(texts(&resume(&path)), ["one", "two", "three"]);
}

#[test]
fn another_session_at_our_path_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    store.append_message(&user("one"));
    let path = store.path().unwrap().to_owned();
    let other = write_values(directory.path(), &[header(directory.path())]);
    fs::rename(other, &path).unwrap();
    let content = fs::read(&path).unwrap();
    store.append_message(&user("two"));
    store.append_message(&user("three"));
    assert_eq!(fs::read(&path).unwrap(), content);
    assert!(store.write_error().unwrap().contains("another session (s-1)"));
    assert_eq!(reports(&mut store).len(), 1);
    fs::remove_file(&path).unwrap();
    store.append_message(&user("four"));
    assert_eq!(lines(&path).len(), 5);
    assert_eq!(store.write_error(), None);
}
