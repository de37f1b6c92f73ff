//! A project in a temporary directory, and sessions that work in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use pith_checkpoints::restore::take;
use pith_checkpoints::undo::{Question, Refusal};
use pith_checkpoints::{Bounds, CallInfo, Mode, Recorder, StorePlace};

/// What is at a path: a file with mode and content, a link with its target, a directory with its mode.
pub type Tree = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

pub struct Project {
    /// `None` if the directory belongs to somebody else.
    _scratch: Option<tempfile::TempDir>,
    pub root: PathBuf,
    pub stores: PathBuf,
}

impl Project {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let project = Project::at(scratch.path());
        Project { _scratch: Some(scratch), ..project }
    }

    /// A project in a directory that other processes know too.
    pub fn at(base: &Path) -> Self {
        let base = base.canonicalize().unwrap();
        let (root, stores) = (base.join("project"), base.join("agent/pith-checkpoints"));
        fs::create_dir_all(&root).unwrap();
        Project { _scratch: None, root, stores }
    }

    pub fn session(&self, name: &str, mode: Mode) -> Session {
        self.bounded_session(name, mode, Bounds::default())
    }

    pub fn bounded_session(&self, name: &str, mode: Mode, bounds: Bounds) -> Session {
        let place = StorePlace { root: self.stores.clone(), cwd: self.root.clone(), bounds, unwalked: Vec::new() };
        let recorder = Recorder::new(place, mode);
        recorder.note_place(name, Some("entry"));
        Session { recorder, name: name.to_owned(), root: self.root.clone(), n_calls: 0 }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        read_tree(&self.root, &self.root, &mut tree);
        tree
    }

    /// The directory of the project's store.
    pub fn store_directory(&self) -> PathBuf {
        fs::read_dir(&self.stores).unwrap().next().unwrap().unwrap().path()
    }
}

fn read_tree(directory: &Path, root: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let name = path.strip_prefix(root).unwrap().to_owned();
        if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
            tree.insert(name, ('l', 0, target));
        } else if metadata.is_dir() {
            tree.insert(name, ('d', mode, Vec::new()));
            read_tree(&path, root, tree);
        } else {
            tree.insert(name, ('f', mode, fs::read(&path).unwrap()));
        }
    }
}

pub struct Session {
    pub recorder: Recorder,
    pub name: String,
    root: PathBuf,
    n_calls: usize,
}

/// What a restore answered.
#[derive(Debug)]
pub struct Outcome {
    pub restored: Vec<String>,
    pub skipped: Vec<(String, String)>,
    pub undo_id: Option<String>,
}

impl Session {
    fn next_call(&mut self, tool: &str) -> CallInfo {
        self.n_calls += 1;
        CallInfo { id: format!("{}-{}", self.name, self.n_calls), tool: tool.to_owned() }
    }

    /// Changes a file as `write` and `edit` do. Returns the id of the checkpoint.
    pub fn edit(&mut self, path: &str, text: &str) -> String {
        let path = self.root.join(path);
        let call = self.next_call("edit");
        self.recorder.before_change(call.clone(), &path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.recorder.after(&call.id);
        self.checkpoint_of(&call.id)
    }

    /// Changes anything, as a command does. Returns the id of the checkpoint.
    pub fn command(&mut self, work: impl FnOnce(&Path)) -> String {
        let call = self.next_call("bash");
        let (told, done) = mpsc::channel();
        self.recorder.before_command(call.clone(), move |_| told.send(()).unwrap()).expect("commands are covered");
        done.recv().unwrap();
        work(&self.root);
        self.recorder.after(&call.id);
        self.checkpoint_of(&call.id)
    }

    pub fn checkpoint_of(&self, call: &str) -> String {
        self.recorder.flush();
        let checkpoints = self.recorder.store().checkpoints().unwrap_or_default();
        let found = checkpoints.iter().rev().find(|checkpoint| checkpoint.tool_call_id.as_deref() == Some(call));
        found.map(|checkpoint| checkpoint.id.clone()).unwrap_or_default()
    }

    pub fn restore(&self, id: &str) -> Outcome {
        self.ask(Question { id: id.to_owned(), session: self.name.clone(), paths: None, force: false }).unwrap()
    }

    pub fn force(&self, id: &str) -> Outcome {
        self.ask(Question { id: id.to_owned(), session: self.name.clone(), paths: None, force: true }).unwrap()
    }

    pub fn ask(&self, question: Question) -> Result<Outcome, Refusal> {
        let plan = self.recorder.plan(&question)?;
        if plan.changes.is_empty() {
            return Ok(outcome(Vec::new(), plan.skipped, None));
        }
        let (id, mut restore) = self.recorder.begin_restore(plan, self.name.clone(), None).unwrap();
        loop {
            let steps = restore.next(self.recorder.store());
            if steps.is_empty() {
                break;
            }
            restore.note(take(steps, &|_, _, _| Ok(())));
        }
        let (restored, skipped) = restore.finish();
        Ok(outcome(restored.iter().map(|name| name.shown()).collect(), skipped, Some(id)))
    }
}

fn outcome(restored: Vec<String>, skipped: Vec<pith_checkpoints::undo::Skipped>, undo_id: Option<String>) -> Outcome {
    let skipped = skipped.into_iter().map(|skipped| (skipped.path.shown(), skipped.reason)).collect();
    Outcome { restored, skipped, undo_id }
}
