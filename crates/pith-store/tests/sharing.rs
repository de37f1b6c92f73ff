//! Files that others use, remove or replace while they are open.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pith_store::{EntryTree, NewSession, SessionStore};
use support::{assistant, entry, header, lines, new_session, reports, resume, texts, user, write_values};

fn append_raw(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The names in the directory of a session, sorted.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_session_that_runs_keeps_others_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = new_session(directory.path());
    first.append_message(&user("one"));
    let path = first.path().unwrap().to_owned();
    let mut second = resume(&path);
    first.lock().unwrap();
    first.lock().unwrap();
    let pid = std::process::id();
    let text = format!("Session is in use by another process (pid {pid}): {}", path.display());
    assert_eq!(SessionStore::resume(&path, Path::new("/")).err().unwrap().to_string(), text);
    assert_eq!(second.lock().unwrap_err().to_string(), text);
    assert_eq!(EntryTree::open(&path).unwrap().0.len(), 1, "reading is always possible");
    #[cfg(unix)]
    {
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(SessionStore::resume(&link, Path::new("/")).is_err(), "another name is the same session");
    }
    first.append_message(&assistant("two"));
    first.unlock();
    assert_eq!(names(&path), [name(&path)], "no lock stays behind");
    second.lock().unwrap();
    assert!(second.tree().len() == 2, "what was written meanwhile is known");
    assert!(first.lock().is_err());
    drop(second);
    first.lock().unwrap();
    drop(first);
    assert_eq!(texts(&resume(&path)), ["one", "two"]);
    assert_eq!(names(&path), [name(&path)]);
}

#[test]
fn a_session_that_is_idle_can_be_used_by_another_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = new_session(directory.path());
    first.lock().unwrap();
    let one = first.append_message(&user("one"));
    first.unlock();
    let path = first.path().unwrap().to_owned();
    let mut second = resume(&path);
    let mut ids = vec![one];
    for turn in 0..10 {
        let (store, who) = if turn % 2 == 0 { (&mut second, "second") } else { (&mut first, "first") };
        let is_run = turn % 3 == 0;
        if is_run {
            store.lock().unwrap();
        }
        ids.push(store.append_message(&user(&format!("{who} {turn}"))));
        ids.push(store.append_message(&assistant("answer")));
        store.unlock();
    }
    for store in [&mut first, &mut second] {
        assert_eq!((reports(store), store.write_error()), (vec![], None));
    }
    // Each goes on where it was; the other's turns are a branch.
    let said = |store: &SessionStore| texts(store).into_iter().filter(|text| text != "answer").collect::<Vec<_>>();
    assert_eq!(said(&first), ["one", "first 1", "first 3", "first 5", "first 7", "first 9"]);
    assert_eq!(said(&second), ["one", "second 0", "second 2", "second 4", "second 6", "second 8"]);
    let again = resume(&path);
    assert!(again.tree().len() == ids.len() && ids.iter().all(|id| again.tree().contains(id)));
    assert_eq!((lines(&path).len(), names(&path)), (ids.len() + 1, vec![name(&path)]));
}

#[test]
fn what_cannot_be_written_while_another_process_runs_is_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = new_session(directory.path());
    running.append_message(&user("one"));
    let path = running.path().unwrap().to_owned();
    let mut idle = resume(&path);
    running.lock().unwrap();
    idle.append_session_info("a name");
    running.append_message(&assistant("two"));
    let told = reports(&mut idle);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("session_write: ") && told[0].contains("another process is using it (pid "),
        "{told:?}"
    );
    assert_eq!((idle.name(), lines(&path).len()), (Some("a name"), 3));
    running.unlock();
    idle.append_message(&user("three"));
    assert_eq!((reports(&mut idle), idle.write_error()), (vec![], None));
    assert_eq!(texts(&idle), ["one", "three"]);
    drop(running);
    let again = resume(&path);
    assert_eq!((again.name(), again.tree().len()), (Some("a name"), 4));
}

#[test]
fn appends_of_two_processes_at_once_all_arrive_whole() {
    const N: usize = 100;
    let directory = tempfile::tempdir().unwrap();
    let mut first = new_session(directory.path());
    first.append_message(&user("one"));
    let path = first.path().unwrap().to_owned();
    let second = resume(&path);
    let stores = std::thread::scope(|scope| {
        let threads = [first, second].map(|mut store| {
            scope.spawn(move || {
                for n in 0..N {
                    // Longer than a page, so that a line is not one step for the file system either.
                    store.append_message(&user(&format!("{n} {}", "x".repeat(10_000))));
                }
                // Should the other have been in the way for too long at the end.
                store.append_session_info("done");
                store
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    for store in &stores {
        assert_eq!((store.write_error(), store.messages().len()), (None, N + 1));
    }
    assert_eq!(lines(&path).len(), 2 + 2 * (N + 1));
    drop(stores);
    let mut again = resume(&path);
    assert_eq!((again.tree().tally().user_messages as usize, again.take_report()), (2 * N + 1, vec![]));
}

#[test]
fn sessions_work_where_nothing_can_be_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_values(directory.path(), &[header(directory.path()), entry("a", None, "one")]);
    fs::create_dir(directory.path().join("s.jsonl.lock")).unwrap();
    let mut store = resume(&path);
    store.lock().unwrap();
    store.append_message(&user("two"));
    store.unlock();
    store.append_message(&user("three"));
    assert_eq!((reports(&mut store), store.write_error()), (vec![], None));
    assert_eq!(texts(&resume(&path)), ["one", "two", "three"]);
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
    store.lock().unwrap();
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

fn with_id(directory: &Path, cwd: &str, id: &str) -> SessionStore {
    SessionStore::create(NewSession {
        cwd: directory.join(cwd),
        session_dir: directory.join("sessions"),
        id: Some(id.to_owned()),
        ..NewSession::default()
    })
}

fn session_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("sessions")).unwrap().map(|entry| entry.unwrap().path());
    entries.collect()
}

#[test]
fn two_processes_that_begin_one_id_share_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (mut first, mut second) = (with_id(directory, "p", "mine"), with_id(directory, "p", "mine"));
    first.append_model_change("p", "m");
    first.append_message(&user("one"));
    second.append_model_change("p", "other");
    let asked = second.append_message(&user("two"));
    assert_eq!((second.leaf(), second.path()), (Some(&*asked), first.path()));
    second.append_message(&assistant("answer"));
    first.append_message(&assistant("answer"));
    assert_eq!(
        (texts(&first), texts(&second)),
        (vec!["one".into(), "answer".into()], vec!["two".into(), "answer".into()])
    );
    assert_eq!(second.settings().model, Some((String::new(), String::new())), "that of the answer");
    let told = reports(&mut second);
    assert!(told.len() == 1 && told[0].contains("another process began the session there"), "{told:?}");
    assert_eq!((reports(&mut first), second.write_error()), (vec![], None));
    assert_eq!(session_files(directory), [first.path().unwrap()], "and no lock stays behind");
    let (tree, report) = EntryTree::open(first.path().unwrap()).unwrap();
    assert_eq!((tree.len(), report), (6, None));
    assert_eq!(
        pith_store::find_by_id("mine", &directory.join("sessions"), &directory.join("p")).as_deref(),
        first.path()
    );
}

#[test]
fn an_id_that_another_process_has_begun_and_runs_on_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (mut first, mut second) = (with_id(directory, "p", "mine"), with_id(directory, "p", "mine"));
    first.lock().unwrap();
    assert!(second.lock().is_err(), "who runs first has the file, also before anything is said");
    first.append_message(&user("one"));
    let refused = second.lock().unwrap_err().to_string();
    assert!(refused.contains("in use") && refused.ends_with(&first.path().unwrap().display().to_string()), "{refused}");
    second.append_message(&user("two"));
    assert!(second.write_error().unwrap().contains("in use by another process"), "{:?}", second.write_error());
    assert_eq!(session_files(directory).len(), 2, "the session and its lock");
    first.unlock();
    second.lock().unwrap();
    second.append_message(&assistant("answer"));
    assert_eq!((second.write_error(), second.path()), (None, first.path()));
    assert!(first.lock().is_err(), "the shared file is held");
    drop(second);
    assert_eq!(session_files(directory), [first.path().unwrap()]);
    assert_eq!(EntryTree::open(first.path().unwrap()).unwrap().0.len(), 3);
}

#[test]
fn many_processes_that_begin_one_id_at_once_make_one_file() {
    const N: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::thread::scope(|scope| {
        for n in 0..N {
            scope.spawn(move || {
                let mut store = with_id(directory, "p", "mine");
                store.append_message(&user(&n.to_string()));
                store.append_message(&assistant("answer"));
                assert_eq!(store.write_error(), None);
            });
        }
    });
    let files = session_files(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(EntryTree::open(&files[0]).unwrap().0.len(), 2 * N);
}

#[test]
fn an_id_is_one_session_per_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut first = with_id(directory, "p", "mine");
    // Files are named after the millisecond too.
    let mut second = std::iter::repeat_with(|| with_id(directory, "q", "mine"))
        .find(|second| second.path() != first.path())
        .unwrap();
    first.append_message(&user("one"));
    second.append_message(&user("two"));
    assert_eq!((session_files(directory).len(), reports(&mut second)), (2, vec![]));
}

#[test]
fn a_copy_does_not_get_an_id_that_was_given_away_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = new_session(directory.path());
    source.append_message(&user("one"));
    with_id(directory.path(), "p", "mine").append_message(&user("two"));
    let options = NewSession {
        cwd: directory.path().join("p"),
        session_dir: directory.path().join("sessions"),
        id: Some("mine".to_owned()),
        ..NewSession::default()
    };
    let refused = SessionStore::fork_file(source.path().unwrap(), options.clone()).err().unwrap();
    assert_eq!(refused.to_string(), "Session already exists with id 'mine'");
    let options = NewSession { id: Some("another".to_owned()), ..options };
    assert_eq!(SessionStore::fork_file(source.path().unwrap(), options).unwrap().id(), "another");
    assert_eq!(session_files(directory.path()).len(), 2);
}

#[test]
fn two_processes_that_begin_one_path_share_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/new.jsonl");
    let begin = || SessionStore::resume_or_create(&path, directory.path()).unwrap();
    let (mut first, mut second, mut third) = (begin(), begin(), begin());
    let mut elsewhere = SessionStore::resume_or_create(&path, Path::new("/")).unwrap();
    first.append_message(&user("one"));
    second.append_message(&user("two"));
    third.lock().unwrap();
    third.append_message(&user("three"));
    assert_eq!((second.id(), third.id()), (first.id(), first.id()));
    assert_eq!((second.write_error(), third.write_error()), (None, None));
    assert_eq!(lines(&path).len(), 4);
    third.unlock();
    elsewhere.append_message(&user("not here"));
    assert!(elsewhere.write_error().unwrap().contains("another session"), "it belongs to another directory");
    assert_eq!((lines(&path).len(), names(&path)), (4, vec!["new.jsonl".to_owned()]));
}
