//! Random histories: whatever calls did, the tree after a restore is the tree before the call.
//!
//! `PITH_TEST_HISTORIES=10000` runs more of them, `PITH_TEST_SEED=n` one of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use pith_checkpoints::Mode;

use crate::bench::{Project, Session, Tree};

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.below(items.len())) }
    }

    fn name(&mut self) -> String {
        let names = ["a", "b", "c", "d/a", "d/b", "d/e/a", "e/a", "e/d/c", "f", ".h"];
        names[self.below(names.len())].to_owned()
    }

    fn text(&mut self) -> String {
        format!("{}\n", self.below(6)).repeat(self.below(4))
    }
}

#[test]
fn trees_are_identical_after_undo() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("PITH_TEST_SEED") {
        return play(seed);
    }
    for seed in 1..=number("PITH_TEST_HISTORIES").unwrap_or(200) {
        play(seed);
    }
}

fn play(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let project = Project::new();
    for _ in 0..dice.below(6) {
        mutate(&project.root, &mut dice);
    }
    let mode = if seed.is_multiple_of(3) { Mode::Files } else { Mode::Workspace };
    let mut session = project.session("s", mode);
    session.recorder.begin_walk();
    session.recorder.flush();
    let mut moments: Vec<(String, Tree)> = Vec::new();
    for _ in 0..2 + dice.below(8) {
        let before = project.tree();
        let id = match dice.below(8) {
            0 | 1 => edit(&mut session, &project.root, &mut dice),
            2 if !moments.is_empty() => {
                let (id, expected) = &moments[dice.below(moments.len())];
                let outcome = session.restore(id);
                compare(seed, &project, expected, &format!("restored in between: {outcome:?}"));
                outcome.undo_id
            }
            _ if mode == Mode::Files => edit(&mut session, &project.root, &mut dice),
            _ => Some(session.command(|root| (0..1 + dice.below(4)).for_each(|_| mutate(root, &mut dice)))),
        };
        if let Some(id) = id {
            assert!(!id.is_empty(), "seed {seed}: no checkpoint, {:?}", session.recorder.take_problem());
            moments.push((id, before));
        }
    }
    let Some((id, expected)) = dice.pick(&moments) else { return };
    let end = project.tree();
    let outcome = session.restore(id);
    compare(seed, &project, expected, &format!("{outcome:?}"));
    assert!(outcome.skipped.is_empty(), "seed {seed}: {outcome:?}");
    if let Some(undo) = outcome.undo_id {
        let outcome = session.restore(&undo);
        compare(seed, &project, &end, &format!("undone again: {outcome:?}"));
    }
    assert_eq!(session.recorder.take_problem(), None, "seed {seed}");
}

fn compare(seed: u64, project: &Project, expected: &Tree, what: &str) {
    let found = project.tree();
    if found == *expected {
        return;
    }
    let differs = |path: &&PathBuf| found.get(*path) != expected.get(*path);
    let paths: Vec<_> = found.keys().chain(expected.keys()).filter(differs).collect();
    panic!("seed {seed}, {what}: these differ: {paths:?}\nfound {found:?}\nexpected {expected:?}");
}

fn edit(session: &mut Session, root: &Path, dice: &mut Dice) -> Option<String> {
    let name = dice.name();
    let path = root.join(&name);
    // The tool would refuse.
    let is_possible =
        path.ancestors().skip(1).find_map(|path| path.symlink_metadata().ok()).is_some_and(|it| it.is_dir())
            && path.symlink_metadata().map_or(true, |it| it.is_file());
    is_possible.then(|| session.edit(&name, &dice.text()))
}

/// Does one of the things commands do. Failures are fine: then nothing has happened.
fn mutate(root: &Path, dice: &mut Dice) {
    let (one, two) = (root.join(dice.name()), root.join(dice.name()));
    let _ = match dice.below(12) {
        0..=3 => one.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&one, dice.text())),
        4 => fs::remove_file(&one),
        5 => fs::rename(&one, &two),
        6 => one
            .parent()
            .zip(two.parent())
            .map_or(Ok(()), |(one, two)| if one == root || two == root { Ok(()) } else { fs::rename(one, two) }),
        7 => fs::set_permissions(&one, fs::Permissions::from_mode([0o600, 0o644, 0o755][dice.below(3)])),
        8 => symlink(&two, &one),
        9 => one.parent().filter(|parent| *parent != root).map_or(Ok(()), fs::remove_dir_all),
        10 => fs::create_dir_all(&one),
        _ => fs::hard_link(&one, &two).and_then(|()| fs::remove_file(&one)),
    };
}
