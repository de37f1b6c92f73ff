//! Bounds, damage, and disks that are full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use pith_checkpoints::{Bounds, Mode};

use crate::bench::Project;

fn objects(project: &Project) -> Vec<PathBuf> {
    let directories = fs::read_dir(project.store_directory().join("objects")).unwrap().flatten();
    let files = directories.filter(|entry| entry.path().is_dir()).flat_map(|entry| fs::read_dir(entry.path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn age(path: &Path, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn nothing_is_created_before_the_first_change() {
    let project = Project::new();
    let session = project.session("s", Mode::Files);
    session.recorder.after("nothing");
    session.recorder.begin_walk();
    session.recorder.flush();
    drop(session);
    assert!(!project.stores.exists());
    let mut off = project.session("s", Mode::Off);
    assert_eq!(off.edit("a", "x"), "");
    assert!(!project.stores.exists());
}

#[test]
fn the_store_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Files);
    session.edit("a", "two");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = project.store_directory();
    assert_eq!((mode(&store), mode(&store.join("log.jsonl")), mode(&objects(&project)[0])), (0o700, 0o600, 0o600));
}

#[test]
fn a_damaged_or_lost_content_leaves_its_file_alone() {
    let project = Project::new();
    project.write("a", "one");
    project.write("b", "other");
    let mut session = project.session("s", Mode::Files);
    let id = session.edit("a", "two");
    session.edit("b", "two");
    let damaged = objects(&project).into_iter().find(|path| fs::read(path).unwrap() == b"one").unwrap();
    fs::write(&damaged, "onx").unwrap();
    let outcome = session.restore(&id);
    assert_eq!(outcome.skipped, [("a".to_owned(), "content no longer kept".to_owned())]);
    assert_eq!(outcome.restored, ["b"]);
    assert_eq!((project.read("a"), project.read("b")), ("two".to_owned(), "other".to_owned()));
}

#[test]
fn a_large_file_is_covered_in_part() {
    let project = Project::new();
    project.write("a", "much too large");
    let mut session = project.bounded_session("s", Mode::Files, Bounds { max_file: 4, ..Bounds::default() });
    let id = session.edit("a", "two");
    let shown = session.recorder.store().checkpoints().unwrap()[0].shown();
    assert_eq!(shown.reason.as_deref(), Some("larger than checkpoints.maxFileMb"));
    let outcome = session.restore(&id);
    assert_eq!(outcome.skipped, [("a".to_owned(), "larger than checkpoints.maxFileMb".to_owned())]);
    assert_eq!(project.read("a"), "two");
}

#[test]
fn a_project_with_too_many_files_or_bytes_is_covered_in_part() {
    let project = Project::new();
    (0..20).for_each(|n| project.write(&format!("f{n:02}"), "0123456789"));
    for (bounds, reason) in [
        (Bounds { max_files: 10, ..Bounds::default() }, "more than 10 files"),
        (Bounds { max_total: 55, ..Bounds::default() }, "the project is larger than checkpoints.maxTotalMb"),
    ] {
        let before = project.tree();
        let mut session = project.bounded_session(reason, Mode::Workspace, bounds);
        let id = session.command(|root| fs::write(root.join("f00"), "changed").unwrap());
        let checkpoints = session.recorder.store().checkpoints().unwrap();
        assert_eq!(checkpoints.last().unwrap().shown().reason.as_deref(), Some(reason));
        session.restore(&id);
        assert_eq!(project.tree(), before);
    }
}

#[test]
fn the_oldest_checkpoints_go_first() {
    let project = Project::new();
    let text = |n: usize| format!("{n:04}").repeat(250);
    project.write("a", &text(0));
    {
        let mut session = project.session("s", Mode::Files);
        (1..=20).for_each(|n| drop(session.edit("a", &text(n))));
    }
    objects(&project).iter().for_each(|path| age(path, 3600));
    // The first call of a session looks at the bounds.
    let mut session = project.bounded_session("s", Mode::Files, Bounds { max_total: 5_500, ..Bounds::default() });
    session.edit("a", &text(21));
    let kept = session.recorder.store().checkpoints().unwrap();
    assert_eq!(kept.len(), 5);
    assert_eq!(objects(&project).len(), 5);
    session.restore(&kept[0].id);
    assert_eq!(project.read("a"), text(16));
    objects(&project).iter().for_each(|path| age(path, 3600));
    let newest = session.recorder.store().checkpoints().unwrap().last().unwrap().at + 1;
    let mut session =
        project.bounded_session("s", Mode::Files, Bounds { max_age: Duration::ZERO, ..Bounds::default() });
    while SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64 <= newest {
        std::thread::yield_now();
    }
    session.edit("b", "x");
    let paths = session.recorder.store().checkpoints().unwrap();
    assert!(paths.iter().all(|checkpoint| checkpoint.files[0].path.shown() == "b"), "{paths:?}");
}

#[test]
fn a_store_that_cannot_be_written_stops_nothing_and_is_told_once() {
    let project = Project::new();
    fs::create_dir_all(project.stores.parent().unwrap()).unwrap();
    fs::write(&project.stores, "a file where the directory should be").unwrap();
    let mut session = project.session("s", Mode::Workspace);
    assert_eq!(session.edit("a", "x"), "");
    assert_eq!(session.edit("a", "y"), "");
    assert_eq!(session.command(|_| ()), "");
    assert_eq!(project.read("a"), "y");
    let problem = session.recorder.take_problem().unwrap();
    assert!(problem.starts_with("A checkpoint could not be written: "), "{problem}");
    session.edit("a", "z");
    assert_eq!(session.recorder.take_problem(), None);
}

/// Runs in a process of its own that may write only small files, for the next test; alone it has nothing to do.
#[test]
fn writer_with_little_room() {
    let Ok(root) = std::env::var("PITH_TEST_LITTLE_ROOM") else { return };
    let project = Project::at(Path::new(&root));
    let mut session = project.session("s", Mode::Files);
    // What it would have to keep is larger than it may write, and the log grows until it is.
    session.edit("large", "small");
    for n in 0..200 {
        session.edit("a", &format!("{n}"));
    }
    assert_eq!(project.read("a"), "199");
    assert!(session.recorder.take_problem().is_some());
}

#[test]
fn a_full_disk_stops_nothing_and_damages_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let project = Project::at(scratch.path());
    project.write("large", &"x".repeat(100_000));
    project.write("a", "first");
    let program = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact limits::writer_with_little_room --nocapture";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(program)
        .env("PITH_TEST_LITTLE_ROOM", scratch.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(project.store_directory().join("log.jsonl")).unwrap();
    assert!(log.ends_with('\n') && log.lines().all(|line| line.ends_with('}')), "no part of a line stays");
    assert!(objects(&project).iter().all(|path| fs::metadata(path).unwrap().len() < 16 << 10));
    assert_eq!(
        fs::read_dir(project.store_directory().join("objects"))
            .unwrap()
            .flatten()
            .filter(|it| !it.path().is_dir())
            .count(),
        0
    );
    // With room again everything works, and what was kept is still there.
    let mut session = project.session("s", Mode::Files);
    let first = session.recorder.store().checkpoints().unwrap()[0].clone();
    assert_eq!(first.files[0].path.shown(), "a");
    let id = session.edit("a", "last");
    session.restore(&id);
    assert_eq!(project.read("a"), "199");
    session.force(&first.id);
    assert_eq!(project.read("a"), "first");
}
