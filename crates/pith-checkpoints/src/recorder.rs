//! Records what calls change, on a thread of its own.
//!
//! A call waits for its checkpoint, though never long, and never fails because of it. The thread is started by the first
//! call that needs it; what it is told it does in order.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::restore::Restore;
use crate::store::{Bounds, Draft, Mode, Store};
use crate::undo::{Plan, Question, Refusal};
use crate::work::Work;

/// How long a call waits for its checkpoint.
pub const PATIENCE: Duration = Duration::from_millis(250);

/// A call that may change files.
#[derive(Clone, Debug)]
pub struct CallInfo {
    pub id: String,
    pub tool: String,
}

/// The checkpoints of a session. Dropping it waits for what is being recorded.
pub struct Recorder {
    place_of_store: StorePlace,
    /// Made by whoever needs it first.
    store: OnceLock<Arc<Store>>,
    mode: Mode,
    /// Who makes the calls, and in which answer.
    place: Mutex<Place>,
    /// `None` until the first call.
    thread: Mutex<Option<Thread>>,
    /// Ends walks early.
    stop: Arc<AtomicBool>,
    problem: Arc<Mutex<Problem>>,
}

/// Where the checkpoints are, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// The directory of all projects' stores.
    pub root: PathBuf,
    pub cwd: PathBuf,
    pub bounds: Bounds,
    /// Paths that walks pass over.
    pub unwalked: Vec<PathBuf>,
}

/// The first thing that went wrong: later ones are not told.
#[derive(Debug, Default)]
pub(crate) enum Problem {
    #[default]
    None,
    Untold(String),
    Told,
}

/// Which session makes a call, and in which answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub session: String,
    pub entry: Option<String>,
}

struct Thread {
    /// Closing it ends the thread.
    tasks: mpsc::Sender<Task>,
    /// `None` if it could not be started; then nothing is recorded.
    handle: Option<JoinHandle<()>>,
}

/// What the thread is told.
pub(crate) enum Task {
    BeforeChange { call: CallInfo, place: Place, path: PathBuf, wait: Wait },
    BeforeCommand { call: CallInfo, place: Place, wait: Wait },
    After { id: String },
    Walk,
    Restored { draft: Draft, done: mpsc::Sender<std::io::Result<String>> },
    Flush(mpsc::Sender<()>),
}

/// A call that waits for its checkpoint, on the recorder's side.
pub(crate) struct Wait {
    pub patience: Patience,
    /// Called with the number of files that are covered.
    pub done: Box<dyn FnOnce(usize) + Send>,
}

/// A call that waits for its checkpoint, on the call's side.
#[derive(Clone, Debug, Default)]
pub struct Patience(Arc<AtomicU8>);

const WAITING: u8 = 0;
const CAPTURED: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Patience {
    /// Stops waiting. What is captured from now on is no longer what was before the call.
    pub fn give_up(&self) {
        let _ = self.0.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Called when everything is captured; `false` if the call has begun meanwhile.
    pub(crate) fn capture(&self) -> bool {
        self.0.compare_exchange(WAITING, CAPTURED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Recorder {
    /// Makes a recorder; it does nothing until it is told of a call.
    pub fn new(place_of_store: StorePlace, mode: Mode) -> Self {
        Recorder {
            place_of_store,
            store: OnceLock::new(),
            mode,
            place: Mutex::default(),
            thread: Mutex::default(),
            stop: Arc::default(),
            problem: Arc::default(),
        }
    }

    /// Returns whether this recorder does what one with these options would.
    pub fn is_for(&self, place: &StorePlace, mode: Mode) -> bool {
        self.place_of_store == *place && self.mode == mode
    }

    pub fn store(&self) -> &Arc<Store> {
        self.store.get_or_init(|| {
            let StorePlace { root, cwd, bounds, unwalked } = &self.place_of_store;
            Arc::new(Store::new(root, cwd, *bounds, unwalked.iter().cloned()))
        })
    }

    /// Returns whether commands and other tools are covered.
    pub fn covers_commands(&self) -> bool {
        self.mode == Mode::Workspace
    }

    /// Returns the first thing that went wrong, once.
    pub fn take_problem(&self) -> Option<String> {
        let mut problem = lock(&self.problem);
        let Problem::Untold(text) = &mut *problem else { return None };
        let text = std::mem::take(text);
        *problem = Problem::Told;
        Some(text)
    }

    /// Notes the session and the entry of the answer that the next calls are part of.
    pub fn note_place(&self, session: &str, entry: Option<&str>) {
        *lock(&self.place) = Place { session: session.to_owned(), entry: entry.map(str::to_owned) };
    }

    /// Starts the thread if it does not run. Called before a call goes to a thread that is confined: what that one starts
    /// could not write the store.
    pub fn wake(&self) {
        if self.mode != Mode::Off {
            lock(&self.thread).get_or_insert_with(|| self.start());
        }
    }

    /// Called before a tool changes a file, whose path has its links resolved. Returns when that can begin.
    pub fn before_change(&self, call: CallInfo, path: &Path) {
        if self.mode == Mode::Off {
            return;
        }
        let (told, done) = mpsc::channel();
        let patience = Patience::default();
        let wait = Wait {
            patience: patience.clone(),
            done: Box::new(move |_| {
                // Nobody listens any more if the call has begun.
                let _ = told.send(());
            }),
        };
        let place = lock(&self.place).clone();
        self.send(Task::BeforeChange { call, place, path: path.to_owned(), wait });
        if done.recv_timeout(PATIENCE).is_err() {
            patience.give_up();
        }
    }

    /// Called before a tool that may change any file of the project. `done` is called when that can begin, with the
    /// number of files that are covered; whoever does not wait for it says so. `None` if nothing is recorded.
    pub fn before_command(&self, call: CallInfo, done: impl FnOnce(usize) + Send + 'static) -> Option<Patience> {
        if self.mode != Mode::Workspace {
            return None;
        }
        let patience = Patience::default();
        let wait = Wait { patience: patience.clone(), done: Box::new(done) };
        let place = lock(&self.place).clone();
        self.send(Task::BeforeCommand { call, place, wait });
        Some(patience)
    }

    /// Called when a call has ended, whether it was recorded or not.
    pub fn after(&self, call_id: &str) {
        if lock(&self.thread).is_some() {
            self.send(Task::After { id: call_id.to_owned() });
        }
    }

    /// Sees the project for the first time in the background, if commands are covered.
    pub fn begin_walk(&self) {
        if self.mode == Mode::Workspace && lock(&self.thread).is_none() {
            self.send(Task::Walk);
        }
    }

    /// Waits until everything that was told is recorded.
    pub fn flush(&self) {
        if lock(&self.thread).is_none() {
            return;
        }
        let (told, done) = mpsc::channel();
        self.send(Task::Flush(told));
        // A thread that has ended has nothing to record.
        let _ = done.recv();
    }

    /// Plans to put files back. Nothing is changed yet.
    pub fn plan(&self, question: &Question) -> Result<Plan, Refusal> {
        self.flush();
        Plan::new(self.store(), question)
    }

    /// Writes the checkpoint of what is about to be put back, for the session that asks. Returns its id and the steps
    /// to take.
    pub fn begin_restore(
        &self,
        plan: Plan,
        session: String,
        entry_id: Option<String>,
    ) -> std::io::Result<(String, Restore)> {
        let restore = Restore::prepare(self.store(), plan)?;
        let draft = Draft {
            session,
            entry_id,
            tool_call_id: None,
            tool: "restore_checkpoint".to_owned(),
            partial: None,
            files: restore.covered().cloned().collect(),
            is_ended: true,
            tree: None,
        };
        let (told, done) = mpsc::channel();
        self.send(Task::Restored { draft, done: told });
        let id = done.recv().unwrap_or_else(|_| Err(std::io::Error::other("the recorder ended")))?;
        Ok((id, restore))
    }

    fn send(&self, task: Task) {
        let mut thread = lock(&self.thread);
        let running = thread.get_or_insert_with(|| self.start());
        // A thread that has ended takes nothing; whoever waits notices that at once.
        let _ = running.tasks.send(task);
    }

    fn start(&self) -> Thread {
        let (tasks, queue) = mpsc::channel();
        let mut work = Work::new(self.store().clone(), self.mode, self.stop.clone(), self.problem.clone());
        let run = move || {
            queue.into_iter().for_each(|task| work.perform(task));
            work.leave();
        };
        let spawned = thread::Builder::new().name("pith-checkpoints".to_owned()).spawn(run);
        let failed = |error: &std::io::Error| {
            note(&self.problem, format!("A checkpoint could not be written: no thread could be started: {error}"));
        };
        Thread { tasks, handle: spawned.inspect_err(failed).ok() }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Thread { tasks, handle }) = lock(&self.thread).take() {
            drop(tasks);
            // A panic has been shown already.
            let _ = handle.map(JoinHandle::join);
        }
    }
}

/// Notes something that went wrong, if it is the first.
pub(crate) fn note(problem: &Mutex<Problem>, text: String) {
    let mut problem = lock(problem);
    if let Problem::None = *problem {
        *problem = Problem::Untold(text);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
