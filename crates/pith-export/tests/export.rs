//! Pages as files.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::path::Path;

use pith_export::{Page, default_name, export};
use pith_store::{NewSession, SessionStore};
use support::*;

/// The error text of an export to a path.
fn refusal(target: &Path) -> String {
    let tree = open(&ledger());
    let page = Page::of_file(&tree, "0.1.0").unwrap();
    export(&page, target).expect_err("refused").to_string()
}

fn export_ledger(target: &Path) {
    let tree = open(&ledger());
    export(&Page::of_file(&tree, "0.1.0").unwrap(), target).unwrap_or_else(|error| panic!("{error}"));
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_page_replaces_what_was_there_and_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out.html");
    fs::write(&target, "old").unwrap();
    export_ledger(&target);
    assert_eq!(fs::read_to_string(&target).unwrap(), page_of(&ledger()).replace("pith 0.0.0", "pith 0.1.0"));
    assert_eq!(names(directory.path()), ["out.html"]);
}

#[cfg(unix)]
#[test]
fn what_a_killed_export_left_goes_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join(format!(".pith-export-{:08x}{:024x}", std::process::id(), 7));
    fs::write(&left, "half a page").unwrap();
    let target = directory.path().join("page.html");
    export_ledger(&target);
    assert_eq!(names(directory.path()).len(), 2, "another export may have begun it just now");
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(&left).unwrap().set_modified(an_hour_ago).unwrap();
    export_ledger(&target);
    assert_eq!(names(directory.path()), ["page.html"]);
}

#[test]
fn only_the_owner_can_read_a_page() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out.html");
    export_ledger(&target);
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_the_file_behind_it_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.html"), directory.path().join("link.html"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    export_ledger(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no/such/out.html");
    let text = refusal(&missing);
    assert!(text.starts_with(&format!("Cannot write {}: No such file or directory", missing.display())), "{text}");

    let text = refusal(directory.path());
    assert_eq!(text, format!("Cannot write {}: is a directory", directory.path().display()));

    let file = directory.path().join("file");
    fs::write(&file, "kept").unwrap();
    let text = refusal(&file.join("out.html"));
    assert!(text.contains("Cannot write") && text.contains("out.html"), "{text}");
    assert_eq!(
        (names(directory.path()), fs::read_to_string(&file).unwrap()),
        (vec!["file".to_owned()], "kept".to_owned())
    );
}

#[cfg(unix)]
#[test]
fn devices_are_not_replaced() {
    assert_eq!(refusal(Path::new("/dev/null")), "Cannot write /dev/null: not a regular file");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_session_of_settings_alone_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SessionStore::create(NewSession {
        cwd: directory.path().to_owned(),
        session_dir: directory.path().to_owned(),
        ..NewSession::default()
    });
    store.append_model_change("p", "m");
    let refused = Page::of_file(store.tree(), "0.1.0").err().expect("refused");
    assert_eq!(refused.to_string(), "Nothing to export yet - start a conversation first");
}

#[test]
fn a_session_in_use_is_shown_at_its_leaf() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SessionStore::create(NewSession {
        cwd: directory.path().to_owned(),
        session_dir: directory.path().to_owned(),
        ..NewSession::default()
    });
    store.append_session_info("Live");
    store.append_custom_message(pith_protocol::CustomMessage {
        custom_type: "note".to_owned(),
        content: pith_protocol::Content::Text("just appended".to_owned()),
        display: true,
        ..Default::default()
    });
    let page = to_string(&Page { leaf: store.leaf(), ..Page::of_file(store.tree(), "0.1.0").unwrap() });
    assert!(between(&page, "<main id=stream>", "</main>").contains("just appended"));
    assert!(page.contains("<title>Live</title>"));
}

#[test]
fn pages_are_named_after_their_session_file() {
    assert_eq!(default_name("pi", "2026-11-15T06-52-54-872Z_01a1"), "pi-session-2026-11-15T06-52-54-872Z_01a1.html");
}
