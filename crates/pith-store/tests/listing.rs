//! Lists of sessions and finding one of them.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pith_store::{
    FoundSession, Places, SessionSummary, StoreError, find_by_id, find_session, latest, list, list_all,
    session_directory,
};
use serde_json::json;
use support::{entry, header};

/// Writes a session of `cwd` with one message, last changed so many seconds after 1970.
fn session(directory: &Path, id: &str, cwd: &str, seconds: u64) -> PathBuf {
    fs::create_dir_all(directory).unwrap();
    let mut head = header(Path::new(cwd));
    head["id"] = json!(id);
    let mut message = entry("a", None, &format!("hello from {id}"));
    message["message"]["timestamp"] = json!(seconds * 1000);
    let path = directory.join(format!("2026_{id}.jsonl"));
    fs::write(&path, format!("{head}\n{message}\n")).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    path
}

fn ids(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions.iter().map(|session| &*session.id).collect()
}

#[test]
fn a_list_shows_what_a_file_holds() {
    let directory = tempfile::tempdir().unwrap();
    let path = session(directory.path(), "one", "/p", 1000);
    let mut text = fs::read_to_string(&path).unwrap();
    let rest = [
        json!({"type":"session_info","id":"n","parentId":"a","timestamp":"2026-11-15T06:52:59.059Z","name":"old"}),
        json!({"type":"session_info","id":"m","parentId":"n","timestamp":"2026-11-15T06:52:59.059Z","name":"a\nname"}),
        json!({"type":"message","id":"b","parentId":"m","timestamp":"2026-11-15T06:52:59.059Z",
            "message":{"role":"assistant","content":[{"type":"text","text":"an answer"}],"timestamp":5000}}),
        json!({"type":"message","id":"c","parentId":"b","timestamp":"2026-11-15T06:52:59.059Z",
            "message":{"role":"bashExecution","command":"ls","output":"","timestamp":9000}}),
    ];
    text.extend(rest.iter().map(|line| format!("{line}\n")));
    fs::write(&path, text + "damage\n").unwrap();
    let sessions = list(directory.path(), None);
    assert_eq!(sessions.len(), 1);
    let session = &sessions[0];
    assert_eq!((&*session.id, &*session.cwd, session.name.as_deref()), ("one", "/p", Some("a name")));
    assert_eq!((session.message_count, &*session.first_message), (3, "hello from one"));
    assert_eq!((session.created, session.modified), (1794725574872, 1_000_000));
    assert_eq!(session.path, path);
}

#[test]
fn what_is_no_session_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    session(directory.path(), "good", "/p", 1);
    fs::write(directory.path().join("junk.jsonl"), "junk\n").unwrap();
    fs::write(directory.path().join("empty.jsonl"), "").unwrap();
    fs::write(directory.path().join("entry.jsonl"), format!("{}\n", entry("a", None, "x"))).unwrap();
    let mut long = header(Path::new("/p"));
    long["padding"] = json!("x".repeat(2 << 20));
    fs::write(directory.path().join("long.jsonl"), format!("{long}\n")).unwrap();
    fs::write(directory.path().join("good.jsonl.lock"), "").unwrap();
    fs::create_dir(directory.path().join("dir.jsonl")).unwrap();
    fs::write(directory.path().join("bare.jsonl"), header(Path::new("/p")).to_string()).unwrap();
    assert_eq!(ids(&list(directory.path(), None)), ["s-1", "good"]);
    assert_eq!(list(directory.path(), None)[0].first_message, "(no messages)");
    assert_eq!(list(&directory.path().join("missing"), None), []);
}

#[test]
fn the_index_is_only_a_memory() {
    let directory = tempfile::tempdir().unwrap();
    let one = session(directory.path(), "one", "/p", 10);
    session(directory.path(), "two", "/p", 20);
    let index = directory.path().join(".pith-index.json");
    let first = list(directory.path(), None);
    assert_eq!(ids(&first), ["two", "one"]);
    let written = fs::read_to_string(&index).unwrap();

    // What the index says of an unchanged file is believed ...
    fs::write(&index, written.replace("hello from one", "remembered")).unwrap();
    assert_eq!(list(directory.path(), None)[1].first_message, "remembered");
    // ... until the file changes.
    let text = fs::read_to_string(&one).unwrap();
    fs::write(&one, text + &format!("{}\n", entry("b", Some("a"), "more"))).unwrap();
    let changed = list(directory.path(), None);
    assert_eq!((&*changed[1].first_message, changed[1].message_count), ("hello from one", 2));
    // Entries of deleted files go.
    fs::remove_file(&one).unwrap();
    assert_eq!(ids(&list(directory.path(), None)), ["two"]);
    assert!(!fs::read_to_string(&index).unwrap().contains("hello from one"));

    for broken in ["", "{", "{\"version\":99,\"sessions\":{}}", "[]"] {
        fs::write(&index, broken).unwrap();
        assert_eq!(ids(&list(directory.path(), None)), ["two"], "{broken}");
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(ids(&list(directory.path(), None)), ["two"]);
}

#[test]
fn the_second_list_reads_no_session() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..40 {
        session(directory.path(), &format!("s{n}"), "/p", n);
    }
    let first = list(directory.path(), None);
    // Same size and time, no session any more: reading one would lose it from the list.
    for session in &first {
        let metadata = fs::metadata(&session.path).unwrap();
        fs::write(&session.path, vec![b'x'; metadata.len() as usize]).unwrap();
        fs::File::options()
            .append(true)
            .open(&session.path)
            .unwrap()
            .set_modified(metadata.modified().unwrap())
            .unwrap();
    }
    assert_eq!(list(directory.path(), None), first);
}

#[cfg(unix)]
#[test]
fn all_directories_are_listed_links_included() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    session(&root.path().join("--a--"), "one", "/a", 30);
    session(&root.path().join("--b--"), "two", "/b", 20);
    session(elsewhere.path(), "three", "/c", 10);
    std::os::unix::fs::symlink(elsewhere.path(), root.path().join("--c--")).unwrap();
    assert_eq!(ids(&list_all(root.path())), ["one", "two", "three"]);
}

#[test]
fn directories_with_the_same_name_keep_their_sessions_apart() {
    let agent = tempfile::tempdir().unwrap();
    let (one, two) = (Path::new("/a/b-c"), Path::new("/a-b/c"));
    let directory = session_directory(agent.path(), one);
    assert_eq!(directory, session_directory(agent.path(), two));
    let older = session(&directory, "one", "/a/b-c", 10);
    let newer = session(&directory, "two", "/a-b/c/", 20);
    assert_eq!((latest(&directory, one), latest(&directory, two)), (Some(older), Some(newer)));
    assert_eq!((ids(&list(&directory, Some(one))), ids(&list(&directory, Some(two)))), (vec!["one"], vec!["two"]));
    assert_eq!(latest(&directory, Path::new("/a")), None);
}

#[test]
fn the_session_to_continue_is_the_one_last_written_to() {
    let directory = tempfile::tempdir().unwrap();
    session(directory.path(), "old", "/p", 10);
    let newest = session(directory.path(), "new", "/p", 30);
    session(directory.path(), "middle", "/p", 20);
    fs::write(directory.path().join("zzz.jsonl"), "newer, but not a session").unwrap();
    assert_eq!(latest(directory.path(), Path::new("/p")), Some(newest));
}

#[test]
fn sessions_are_found_by_path_id_and_beginning() {
    let root = tempfile::tempdir().unwrap();
    let here = root.path().join("--p--");
    let full = session(&here, "abc", "/p", 10);
    let longer = session(&here, "abcdef", "/p", 20);
    let collision = session(&here, "abx", "/p/", 5);
    let other = session(&root.path().join("--q--"), "qqq-1", "/q", 10);
    let stranger = session(&here, "stranger", "/s", 10);
    let places = Places { cwd: Path::new("/p"), session_dir: &here, root: root.path() };
    let check = |argument: &str, expected: FoundSession| {
        assert_eq!(find_session(argument, places).unwrap(), expected, "{argument}");
    };
    check("abc", FoundSession::Here(full));
    check("abcd", FoundSession::Here(longer));
    check("abx", FoundSession::Here(collision));
    check("qqq", FoundSession::Elsewhere { path: other, cwd: "/q".into() });
    check("stran", FoundSession::Elsewhere { path: stranger, cwd: "/s".into() });
    check("x/abc", FoundSession::Path("/p/x/abc".into()));
    check("abc.jsonl", FoundSession::Path("/p/abc.jsonl".into()));
    check("/tmp/y.jsonl", FoundSession::Path("/tmp/y.jsonl".into()));
    for missing in ["nothing", ""] {
        let error = find_session(missing, places).unwrap_err();
        assert!(matches!(error, StoreError::NoMatch(_)));
        assert_eq!(error.to_string(), format!("No session found matching '{missing}'"));
    }
    assert!(find_by_id("abc", &here, Path::new("/p")).is_some());
    assert_eq!(find_by_id("ab", &here, Path::new("/p")), None);
    assert_eq!(find_by_id("abc", &here, Path::new("/q")), None);
}
