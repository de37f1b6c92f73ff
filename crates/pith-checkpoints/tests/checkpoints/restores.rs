//! What goes back, what stays, and why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use pith_checkpoints::Mode;
use pith_checkpoints::undo::Question;

use crate::bench::{Project, Session};

const BY_SOMEONE_ELSE: &str = "changed since by someone else";

#[test]
fn later_calls_are_undone_too_and_new_files_are_removed() {
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Files);
    let first = session.edit("a", "two");
    session.edit("deep/er/b", "new");
    session.edit("a", "three");
    let mut outcome = session.restore(&first);
    outcome.restored.sort();
    assert_eq!(outcome.restored, ["a", "deep/er/b"]);
    assert_eq!(project.read("a"), "one");
    assert!(!project.root.join("deep").exists(), "directories that were made for a file go with it");
    session.restore(&outcome.undo_id.unwrap());
    assert_eq!((project.read("a"), project.read("deep/er/b")), ("three".to_owned(), "new".to_owned()));
}

#[test]
fn what_somebody_else_has_changed_stays_unless_forced() {
    let project = Project::new();
    project.write("a", "one");
    project.write("b", "one");
    let mut session = project.session("s", Mode::Files);
    let first = session.edit("a", "two");
    session.edit("b", "two");
    project.write("a", "of a user");
    let outcome = session.restore(&first);
    assert_eq!(outcome.restored, ["b"]);
    assert_eq!(outcome.skipped, [("a".to_owned(), BY_SOMEONE_ELSE.to_owned())]);
    assert_eq!(project.read("a"), "of a user");
    let outcome = session.force(&first);
    assert_eq!((outcome.restored, project.read("a")), (vec!["a".to_owned()], "one".to_owned()));
    session.restore(&outcome.undo_id.unwrap());
    assert_eq!(project.read("a"), "of a user", "what was forced can be taken back");
}

#[test]
fn a_change_of_somebody_else_between_two_calls_is_not_lost() {
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Files);
    let first = session.edit("a", "two");
    project.write("a", "of a user");
    let second = session.edit("a", "of a user, and three");
    assert_eq!(session.restore(&first).skipped, [("a".to_owned(), BY_SOMEONE_ELSE.to_owned())]);
    session.restore(&second);
    assert_eq!(project.read("a"), "of a user");
}

#[test]
fn two_sessions_of_one_project_undo_their_own_calls() {
    let project = Project::new();
    let (mut one, mut two) = (project.session("one", Mode::Files), project.session("two", Mode::Files));
    let work = |session: &mut Session| {
        let name = session.name.clone();
        (0..50).map(|n| session.edit(&format!("{name}/{n}"), &format!("{name} {n}"))).collect::<Vec<_>>()
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let (first, second) = (scope.spawn(|| work(&mut one)), scope.spawn(|| work(&mut two)));
        first.join().unwrap().into_iter().chain(second.join().unwrap()).collect()
    });
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 100, "every checkpoint has an id of its own");
    assert_eq!(one.restore(&ids[0]).restored.len(), 50);
    assert!(!project.root.join("one").exists());
    assert_eq!(project.read("two/49"), "two 49");
    assert_eq!(two.restore(&ids[75]).restored.len(), 25);
    assert_eq!(project.read("two/24"), "two 24");
}

#[test]
fn only_the_chosen_paths_go_back() {
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Files);
    let first = session.edit("a", "two");
    session.edit("d/b", "new");
    session.edit("d/c", "new");
    let question = |paths: &[&str]| Question {
        id: first.clone(),
        session: "s".to_owned(),
        paths: Some(paths.iter().map(|&path| path.to_owned()).collect()),
        force: false,
    };
    let outcome = session.ask(question(&["./d/b", "nothing"])).unwrap();
    assert_eq!(outcome.restored, ["d/b"]);
    assert_eq!(outcome.skipped, [("nothing".to_owned(), "not changed since this checkpoint".to_owned())]);
    assert_eq!((project.read("a"), project.read("d/c")), ("two".to_owned(), "new".to_owned()));
    assert_eq!(session.ask(question(&["d/"])).unwrap().restored, ["d/c"]);
    let refusal = session.ask(Question { id: "c1-1".to_owned(), ..question(&[]) }).unwrap_err();
    assert_eq!(refusal.to_string(), "No such checkpoint: c1-1");
}

#[test]
fn a_command_is_undone_whatever_it_did() {
    let project = Project::new();
    project.write("src/a", "one");
    project.write("src/run", "#!/bin/sh\n");
    fs::set_permissions(project.root.join("src/run"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a", project.root.join("src/link")).unwrap();
    project.write(".gitignore", "target\n");
    project.write("target/out", "built");
    let before = project.tree();
    let mut session = project.session("s", Mode::Workspace);
    let id = session.command(|root| {
        fs::rename(root.join("src"), root.join("lib")).unwrap();
        fs::set_permissions(root.join("lib/run"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::remove_file(root.join("lib/link")).unwrap();
        fs::write(root.join("lib/a"), "two").unwrap();
    });
    session.command(|root| fs::create_dir(root.join("empty")).unwrap());
    session.restore(&id);
    assert_eq!(project.tree(), before);
}

#[test]
fn files_that_were_ignored_are_not_taken_for_new_ones() {
    let project = Project::new();
    project.write(".gitignore", "target\n");
    project.write("target/out", "built");
    let mut session = project.session("s", Mode::Workspace);
    session.command(|_| ());
    // Until it is old enough to be told from what the next command makes.
    let file = project.root.join("target/out");
    while fs::metadata(&file).unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_millis(30) {
        std::thread::yield_now();
    }
    session.command(|_| ());
    let id = session.command(|root| fs::remove_file(root.join(".gitignore")).unwrap());
    assert_eq!(session.restore(&id).restored, [".gitignore"]);
    assert_eq!(project.read("target/out"), "built");
}

#[test]
fn what_changes_between_commands_is_somebody_elses() {
    let project = Project::new();
    project.write("a", "one");
    let mut session = project.session("s", Mode::Workspace);
    let id = session.command(|root| fs::write(root.join("b"), "of a command").unwrap());
    project.write("c", "of a user");
    project.write("a", "of a user");
    session.command(|root| fs::write(root.join("b"), "again").unwrap());
    assert_eq!(session.restore(&id).restored, ["b"]);
    assert_eq!((project.read("a"), project.read("c")), ("of a user".to_owned(), "of a user".to_owned()));
}
