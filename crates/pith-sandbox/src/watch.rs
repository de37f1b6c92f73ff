//! Watches protected paths while commands run, and puts back what they change.
//!
//! Landlock cannot take a path out of a directory that can be written, so this is done where the kernel does not help:
//! a change is undone within moments, and whoever watches is told, to end the command.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, WatchFlags};

use crate::guard::{Guard, Moment};
use crate::policy::Policy;
use crate::record::Record;
use crate::tree::Tree;

pub use crate::guard::PutBack;

/// How often commands may change one path that is put back before they are ended.
const MAX_TRIES: usize = 3;

/// Called with each protected path that was changed, after it was put back, if the commands are to be ended for it.
pub type OnChange = Box<dyn Fn(&Path) + Send + Sync>;

/// Watches the protected paths of a policy. What changes while no command runs is the user's doing and stays.
pub struct Watch {
    guarded: Arc<Guarded>,
    /// Wakes the thread when a command begins; closing it ends the thread.
    wake: Option<io::PipeWriter>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What is watched, and what happened to it.
struct Guarded {
    paths: Vec<PathBuf>,
    /// Changes, as the kernel reports them.
    events: OwnedFd,
    on_change: OnChange,
    state: Mutex<State>,
}

struct State {
    record: Record,
    /// What is looked after in all directories that commands can write.
    guard: Option<Guard>,
    /// How many commands may still have processes.
    n_commands: usize,
    /// Every path that was put back, in order.
    changed: Vec<PathBuf>,
    /// What the guard has put back, in order. Commands are not ended for it.
    put_back: Vec<PutBack>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("paths", &self.guarded.paths).finish_non_exhaustive()
    }
}

impl Watch {
    /// Records what the paths hold now, and watches them. An error means that they cannot be protected.
    pub fn start(paths: &[PathBuf], on_change: OnChange) -> io::Result<Watch> {
        Watch::start_with(paths, on_change, |_| None)
    }

    /// Like [`Watch::start`] for the paths that the kernel does not hold, and looks after everything else that commands
    /// of the policy can write: names of the table, and what git would run.
    pub fn of_policy(policy: &Policy, paths: &[PathBuf], on_change: OnChange) -> io::Result<Watch> {
        let guard = |events: &OwnedFd| Some(Guard::new(events, policy, policy.protected.clone()));
        Watch::start_with(paths, on_change, guard)
    }

    fn start_with(
        paths: &[PathBuf],
        on_change: OnChange,
        guard: impl FnOnce(&OwnedFd) -> Option<Guard>,
    ) -> io::Result<Watch> {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        watch_all(&events, paths)?;
        let guard = guard(&events);
        let state =
            State { record: Record::of(paths)?, guard, n_commands: 0, changed: Vec::new(), put_back: Vec::new() };
        let guarded = Arc::new(Guarded { paths: paths.to_vec(), events, on_change, state: Mutex::new(state) });
        let (woken, wake) = io::pipe()?;
        let watched = Arc::clone(&guarded);
        let thread = thread::Builder::new().name("pith-protect".to_owned()).spawn(move || {
            while watched.wait(&woken) {
                watched.look(Moment::Running);
            }
        })?;
        Ok(Watch { guarded, wake: Some(wake), thread: Some(thread) })
    }

    /// Whether the directories are too many for all of them to be watched.
    pub fn is_partial(&self) -> bool {
        self.guarded.state().guard.as_ref().is_some_and(Guard::is_partial)
    }
}

/// Whether everything below a directory can be watched here and now.
pub fn is_watched_whole(directory: &Path) -> bool {
    let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    let walked = events.map(|events| Tree::new(&events, &[directory.to_owned()]));
    walked.is_ok_and(|tree| !tree.is_partial)
}

/// The watch as one command has it: what others changed before it began is not its doing. The paths are guarded until
/// the last clone is dropped.
#[derive(Clone, Debug)]
pub struct CommandWatch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    watch: Arc<Watch>,
    n_before: usize,
    n_put_back: usize,
    /// Set when the last look has been taken.
    is_over: bool,
}

/// What was put back since a command began.
#[derive(Debug, Default)]
pub struct Changes {
    /// The first protected path among it: the command is ended for it.
    pub protected: Option<PathBuf>,
    /// What commands are not ended for.
    pub put_back: Vec<PutBack>,
}

impl CommandWatch {
    /// Called before the command is started. An error means that the paths cannot be protected from it.
    pub fn new(watch: Arc<Watch>) -> io::Result<CommandWatch> {
        let command = CommandWatch::without_thread(watch)?;
        if let Some(mut wake) = command.0.watch.wake.as_ref() {
            // A pipe that is full wakes the thread as well.
            let _ = wake.write(&[0]);
        }
        Ok(command)
    }

    /// For a call that has no process of its own and ends with [`CommandWatch::end`]: the thread is not woken for it.
    pub fn without_thread(watch: Arc<Watch>) -> io::Result<CommandWatch> {
        let (n_before, n_put_back) = watch.guarded.begin()?;
        Ok(CommandWatch(Arc::new(Watched { watch, n_before, n_put_back, is_over: false })))
    }

    /// Whether a change is known that was put back since the command began. Does not look.
    pub fn knows_change(&self) -> bool {
        self.0.watch.guarded.state().changed.len() > self.0.n_before
    }

    /// Looks now, and returns what was put back since the command began.
    pub fn changes(&self) -> Changes {
        let guarded = &self.0.watch.guarded;
        guarded.look(Moment::Ended);
        let state = guarded.state();
        Changes {
            protected: state.changed.get(self.0.n_before).cloned(),
            put_back: state.put_back.get(self.0.n_put_back..).unwrap_or_default().to_vec(),
        }
    }

    /// Looks for the last time, if this is the last clone.
    pub fn end(self) -> Changes {
        let changes = self.changes();
        if let Some(mut watched) = Arc::into_inner(self.0) {
            watched.is_over = true;
        }
        changes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.is_over {
            self.watch.guarded.look(Moment::Ended);
        }
        self.watch.guarded.state().n_commands -= 1;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Guarded {
    /// Takes what is there now for what must stay, if no command runs. Returns how many changes there were before.
    fn begin(&self) -> io::Result<(usize, usize)> {
        self.look(Moment::Running);
        let mut state = self.state();
        if state.n_commands == 0 {
            match &mut state.guard {
                Some(guard) => drop(guard.check(&self.events, Moment::Idle)),
                None => drain(&self.events),
            }
            if !state.record.is_current() {
                // Watched before it is recorded, so that no change is missed.
                watch_all(&self.events, &self.paths)?;
                state.record = Record::of(&self.paths)?;
            }
        }
        state.n_commands += 1;
        Ok((state.changed.len(), state.put_back.len()))
    }

    /// Puts back what has changed while commands run, and tells of it.
    fn look(&self, moment: Moment) {
        let mut state = self.state();
        if state.n_commands == 0 {
            return;
        }
        let mut changed = state.record.put_back();
        let is_watched = state.guard.as_ref().is_some_and(|guard| !guard.is_partial()) && changed.is_empty();
        if moment == Moment::Running && !is_watched {
            // Directories may be new ones by now, with something in them already. What cannot be watched is looked at
            // when the command ends.
            let _ = watch_all(&self.events, &self.paths);
            changed.extend(state.record.put_back());
        }
        state.changed.extend_from_slice(&changed);
        let put_back = match &mut state.guard {
            Some(guard) => guard.check(&self.events, moment),
            None => {
                drain(&self.events);
                Vec::new()
            }
        };
        for change in put_back {
            let n_tries = state.put_back.iter().filter(|known| known.path == change.path).count();
            // Whoever tries again and again would win at last.
            if n_tries >= MAX_TRIES && moment == Moment::Running {
                changed.push(change.path.clone());
            }
            state.put_back.push(change);
        }
        // Whoever is told may end commands, and with them their watch.
        drop(state);
        changed.iter().for_each(|path| (self.on_change)(path));
    }

    /// Waits for the next change, or for a command if none runs; returns `false` when watching is over.
    fn wait(&self, woken: &io::PipeReader) -> bool {
        let is_idle = self.state().n_commands == 0;
        let mut polled = vec![PollFd::new(woken, PollFlags::IN)];
        if !is_idle {
            polled.push(PollFd::new(&self.events, PollFlags::IN));
        }
        while let Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
        let told = polled[0].revents();
        if told.contains(PollFlags::IN) {
            let mut bytes = [0; 64];
            return (&*woken).read(&mut bytes).is_ok_and(|n| n > 0);
        }
        told.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what has happened so far; that something has is all there is to know.
pub(crate) fn drain(events: &OwnedFd) {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
}

/// Watches which entries a directory has; one that does not exist has none.
pub(crate) fn entries(events: &OwnedFd, directory: &Path) -> io::Result<()> {
    watch(events, directory, entries_change())
}

/// Watches every protected path, what is below it, and the directories it could be moved away with.
fn watch_all(events: &OwnedFd, paths: &[PathBuf]) -> io::Result<()> {
    let mut above: Vec<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1).take(3)).collect();
    above.sort_unstable();
    above.dedup();
    for directory in above {
        entries(events, directory)?;
    }
    for path in paths {
        watch_below(events, path)?;
    }
    Ok(())
}

fn watch_below(events: &OwnedFd, path: &Path) -> io::Result<()> {
    let everything =
        entries_change() | WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::DONT_FOLLOW;
    watch(events, path, everything)?;
    if !std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        watch_below(events, &entry.path())?;
    }
    Ok(())
}

/// What can put another file in the place of one.
fn entries_change() -> WatchFlags {
    WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF
}

fn watch(events: &OwnedFd, path: &Path, flags: WatchFlags) -> io::Result<()> {
    // A directory that is above one protected path may be another one itself.
    match inotify::add_watch(events, path, flags | WatchFlags::MASK_ADD) {
        Ok(_) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc;

    #[test]
    fn a_command_is_not_blamed_for_what_was_changed_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("hooks");
        let watch = Arc::new(Watch::start(std::slice::from_ref(&path), Box::new(|_| {})).unwrap());
        let first = CommandWatch::new(Arc::clone(&watch)).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(first.changes().protected, Some(path.clone()));
        assert!(first.knows_change());
        let second = CommandWatch::new(watch).unwrap();
        assert_eq!(second.changes().protected, None);
        assert!(!second.knows_change());
        fs::create_dir(&path).unwrap();
        assert_eq!(second.changes().protected, Some(path));
    }

    #[test]
    fn a_change_is_undone_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        let (tell, told) = mpsc::channel();
        let watch = Watch::start(
            &[root.join(".git/hooks"), root.join(".envrc"), root.join(".config/fish")],
            Box::new(move |path| tell.send(path.to_owned()).unwrap()),
        )
        .unwrap();
        let command = CommandWatch::new(Arc::new(watch)).unwrap();
        fs::write(root.join(".envrc"), "x").unwrap();
        assert_eq!(told.recv().unwrap(), root.join(".envrc"));
        fs::create_dir(root.join(".git/hooks/deep")).unwrap();
        assert_eq!(told.recv().unwrap(), root.join(".git/hooks/deep"));
        fs::write(root.join("free"), "x").unwrap();
        // A directory that was not there when the watch began is watched too.
        fs::create_dir_all(root.join(".config/fish")).unwrap();
        assert_eq!(told.recv().unwrap(), root.join(".config/fish"));
        assert_eq!(command.changes().protected, Some(root.join(".envrc")));
        assert!(!root.join(".envrc").exists() && !root.join(".git/hooks/deep").exists() && root.join("free").exists());
    }

    #[test]
    fn what_changes_while_no_command_runs_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let paths = [root.join("hooks"), root.join(".envrc")];
        let watch = Arc::new(Watch::start(&paths, Box::new(|_| {})).unwrap());
        drop(CommandWatch::new(Arc::clone(&watch)).unwrap());
        fs::write(root.join(".envrc"), "mine").unwrap();
        fs::create_dir(root.join("hooks")).unwrap();
        let command = CommandWatch::new(Arc::clone(&watch)).unwrap();
        assert_eq!(command.changes().protected, None);
        fs::write(root.join(".envrc"), "its").unwrap();
        fs::write(root.join("hooks/new"), "its").unwrap();
        drop(command);
        assert_eq!(fs::read_to_string(root.join(".envrc")).unwrap(), "mine");
        assert_eq!(fs::read_dir(root.join("hooks")).unwrap().count(), 0);
    }
}
