//! Inputs that were accepted survive the process that accepted them.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pith_protocol::ImageBlock;
use pith_store::{InputId, InputKind, SessionStore};
use proptest::prelude::*;
use support::{assistant, lines, new_session, reports, resume, texts, user};

/// The names in the directory of a session, sorted, without that of the session.
fn beside(path: &Path) -> Vec<String> {
    let own = path.file_name().unwrap().to_str().unwrap();
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| name.strip_prefix(own).map(str::to_owned)).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names
}

fn inputs_file(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.inputs", path.display()))
}

/// A new session that has accepted an input, and its file.
fn accepted(directory: &Path, text: &str) -> (SessionStore, PathBuf, InputId) {
    let mut store = new_session(directory);
    let id = store.accept_input(InputKind::Prompt, text, &[]);
    let path = store.path().unwrap().to_owned();
    (store, path, id)
}

fn left_texts(store: &mut SessionStore) -> Vec<String> {
    store.take_orphaned_inputs().into_iter().map(|input| input.text).collect()
}

#[test]
fn an_input_is_on_disk_when_it_was_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = new_session(directory.path());
    store.append_model_change("p", "m");
    let image = ImageBlock { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() };
    let first = store.accept_input(InputKind::Prompt, "first\n\u{2028}line", std::slice::from_ref(&image));
    let second = store.accept_input(InputKind::FollowUp, "second", &[]);
    let third = store.accept_input(InputKind::Steer, "third", &[]);
    let path = store.path().unwrap().to_owned();
    assert_eq!(lines(&path).len(), 2, "the session can be found again, with all that was said before");
    assert_eq!(beside(&path), [".inputs"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(inputs_file(&path)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // As when the process is killed: nothing is tidied up.
    drop(store);
    let mut store = resume(&path);
    let left = store.take_orphaned_inputs();
    let shape: Vec<_> = left.iter().map(|input| (input.id, input.kind, &*input.text, &*input.images)).collect();
    assert_eq!(
        shape,
        [
            (first, InputKind::Prompt, "first\n\u{2028}line", std::slice::from_ref(&image)),
            (second, InputKind::FollowUp, "second", &[]),
            (third, InputKind::Steer, "third", &[]),
        ]
    );
    assert!(left.iter().all(|input| input.accepted > 1_700_000_000_000));
    assert_eq!(store.take_orphaned_inputs(), [], "each is told once");
    // They stay recorded until they are done, whoever dies in between.
    store.input_done(second);
    drop(store);
    let mut store = resume(&path);
    assert_eq!(left_texts(&mut store), ["first\n\u{2028}line", "third"]);
    store.append_input(first, &user("first"));
    store.append_input(third, &user("third"));
    assert_eq!((beside(&path), reports(&mut store)), (vec![], vec![]));
    assert_eq!(
        (texts(&resume(&path)), resume(&path).take_orphaned_inputs()),
        (vec!["first".into(), "third".into()], vec![])
    );
}

#[test]
fn an_input_that_has_become_an_entry_is_done_exactly_if_the_entry_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, path, id) = accepted(directory.path(), "one");
    let waiting = store.accept_input(InputKind::FollowUp, "two", &[]);
    let before = fs::read(&path).unwrap();
    store.append_input(id, &user("one"));
    let after = fs::read(&path).unwrap();
    let marks = fs::read(inputs_file(&path)).unwrap();
    drop(store);
    // Killed between the note in the inputs file and the entry, at every byte of the entry.
    let end_of_mark = marks.windows(7).rposition(|window| window == b"\"entry\"").unwrap();
    let end_of_mark = end_of_mark + marks[end_of_mark..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for n_written in before.len()..=after.len() {
        fs::write(&path, &after[..n_written]).unwrap();
        fs::write(inputs_file(&path), &marks[..end_of_mark]).unwrap();
        let mut again = resume(&path);
        let is_there = again.tree().len() == 1;
        assert_eq!(is_there, n_written + 1 >= after.len());
        let expected = if is_there { &["two"][..] } else { &["one", "two"] };
        assert_eq!(left_texts(&mut again), expected, "{n_written}");
    }
    let mut again = resume(&path);
    assert_eq!(left_texts(&mut again), ["two"]);
    again.input_done(waiting);
    assert_eq!(beside(&path), Vec::<String>::new());
}

#[test]
fn the_file_goes_with_the_last_input() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, path, id) = accepted(directory.path(), "one");
    store.append_input(id, &user("one"));
    assert_eq!(beside(&path), Vec::<String>::new());
    let [a, b] = ["a", "b"].map(|text| store.accept_input(InputKind::Steer, text, &[]));
    store.input_done(b);
    store.input_done(b);
    assert_eq!(beside(&path), [".inputs"]);
    store.input_done(a);
    assert_eq!((beside(&path), reports(&mut store)), (vec![], vec![]));
}

#[test]
fn inputs_of_a_process_that_lives_are_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (mut first, path, a) = accepted(directory.path(), "a");
    let mut second = resume(&path);
    assert_eq!(second.take_orphaned_inputs(), []);
    let b = second.accept_input(InputKind::Prompt, "b", &[]);
    assert_eq!(beside(&path), [".inputs", ".inputs-2"]);
    first.append_input(a, &user("a"));
    assert_eq!(beside(&path), [".inputs-2"]);
    drop(second);
    // Whoever looks next finds it, the process that was there all the time included.
    let left = first.take_orphaned_inputs();
    assert_eq!((left.len(), left[0].id), (1, b));
    assert_eq!(resume(&path).take_orphaned_inputs(), []);
    first.append_input(b, &user("b"));
    assert_eq!((beside(&path), texts(&resume(&path)).len()), (vec![], 2));
}

#[test]
fn a_torn_line_costs_itself_only() {
    let directory = tempfile::tempdir().unwrap();
    let (store, path, _) = accepted(directory.path(), "whole");
    drop(store);
    let whole = fs::read(inputs_file(&path)).unwrap();
    for n_kept in 1..whole.len() {
        fs::write(inputs_file(&path), [&whole[..], &whole[..n_kept]].concat()).unwrap();
        let mut store = resume(&path);
        let n_left = store.take_orphaned_inputs().len();
        // A line counts when its last brace is there.
        assert_eq!(n_left, if n_kept + 1 == whole.len() { 2 } else { 1 }, "{n_kept}");
        store.accept_input(InputKind::Prompt, "behind it", &[]);
        drop(store);
        assert_eq!(left_texts(&mut resume(&path)).last().unwrap(), "behind it");
    }
    for junk in ["", "\n\n", "[]\n", "{\"type\":\"input\",\"id\":\"x\"}\n", "\u{0}\n"] {
        fs::write(inputs_file(&path), junk).unwrap();
        assert_eq!(resume(&path).take_orphaned_inputs(), [], "{junk}");
        assert_eq!(beside(&path), Vec::<String>::new(), "{junk}");
    }
}

#[test]
fn an_input_that_cannot_be_recorded_is_reported_and_recorded_later() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("deep");
    fs::write(&obstacle, "a file where a directory should be").unwrap();
    let (mut store, path, a) = accepted(directory.path(), "a");
    let told = reports(&mut store);
    assert!(told.len() == 1 && told[0].starts_with("session_write: "), "{told:?}");
    let b = store.accept_input(InputKind::Steer, "b", &[]);
    store.input_done(b);
    store.append_input(a, &user("a"));
    assert_eq!((texts(&store), reports(&mut store)), (vec!["a".to_owned()], vec![]));
    fs::remove_file(&obstacle).unwrap();
    store.accept_input(InputKind::FollowUp, "c", &[]);
    assert_eq!(store.write_error(), None);
    drop(store);
    let mut again = resume(&path);
    assert_eq!((texts(&again), left_texts(&mut again)), (vec!["a".to_owned()], vec!["c".to_owned()]));
}

#[test]
fn sessions_in_memory_record_nothing() {
    let mut store = SessionStore::in_memory(Path::new("/p"), None);
    let id = store.accept_input(InputKind::Prompt, "one", &[]);
    store.append_input(id, &user("one"));
    let id = store.accept_input(InputKind::Steer, "two", &[]);
    store.input_done(id);
    assert_eq!(
        (store.take_orphaned_inputs(), store.take_report(), texts(&store)),
        (vec![], vec![], vec!["one".to_owned()])
    );
}

#[derive(Clone, Debug)]
enum Step {
    Accept(String),
    /// Of what waits, modulo its number.
    Deliver(usize),
    Withdraw(usize),
    Answer,
    /// The process dies, with so many bytes of one more line written, and another one takes over.
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => "[ -~é\u{2028}😀\n]{0,12}".prop_map(Step::Accept),
        2 => any::<usize>().prop_map(Step::Deliver),
        1 => any::<usize>().prop_map(Step::Withdraw),
        1 => Just(Step::Answer),
        2 => (0usize..60).prop_map(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// What was accepted and is not done is left, and nothing else, however often processes die.
    #[test]
    fn no_input_is_lost_and_none_comes_back(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, path, first) = accepted(directory.path(), "first");
        let mut waiting = vec![(first, "first".to_owned())];
        let mut delivered = Vec::new();
        for step in steps {
            match step {
                Step::Accept(text) => waiting.push((store.accept_input(InputKind::Steer, &text, &[]), text)),
                Step::Deliver(at) if !waiting.is_empty() => {
                    let (id, text) = waiting.remove(at % waiting.len());
                    store.append_input(id, &user(&text));
                    delivered.push(text);
                }
                Step::Withdraw(at) if !waiting.is_empty() => store.input_done(waiting.remove(at % waiting.len()).0),
                Step::Deliver(_) | Step::Withdraw(_) => {}
                Step::Answer => _ = store.append_message(&assistant("answer")),
                Step::Crash(n_bytes) => {
                    drop(store);
                    let half = &br#"{"type":"input","id":"0123456789abcdef0123456789abcdef","kind":"prompt","text":""#[..n_bytes];
                    let file = fs::OpenOptions::new().append(true).open(inputs_file(&path));
                    _ = file.and_then(|mut file| file.write_all(half));
                    store = resume(&path);
                    let left = store.take_orphaned_inputs();
                    let left: Vec<_> = left.into_iter().map(|input| (input.id, input.text)).collect();
                    prop_assert_eq!(&left, &waiting);
                }
            }
        }
        prop_assert_eq!(reports(&mut store), Vec::<String>::new());
        let said: Vec<_> = texts(&store).into_iter().filter(|text| text != "answer" || delivered.contains(text)).collect();
        prop_assert_eq!(said, delivered);
        prop_assert_eq!(beside(&path).len(), usize::from(!waiting.is_empty()));
    }
}

/// One line a child has printed after the step was done.
fn told(line: &str) -> Option<(&str, u64)> {
    let (what, n) = line.split_once("TOLD ")?.1.split_once(' ')?;
    Some((what, n.parse().ok()?))
}

#[test]
fn a_kill_at_any_moment_loses_no_input_and_brings_none_back() {
    for round in 0..12u64 {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_takes_inputs", "--nocapture"])
            .env("PITH_STORE_CHILD", directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let path = output.find_map(|line| Some(line.split_once("PATH=")?.1.to_owned())).expect("the child says where");
        let mut state: HashMap<u64, String> = HashMap::new();
        let mut note = |line: String| _ = told(&line).map(|(what, n)| state.insert(n, what.to_owned()));
        output.by_ref().take(5 + 17 * round as usize).for_each(&mut note);
        child.kill().unwrap();
        child.wait().unwrap();
        output.for_each(&mut note);
        let mut store = resume(Path::new(&path));
        let left = left_texts(&mut store);
        let said = texts(&store);
        for (n, what) in state {
            let n = n.to_string();
            let count =
                (left.iter().filter(|text| **text == n).count(), said.iter().filter(|text| **text == n).count());
            match &*what {
                // It may have been withdrawn without a word.
                "withdrawing" => assert!(count.0 <= 1 && count.1 == 0, "round {round}: {n} {count:?}"),
                // It may have been delivered without a word.
                "accepted" => assert_eq!(count.0 + count.1, 1, "round {round}: {n} {count:?}"),
                "delivered" => assert_eq!(count, (0, 1), "round {round}: {n}"),
                "withdrawn" => assert_eq!(count, (0, 0), "round {round}: {n}"),
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn child_that_takes_inputs() {
    let Some(directory) = std::env::var_os("PITH_STORE_CHILD") else { return };
    let mut store = new_session(Path::new(&directory));
    println!("PATH={}", store.path().unwrap().display());
    let mut waiting = Vec::new();
    for n in 0u64.. {
        waiting.push((n, store.accept_input(InputKind::Steer, &n.to_string(), &[])));
        println!("TOLD accepted {n}");
        match n % 4 {
            0 => {
                let (n, id) = waiting.remove(0);
                println!("TOLD withdrawing {n}");
                store.input_done(id);
                println!("TOLD withdrawn {n}");
            }
            1 | 2 => {
                let (n, id) = waiting.remove(0);
                store.append_input(id, &user(&n.to_string()));
                println!("TOLD delivered {n}");
            }
            _ => {}
        }
        // As a session would after some turns.
        while waiting.len() > 3 {
            let (n, id) = waiting.pop().unwrap();
            store.append_input(id, &user(&n.to_string()));
            println!("TOLD delivered {n}");
        }
    }
}
