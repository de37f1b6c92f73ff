//! Full disks and killed processes, with real ones in a process of their own.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pith_store::SessionStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{assistant, lines, new_session, reports, resume, texts, user};

/// Runs one of the `child_` tests below in a new process, prepared by a shell.
fn child(test: &str, directory: &Path, prepare: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{prepare}; exec \"$0\" --exact {test} --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env("PITH_STORE_CHILD", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The directory given to a child; `None` in an ordinary test run.
fn child_directory() -> Option<std::path::PathBuf> {
    std::env::var_os("PITH_STORE_CHILD").map(Into::into)
}

#[test]
fn a_full_disk_costs_nothing_once_there_is_room_again() {
    let directory = tempfile::tempdir().unwrap();
    // With the signal ignored, writing beyond the limit fails like writing to a full disk, partial lines included.
    let child = child("child_with_a_full_disk", directory.path(), "trap '' XFSZ; ulimit -S -f 4");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let path = std::fs::read_to_string(directory.path().join("path")).unwrap();
    let store = resume(Path::new(&path));
    assert_eq!(texts(&store), (0..43).map(|n| format!("message {n}")).collect::<Vec<_>>());
    assert_eq!(lines(Path::new(&path)).len(), 44);
}

#[test]
fn child_with_a_full_disk() {
    let Some(directory) = child_directory() else { return };
    let mut store = new_session(&directory);
    for n in 0..40 {
        store.append_message(&user(&format!("message {n}")));
    }
    let path = store.path().unwrap().to_owned();
    assert!(store.write_error().is_some());
    let told = reports(&mut store);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("session_write: "), "{told:?}");
    assert_eq!(store.messages().len(), 40);
    assert!(lines(&path).len() < 40, "the limit was reached, and no partial line is left");

    store.append_message(&user("message 40"));
    assert_eq!(reports(&mut store), Vec::<String>::new());
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    store.append_message(&user("message 41"));
    assert_eq!(store.write_error(), None);
    assert_eq!(lines(&path).len(), 43);
    store.append_message(&user("message 42"));
    std::fs::write(directory.join("path"), path.to_str().unwrap()).unwrap();
}

#[test]
fn a_file_that_cannot_be_begun_is_begun_later() {
    let directory = tempfile::tempdir().unwrap();
    let child = child("child_without_any_room", directory.path(), "trap '' XFSZ; ulimit -S -f 0");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn child_without_any_room() {
    let Some(directory) = child_directory() else { return };
    let mut store = new_session(&directory);
    store.append_message(&user("one"));
    assert!(store.write_error().is_some() && !store.path().unwrap().exists());
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    store.append_message(&assistant("two"));
    assert_eq!(lines(store.path().unwrap()).len(), 3);
}

#[test]
fn the_lock_dies_with_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = child("child_that_waits", directory.path(), ":");
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let path = output.find_map(|line| Some(line.split_once("PATH=")?.1.to_owned())).expect("the child says where");
    let refused = SessionStore::resume(Path::new(&path), Path::new("/")).err().unwrap().to_string();
    assert_eq!(refused, format!("Session is in use by another process (pid {}): {path}", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(texts(&resume(Path::new(&path))), ["one"]);
}

#[test]
fn child_that_waits() {
    let Some(directory) = child_directory() else { return };
    let mut store = new_session(&directory);
    store.lock().unwrap();
    store.append_message(&user("one"));
    println!("PATH={}", store.path().unwrap().display());
    // Killed by the parent; should that fail, the end of its pipe ends us.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn temporary_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains(".tmp-")).collect()
}

#[test]
fn what_a_killed_clone_leaves_is_removed_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let sessions = directory.path().join("deep/er");
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let age =
        |path: &Path| std::fs::File::options().write(true).open(path).and_then(|file| file.set_modified(an_hour_ago));
    // A clone may be done between the look and the kill; then the next one is killed.
    let left = loop {
        let mut child = child("child_that_clones", directory.path(), ":");
        let found = loop {
            if let Some(found) = temporary_files(&sessions).pop() {
                break found;
            }
            assert!(child.try_wait().unwrap().is_none(), "the child clones until it is killed");
        };
        // However old it is, it is in use. Unless it has got its name meanwhile.
        _ = age(&found);
        pith_store::list(&sessions, None);
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(left) = temporary_files(&sessions).pop() {
            break left;
        }
    };
    assert!(left.exists());
    pith_store::list(&sessions, None);
    assert_eq!(temporary_files(&sessions), Vec::<std::path::PathBuf>::new());
}

#[test]
fn child_that_clones() {
    let Some(directory) = child_directory() else { return };
    let mut store = new_session(&directory);
    for _ in 0..100 {
        store.append_message(&user(&"x".repeat(100_000)));
    }
    loop {
        let clone = store.clone_branch().unwrap();
        std::fs::remove_file(clone.path().unwrap()).unwrap();
    }
}
