//! What the recorder's thread does.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::log::Covered;
use crate::recorder::{CallInfo, PATIENCE, Patience, Place, Problem, Task, note};
use crate::state::{Name, State};
use crate::store::{Draft, Mode, Store};
use crate::tree::Tree;

/// After so many checkpoints the bounds are looked at again.
const PRUNE_EVERY: u64 = 200;

/// The state of the thread.
pub(crate) struct Work {
    store: Arc<Store>,
    mode: Mode,
    /// Tells the trees of recorders apart.
    writer: String,
    tree: Tree,
    /// Calls that run, the oldest first.
    open: Vec<OpenCall>,
    n_written: u64,
    stop: Arc<AtomicBool>,
    problem: Arc<Mutex<Problem>>,
}

struct OpenCall {
    call_id: String,
    checkpoint: String,
    /// The files it changes; `None` if it may change any.
    files: Option<Vec<Covered>>,
}

impl Work {
    pub fn new(store: Arc<Store>, mode: Mode, stop: Arc<AtomicBool>, problem: Arc<Mutex<Problem>>) -> Self {
        let writer = Uuid::new_v4().simple().to_string();
        Work { store, mode, writer, tree: Tree::default(), open: Vec::new(), n_written: 0, stop, problem }
    }

    pub fn perform(&mut self, task: Task) {
        match task {
            Task::BeforeChange { call, place, path, wait } => {
                self.note_failure(|work| work.before_change(call, place, &path, &wait.patience));
                (wait.done)(1);
                self.prune_if_due();
            }
            Task::BeforeCommand { call, place, wait } => {
                self.note_failure(|work| work.before_command(call, place, &wait.patience));
                (wait.done)(self.tree.n_entries());
                self.prune_if_due();
            }
            Task::After { id } => self.note_failure(|work| work.after(&id)),
            Task::Walk => self.note_failure(Work::look_around),
            Task::Restored { draft, done } => {
                let written = self.begin(draft);
                // The asker has gone if nobody listens.
                let _ = done.send(written);
            }
            Task::Flush(done) => {
                let _ = done.send(());
            }
        }
    }

    /// Does something; a failure is told later, and once.
    fn note_failure(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) {
        let outcome = work(self);
        let is_stopped = self.stop.load(Ordering::Relaxed);
        if let Err(error) = outcome
            && !is_stopped
        {
            note(&self.problem, format!("A checkpoint could not be written: {error}"));
        }
    }

    fn before_change(&mut self, call: CallInfo, place: Place, path: &Path, patience: &Patience) -> io::Result<()> {
        let project = self.store.project();
        // Directories that the tool will have to make are covered as well.
        let missing = path.ancestors().skip(1).take_while(|directory| directory.symlink_metadata().is_err());
        let mut files: Vec<Covered> = missing.map(|path| covered(path, project, State::Absent)).collect();
        let before = self.store.capture.keep(path)?;
        if !patience.capture() {
            return Err(too_late());
        }
        let partial = match &before {
            State::Unkept { why, .. } => Some(why.to_string()),
            _ => None,
        };
        files.push(covered(path, project, before));
        let checkpoint = self.begin(draft(&call, place, partial, files.clone(), None))?;
        self.open.push(OpenCall { call_id: call.id, checkpoint, files: Some(files) });
        Ok(())
    }

    fn before_command(&mut self, call: CallInfo, place: Place, patience: &Patience) -> io::Result<()> {
        self.look_around()?;
        if !patience.capture() {
            return Err(too_late());
        }
        // If this process is killed, what the command has changed is found by comparing with this.
        self.tree.save(&self.store.tree_file(&self.writer))?;
        let partial = self.tree.partial.clone();
        let checkpoint = self.begin(draft(&call, place, partial, Vec::new(), Some(self.writer.clone())))?;
        self.open.push(OpenCall { call_id: call.id, checkpoint, files: None });
        Ok(())
    }

    fn after(&mut self, call_id: &str) -> io::Result<()> {
        let Some(at) = self.open.iter().position(|call| call.call_id == call_id) else { return Ok(()) };
        if self.open[at].files.is_none() {
            self.look_around()?;
            let OpenCall { checkpoint, .. } = self.open.remove(at);
            return self.store.change(&checkpoint, Vec::new(), true);
        }
        let OpenCall { checkpoint, files, .. } = self.open.remove(at);
        let mut files = files.unwrap_or_default();
        for file in &mut files {
            file.after = Some(self.store.look(&file.path));
            self.tree.refresh(&file.path, self.store.project(), &self.store.capture)?;
        }
        self.store.change(&checkpoint, files, true)
    }

    /// Walks the project. What has changed is the work of the oldest command that runs; if none does, of somebody else.
    fn look_around(&mut self) -> io::Result<()> {
        if self.mode != Mode::Workspace {
            return Ok(());
        }
        let mut changes = self.store.walk(&mut self.tree, &self.stop)?;
        let in_change: Vec<&Name> =
            self.open.iter().filter_map(|call| call.files.as_ref()).flatten().map(|file| &file.path).collect();
        changes.retain(|change| !in_change.contains(&&change.path));
        let command = self.open.iter().find(|call| call.files.is_none());
        match command.filter(|_| !changes.is_empty()) {
            Some(command) => self.store.change(&command.checkpoint, changes, false),
            None => Ok(()),
        }
    }

    fn begin(&mut self, draft: Draft) -> io::Result<String> {
        let id = self.store.begin(draft, self.n_written)?;
        self.n_written += 1;
        Ok(id)
    }

    fn prune_if_due(&self) {
        if self.n_written % PRUNE_EVERY == 1 {
            // Tried again later; until then more is kept than has to be.
            let _ = self.store.prune();
        }
    }

    /// Called at the end. All changes are recorded, so nobody needs the tree.
    pub fn leave(&self) {
        if self.open.is_empty() {
            let _ = std::fs::remove_file(self.store.tree_file(&self.writer));
        }
    }
}

fn covered(path: &Path, project: &Path, before: State) -> Covered {
    Covered { path: Name::of(path, project), before, after: None }
}

fn draft(call: &CallInfo, place: Place, partial: Option<String>, files: Vec<Covered>, tree: Option<String>) -> Draft {
    Draft {
        session: place.session,
        entry_id: place.entry,
        tool_call_id: Some(call.id.clone()),
        tool: call.tool.clone(),
        partial,
        files,
        is_ended: false,
        tree,
    }
}

fn too_late() -> io::Error {
    io::Error::other(format!("it took longer than {} ms", PATIENCE.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Wait;
    use crate::store::Bounds;

    #[test]
    fn a_call_that_has_waited_too_long_begins_without_a_checkpoint_and_that_is_told() {
        let scratch = tempfile::tempdir().expect("a directory");
        let project = scratch.path().join("project");
        std::fs::create_dir(&project).expect("made");
        std::fs::write(project.join("a"), "one").expect("written");
        let store = Arc::new(Store::new(&scratch.path().join("stores"), &project, Bounds::default(), []));
        let path = store.project().join("a");
        let problem = Arc::default();
        let mut work = Work::new(store.clone(), Mode::Workspace, Arc::default(), Arc::clone(&problem));
        let call = |id: &str| CallInfo { id: id.to_owned(), tool: "edit".to_owned() };
        let wait = |patience| Wait { patience, done: Box::new(|_| {}) };
        let late = Patience::default();
        late.give_up();
        let place = Place::default();
        work.perform(Task::BeforeChange { call: call("a"), place, path: path.clone(), wait: wait(late.clone()) });
        work.perform(Task::BeforeCommand { call: call("b"), place: Place::default(), wait: wait(late) });
        assert!(store.checkpoints().expect("a log").is_empty(), "what came after the call is not what was before it");
        let told = "A checkpoint could not be written: it took longer than 250 ms";
        assert!(matches!(&*problem.lock().expect("lock"), Problem::Untold(text) if text == told));
        let place = Place::default();
        work.perform(Task::BeforeChange { call: call("c"), place, path, wait: wait(Patience::default()) });
        assert_eq!(store.checkpoints().expect("a log").len(), 1);
    }
}
