//! Decides which files go back, and to what.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use crate::log::{Checkpoint, Covered};
use crate::state::{Name, State};
use crate::store::Store;
use crate::tree::Tree;

/// What is to go back.
#[derive(Clone, Debug)]
pub struct Question {
    /// The checkpoint; files get the state before its call.
    pub id: String,
    /// The session that asks: its calls since then are undone, and those of the session that made the checkpoint.
    pub session: String,
    /// Only these files and directories, if given.
    pub paths: Option<Vec<String>>,
    /// Also files that somebody else has changed.
    pub force: bool,
}

/// Why nothing can be planned.
#[derive(Debug)]
pub enum Refusal {
    NoSuchCheckpoint(String),
    Io(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoSuchCheckpoint(id) => write!(f, "No such checkpoint: {id}"),
            Refusal::Io(error) => write!(f, "The checkpoints could not be read: {error}"),
        }
    }
}

/// What goes back, and what does not.
#[derive(Debug, Default)]
pub struct Plan {
    /// From what is there now to what was there then.
    pub changes: Vec<Covered>,
    pub skipped: Vec<Skipped>,
}

/// A file that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub path: Name,
    pub reason: String,
}

/// Why a file stays.
pub(crate) const BY_SOMEONE_ELSE: &str = "changed since by someone else";
pub(crate) const NOT_RECORDED: &str = "what the session left there was not recorded";
pub(crate) const NOT_KEPT: &str = "content no longer kept";
const NOT_COVERED: &str = "not changed since this checkpoint";

impl Plan {
    pub(crate) fn new(store: &Store, question: &Question) -> Result<Plan, Refusal> {
        let checkpoints = store.checkpoints().map_err(Refusal::Io)?;
        let start = checkpoints.iter().position(|checkpoint| checkpoint.id == question.id);
        let start = start.ok_or_else(|| Refusal::NoSuchCheckpoint(question.id.clone()))?;
        let first = checkpoints[start].session.clone();
        let is_undone =
            |checkpoint: &&Checkpoint| checkpoint.session == first || checkpoint.session == question.session;
        let mut chains: BTreeMap<Name, Chain> = BTreeMap::new();
        for checkpoint in checkpoints[start..].iter().filter(is_undone).rev() {
            for file in changes_of(store, checkpoint) {
                let chain = match chains.entry(file.path.clone()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let now = store.look(&file.path);
                        new.insert(Chain { now: now.clone(), target: now, problem: None })
                    }
                };
                chain.undo(&file, question.force);
            }
        }
        let mut plan = Plan::default();
        let wanted = question.paths.as_ref().map(|paths| Wanted::new(paths, store.project()));
        for (path, chain) in chains {
            if wanted.as_ref().is_some_and(|wanted| !wanted.takes(&path)) {
                continue;
            }
            if let Some(change) = chain.change(path.clone()) {
                let content = change.after.as_ref().and_then(State::digest);
                if content.is_some_and(|digest| store.capture.objects.open(digest).is_none()) {
                    plan.skipped.push(Skipped { path, reason: NOT_KEPT.to_owned() });
                } else {
                    plan.changes.push(change);
                }
            } else if let Some(reason) = chain.refusal() {
                plan.skipped.push(Skipped { path, reason });
            }
        }
        if let Some(wanted) = wanted {
            plan.skipped.extend(wanted.unmet(&plan));
        }
        Ok(plan)
    }

    /// Returns the files that would go back, directories aside.
    pub fn files(&self) -> Vec<Name> {
        self.changes.iter().filter(|change| is_of_file(change)).map(|change| change.path.clone()).collect()
    }
}

/// Whether a change is about more than a directory.
pub(crate) fn is_of_file(change: &Covered) -> bool {
    let is_file = |state: &State| !matches!(state, State::Absent | State::Directory { .. });
    is_file(&change.before) || change.after.as_ref().is_some_and(is_file)
}

/// The changes of a call. If its process was killed, they are what differs from what was there before it.
fn changes_of(store: &Store, checkpoint: &Checkpoint) -> Vec<Covered> {
    let mut files = checkpoint.files.clone();
    if let Some(tree) = checkpoint.tree.as_ref().filter(|_| !checkpoint.is_ended)
        && let Ok(mut tree) = Tree::load(&store.tree_file(tree))
        && let Ok(found) = store.walk(&mut tree, &AtomicBool::new(false))
    {
        let is_new = |change: &Covered| !checkpoint.files.iter().any(|file| file.path == change.path);
        files.extend(found.into_iter().filter(is_new).map(|change| Covered { after: None, ..change }));
    }
    files
}

/// One file on its way back, call by call.
struct Chain {
    now: State,
    target: State,
    /// Why it cannot go on, once it cannot.
    problem: Option<String>,
}

impl Chain {
    fn undo(&mut self, file: &Covered, force: bool) {
        let is_left = |state: &State| file.after.as_ref().is_some_and(|after| after.same_content(state));
        let is_unchanged = self.target.same_content(&file.before) && !is_left(&self.target);
        if self.problem.is_none() && !force && !is_left(&self.target) && !is_unchanged {
            let reason = if file.after.is_some() { BY_SOMEONE_ELSE } else { NOT_RECORDED };
            self.problem = Some(reason.to_owned());
        }
        self.target = file.before.clone();
    }

    /// What is to be done, if something is and nothing stands against it.
    fn change(&self, path: Name) -> Option<Covered> {
        let can_go = self.problem.is_none() && !matches!(self.target, State::Unkept { .. });
        (can_go && self.now != self.target).then(|| Covered {
            path,
            before: self.now.clone(),
            after: Some(self.target.clone()),
        })
    }

    /// Why it stays, unless it is where it belongs.
    fn refusal(&self) -> Option<String> {
        if self.now == self.target || self.now.is_directory() {
            return None;
        }
        match &self.target {
            State::Unkept { why, .. } => Some(why.to_string()),
            _ => self.problem.clone(),
        }
    }
}

/// The paths that a host has chosen.
struct Wanted {
    paths: Vec<(String, PathBuf)>,
    project: PathBuf,
}

impl Wanted {
    fn new(paths: &[String], project: &Path) -> Self {
        let name = |path: &String| {
            // Without `.` and a slash at the end.
            let plain: PathBuf = Path::new(path).components().collect();
            (path.clone(), project.join(plain))
        };
        Wanted { paths: paths.iter().map(name).collect(), project: project.to_owned() }
    }

    fn takes(&self, name: &Name) -> bool {
        let path = name.within(&self.project);
        // The directories that a file needs come with it.
        self.paths.iter().any(|(_, wanted)| path.starts_with(wanted) || wanted.starts_with(&path))
    }

    /// Those that nothing in the plan is about.
    fn unmet(&self, plan: &Plan) -> Vec<Skipped> {
        let names =
            || plan.changes.iter().map(|change| &change.path).chain(plan.skipped.iter().map(|skipped| &skipped.path));
        let is_met = |wanted: &Path| names().any(|name| name.within(&self.project).starts_with(wanted));
        let unmet = self.paths.iter().filter(|(_, wanted)| !is_met(wanted));
        unmet.map(|(path, _)| Skipped { path: Name(path.into()), reason: NOT_COVERED.to_owned() }).collect()
    }
}
