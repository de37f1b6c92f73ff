//! Compares what commands leave behind with what was there, and puts back what must not be new.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::git::{Fact, Kind, Oracle, Repository, gitlinks, runs_command};
use crate::policy::Policy;
use crate::put_back::{move_aside, restore};
use crate::record::{Recorded, first_difference, now};
use crate::tree::{Touched, Tree};

/// Undoing one thing may show another.
const MAX_ROUNDS: usize = 16;
/// How many places are remembered; a directory may have any number of repositories in it.
const MAX_PLACES: usize = 2_000;

/// Something that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    pub path: PathBuf,
    /// What would have come of it.
    pub reason: String,
}

/// When the comparison is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// No command runs: what is there now is the user's.
    Idle,
    /// A command runs, and may be in the middle of a rebase.
    Running,
    /// A command has ended.
    Ended,
}

/// What was there before a command ran, in all directories that commands can write.
#[derive(Debug)]
pub(crate) struct Guard {
    tree: Tree,
    oracle: Oracle,
    policy: Policy,
    /// What the kernel keeps commands from changing: it is the user's whenever it changes.
    held: Vec<PathBuf>,
    places: BTreeMap<PathBuf, Seen>,
    named: BTreeMap<PathBuf, Recorded>,
    /// Looked at when the command has ended.
    later: BTreeSet<PathBuf>,
}

/// A place as it was.
#[derive(Debug, Default)]
struct Seen {
    common_dir: PathBuf,
    facts: BTreeSet<Fact>,
    /// What git has read there, as it last was right.
    files: BTreeMap<PathBuf, Recorded>,
    /// Those that were there before a command ran. Others may have been looked at half written.
    of_user: BTreeSet<PathBuf>,
}

impl Guard {
    /// Takes what is there now for what must stay.
    pub fn new(events: &OwnedFd, policy: &Policy, held: Vec<PathBuf>) -> Guard {
        let tree = Tree::new(events, &policy.names.trees);
        let oracle = Oracle { home: policy.home.clone(), writable: policy.writable.clone() };
        let policy = policy.clone();
        let mut guard = Guard {
            tree,
            oracle,
            policy,
            held,
            places: BTreeMap::new(),
            named: BTreeMap::new(),
            later: BTreeSet::new(),
        };
        guard.check(events, Moment::Idle);
        guard
    }

    /// Whether there is more below the writable directories than can be watched.
    pub fn is_partial(&self) -> bool {
        self.tree.is_partial
    }

    /// Compares what was touched, and returns what was put back.
    pub fn check(&mut self, events: &OwnedFd, moment: Moment) -> Vec<PutBack> {
        let mut all = Vec::new();
        for round in 0..MAX_ROUNDS {
            let mut touched = self.tree.touched(events);
            if round == 0 && moment != Moment::Running {
                touched.places.append(&mut self.later);
            }
            if touched.is_empty() {
                break;
            }
            self.check_touched(events, touched, moment, &mut all);
        }
        all
    }

    fn check_touched(&mut self, events: &OwnedFd, touched: Touched, moment: Moment, all: &mut Vec<PutBack>) {
        for path in touched.named {
            all.extend(self.check_named(events, &path, moment));
        }
        for place in touched.places {
            all.extend(self.check_place(events, &place, moment));
        }
    }

    fn check_named(&mut self, events: &OwnedFd, path: &Path, moment: Moment) -> Option<PutBack> {
        let (named, row) = self.policy.names.find(path)?;
        if self.held.iter().any(|held| named.starts_with(held)) {
            return None;
        }
        let before = self.named.get(&named).unwrap_or(&Recorded::Nothing);
        let found = now(&named);
        if found.as_ref().is_ok_and(|now| now == before) {
            return None;
        }
        if moment == Moment::Idle {
            // What is too large to be kept is not put back; that it was changed is not told either.
            match found {
                Ok(Recorded::Nothing) | Err(_) => drop(self.named.remove(&named)),
                Ok(found) => drop(self.named.insert(named.clone(), found)),
            }
            self.tree.watch_named(events, &named);
            return None;
        }
        let changed = first_difference(&named, before);
        let _ = restore(&named, before);
        self.tree.watch_named(events, &named);
        Some(PutBack { path: changed, reason: format!("{}: {}", row.program, row.reason) })
    }

    fn check_place(&mut self, events: &OwnedFd, place: &Path, moment: Moment) -> Vec<PutBack> {
        let mut all = Vec::new();
        if moment == Moment::Idle && self.places.len() >= MAX_PLACES && !self.places.contains_key(place) {
            self.tree.is_partial = true;
            return all;
        }
        for _ in 0..MAX_ROUNDS {
            let found = self.oracle.look(place);
            self.tree.watch_place(events, place, &found.read);
            if self.tree.is_partial && place.ends_with(".git") {
                self.follow_gitlinks(events, place, &found, moment, &mut all);
            }
            let new: Vec<&Fact> = found.facts.iter().filter(|fact| !self.is_known(place, &found, fact)).collect();
            if moment == Moment::Idle || new.is_empty() {
                let files = found.read.iter().filter_map(|path| Some((path.clone(), kept(path)?))).collect();
                if moment == Moment::Idle || self.oracle.look(place) == found {
                    self.see(place, &found, files, moment);
                    return all;
                }
                // A command changed it in between: what was kept is not what was judged.
                continue;
            }
            let (later, at_once): (Vec<&Fact>, Vec<&Fact>) =
                new.into_iter().partition(|fact| fact.kind == Kind::Todo && moment == Moment::Running);
            if !later.is_empty() {
                self.later.insert(place.to_owned());
            }
            let Some(fact) = at_once.first() else { return all };
            let reason = fact.reason();
            match self.undo(place, &found, fact) {
                Ok(path) => all.push(PutBack { path, reason }),
                Err(_) => {
                    // Nothing can be done about it now; the host is told, and it is tried again with the next change.
                    self.later.insert(place.to_owned());
                    all.push(PutBack { path: fact.source.clone(), reason: format!("{reason}; it is still there") });
                    return all;
                }
            }
        }
        self.later.insert(place.to_owned());
        all
    }

    /// Where not all directories are watched, git goes into those that its index lists all the same.
    fn follow_gitlinks(
        &mut self,
        events: &OwnedFd,
        place: &Path,
        found: &Repository,
        moment: Moment,
        all: &mut Vec<PutBack>,
    ) {
        let top = place.parent().unwrap_or(place);
        for link in gitlinks(&found.git_dir).into_iter().take(1000) {
            let inner = top.join(link).join(".git");
            if inner.starts_with(top) && inner != place && !self.places.contains_key(&inner) {
                all.extend(self.check_place(events, &inner, moment));
            }
        }
    }

    /// Whether git ran this before at this place, or at another one of the same repository.
    fn is_known(&self, place: &Path, found: &Repository, fact: &Fact) -> bool {
        let is_of_user = self.policy.allows_git_config && fact.kind == Kind::Key
            || self.held.iter().any(|held| fact.source.starts_with(held));
        let is_same = |seen: &Seen| seen.facts.iter().any(|known| known.is_same(fact));
        is_of_user
            || self.places.get(place).is_some_and(is_same)
            || self.places.values().any(|seen| seen.common_dir == found.common_dir && is_same(seen))
    }

    /// Takes a place for right as it is. What git ran there before it may run until the commands are over.
    fn see(&mut self, place: &Path, found: &Repository, files: BTreeMap<PathBuf, Recorded>, moment: Moment) {
        if moment == Moment::Idle && found.common_dir.as_os_str().is_empty() && !place.exists() {
            self.places.remove(place);
            return;
        }
        let mut seen = Seen { common_dir: found.common_dir.clone(), facts: found.facts.clone(), ..Seen::default() };
        if moment == Moment::Idle {
            seen.of_user = files.keys().cloned().collect();
        } else if let Some(before) = self.places.remove(place) {
            seen.facts.extend(before.facts);
            seen.of_user = before.of_user;
        }
        seen.files = files;
        self.places.insert(place.to_owned(), seen);
    }

    /// Makes a fact untrue: its file becomes what it was. If that is as it was, the way to it does.
    fn undo(&self, place: &Path, found: &Repository, fact: &Fact) -> io::Result<PathBuf> {
        if fact.kind == Kind::Todo && self.is_writable(&fact.source) {
            self.without_commands(place, fact)?;
            return Ok(fact.source.clone());
        }
        if self.is_writable(&fact.source) && !self.is_as_it_was(&fact.source) {
            self.put_back(place, &fact.source)?;
            return Ok(fact.source.clone());
        }
        // The file is the user's, so the way to it is new: a link, or a file that says where to read on.
        let is_link = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        let is_file = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|it| !it.is_dir());
        let files = [found.git_dir.join("commondir"), place.to_owned(), found.git_dir.join("HEAD")];
        let links = found.read.iter().filter(is_link);
        let mut ways = links.chain(files.iter().filter(is_file)).chain([&files[1]]);
        let way = ways.find(|way| self.is_writable(way) && !self.is_right(place, way));
        let way = way.ok_or_else(|| io::Error::other("nothing is new"))?;
        self.put_back(place, way)?;
        Ok(way.clone())
    }

    /// Whether commands can have changed a path: nothing else is touched.
    fn is_writable(&self, path: &Path) -> bool {
        self.policy.names.trees.iter().any(|tree| path.starts_with(tree) && path != tree)
            && !self.held.iter().any(|held| path.starts_with(held))
    }

    /// Whether a file is known at some place and has not changed since.
    fn is_as_it_was(&self, file: &Path) -> bool {
        let known = self.places.values().find_map(|seen| seen.files.get(file));
        known.is_some_and(|known| kept(file).as_ref() == Some(known))
    }

    fn is_right(&self, place: &Path, file: &Path) -> bool {
        let known = self.places.get(place).and_then(|seen| seen.files.get(file));
        known.is_some_and(|known| kept(file).as_ref() == Some(known))
    }

    fn put_back(&self, place: &Path, file: &Path) -> io::Result<()> {
        let of_user = |seen: &'_ Seen| seen.of_user.contains(file).then(|| seen.files.get(file).cloned()).flatten();
        let here = self.places.get(place).and_then(of_user);
        let known = here.or_else(|| self.places.values().find_map(of_user));
        // Kept whatever it was: part of it may be work.
        move_aside(file)?;
        match known {
            Some(known @ (Recorded::File { .. } | Recorded::Link { .. })) => restore(file, &known),
            Some(Recorded::Nothing | Recorded::Directory { .. }) | None => Ok(()),
        }
    }

    /// Makes comments of the lines of a rebase that run commands, unless it had them before.
    fn without_commands(&self, place: &Path, fact: &Fact) -> io::Result<()> {
        let Ok(Recorded::File { contents, mode }) = now(&fact.source) else { return move_aside(&fact.source) };
        let known = self.places.get(place).map(|seen| &seen.facts);
        let is_known = |line: &[u8]| {
            known.is_some_and(|facts| facts.iter().any(|it| it.kind == Kind::Todo && it.value == line.trim_ascii()))
        };
        let mut kept = Vec::with_capacity(contents.len());
        for line in contents.split_inclusive(|byte| *byte == b'\n') {
            if runs_command(line) && !is_known(line) {
                kept.extend(b"# ");
            }
            kept.extend(line);
        }
        restore(&fact.source, &Recorded::File { contents: kept, mode })
    }
}

/// What is kept of a file that git reads; of a directory only that it is one.
fn kept(path: &Path) -> Option<Recorded> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            Some(Recorded::Directory { mode: metadata.permissions().mode(), entries: BTreeMap::new() })
        }
        Ok(metadata) if metadata.len() > 1 << 20 => None,
        _ => now(path).ok(),
    }
}
