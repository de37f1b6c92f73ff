//! Processes that are killed: whatever they were doing, the store is whole and files go back.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pith_checkpoints::Mode;

use crate::bench::{Project, Session};

fn step(session: &mut Session, n: usize, ids: &mut Vec<String>) {
    let text = format!("{n} ").repeat(500);
    ids.push(match n % 4 {
        0 => session.command(|root| {
            fs::write(root.join("made"), &text).unwrap();
            fs::write(root.join(format!("made-{n}")), &text).unwrap();
        }),
        1 | 2 => session.edit("a", &text),
        _ => match session.restore(&ids[ids.len() - 2]).undo_id {
            Some(id) => id,
            None => return,
        },
    });
}

/// Runs in a process of its own until it is killed, for the next test; alone it has nothing to do.
#[test]
fn endless_session() {
    let Ok(root) = std::env::var("PITH_TEST_ENDLESS_SESSION") else { return };
    let project = Project::at(Path::new(&root));
    let mut session = project.session("s", Mode::Workspace);
    let mut ids = Vec::new();
    for n in 0.. {
        step(&mut session, n, &mut ids);
    }
}

/// `PITH_TEST_KILLS=1000` kills more often.
#[test]
fn a_killed_session_leaves_a_whole_store_and_can_be_undone() {
    let n_kills = std::env::var("PITH_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(25);
    for n in 0..n_kills {
        let scratch = tempfile::tempdir().unwrap();
        let project = Project::at(scratch.path());
        project.write("a", "first");
        let before = project.tree();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::endless_session", "--nocapture"])
            .env("PITH_TEST_ENDLESS_SESSION", scratch.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Until it has begun; then a different while every time, so that it is killed at every step sooner or later.
        while !project.stores.exists() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(373 * n));
        child.kill().unwrap();
        child.wait().unwrap();

        let session = project.session("s", Mode::Workspace);
        let checkpoints = session.recorder.store().checkpoints().unwrap();
        for file in ["a", "made"] {
            let text = fs::read_to_string(project.root.join(file)).unwrap_or_default();
            let parts: Vec<&str> = text.split_whitespace().collect();
            assert!(parts.windows(2).all(|pair| pair[0] == pair[1]) || file == "made", "a file is mixed: {text:.60}");
        }
        if let Some(first) = checkpoints.first() {
            let outcome = session.force(&first.id);
            remove_unpublished(&project.root);
            assert_eq!(project.tree(), before, "after {n}: {outcome:?}");
        }
        let mut next = project.session("t", Mode::Workspace);
        let id = next.edit("a", "next");
        next.restore(&id);
        assert_eq!(project.tree(), before);
    }
}

/// A file that is whole and waits for its rename has a name of its own for one system call.
fn remove_unpublished(root: &Path) {
    for entry in fs::read_dir(root).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".pith-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn what_a_killed_process_left_half_written_is_passed_over() {
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Files);
    let first = session.edit("a", "two");
    drop(session);
    let store = project.store_directory();
    let log = store.join("log.jsonl");
    let whole = fs::read(&log).unwrap();
    fs::write(store.join("objects/.new-0123"), "half").unwrap();
    fs::write(store.join("log.new"), "half").unwrap();
    // The end of the last line, cut off at every byte.
    let end = whole.len();
    for cut in (end - 120)..end {
        fs::write(&log, &whole[..cut]).unwrap();
        project.write("a", "two");
        let mut session = project.session("s", Mode::Files);
        let second = session.edit("a", "three");
        assert_eq!(session.restore(&second).restored, ["a"], "cut at {cut}");
        session.force(&first);
        assert_eq!(project.read("a"), "one", "cut at {cut}");
    }
}

#[test]
fn what_a_killed_call_left_is_not_taken_for_the_sessions_unless_forced() {
    let project = Project::new();
    project.write("a", "one");
    let session = project.session("s", Mode::Files);
    let call = pith_checkpoints::CallInfo { id: "killed".to_owned(), tool: "edit".to_owned() };
    session.recorder.before_change(call, &project.root.join("a"));
    let id = session.checkpoint_of("killed");
    assert!(session.restore(&id).skipped.is_empty(), "nothing has changed");
    project.write("a", "by whom");
    let outcome = session.restore(&id);
    assert_eq!(outcome.skipped, [("a".to_owned(), "what the session left there was not recorded".to_owned())]);
    session.force(&id);
    assert_eq!(project.read("a"), "one");
}
