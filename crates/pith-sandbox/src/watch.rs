//! Watches protected paths while commands run, and puts back what they change.
//!
//! Landlock cannot take a path out of a directory that can be written, so this is done where the kernel does not help:
//! a change is undone within moments, and whoever watches is told, to end the command.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use crate::record::Record;

/// Called with each protected path that was changed, after it was put back.
pub type OnChange = Box<dyn Fn(&Path) + Send + Sync>;

/// Watches until it is dropped; the drop looks a last time.
pub struct Watch {
    guarded: Arc<Guarded>,
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What is watched, and what happened to it.
struct Guarded {
    paths: Vec<PathBuf>,
    record: Record,
    on_change: OnChange,
    changed: Mutex<Vec<PathBuf>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("paths", &self.guarded.paths).finish_non_exhaustive()
    }
}

impl Watch {
    /// Records what the paths hold now, and watches them. An error means that they cannot be protected.
    pub fn start(paths: &[PathBuf], on_change: OnChange) -> io::Result<Watch> {
        let record = Record::of(paths)?;
        let guarded = Arc::new(Guarded { paths: paths.to_vec(), record, on_change, changed: Mutex::default() });
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let (stopped, stop) = io::pipe()?;
        // Watched before the caller starts anything, so that no change is missed.
        watch_all(&events, paths)?;
        let watched = Arc::clone(&guarded);
        let thread = thread::Builder::new().name("pith-protect".to_owned()).spawn(move || {
            let stopped = OwnedFd::from(stopped);
            while wait(&events, &stopped) {
                watched.look();
                // Directories may be new ones by now.
                let _ = watch_all(&events, &watched.paths);
            }
            watched.look();
        })?;
        Ok(Watch { guarded, stop: Some(stop.into()), thread: Some(thread) })
    }

    /// Looks now, and returns every path that was changed and put back since the start.
    pub fn look(&self) -> Vec<PathBuf> {
        self.guarded.look()
    }
}

/// The watch as one command has it: what others changed before it began is not its doing.
#[derive(Clone, Debug)]
pub struct CommandWatch {
    watch: Arc<Watch>,
    n_before: usize,
}

impl CommandWatch {
    /// Called before the command is started.
    pub fn new(watch: Arc<Watch>) -> CommandWatch {
        let n_before = watch.look().len();
        CommandWatch { watch, n_before }
    }

    /// Looks now, and returns the first path that was changed and put back since the command began.
    pub fn first_change(&self) -> Option<PathBuf> {
        self.watch.look().into_iter().nth(self.n_before)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Guarded {
    fn look(&self) -> Vec<PathBuf> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.record.put_back() {
            (self.on_change)(&path);
            changed.push(path);
        }
        changed.clone()
    }
}

/// Waits for the next change; returns `false` when watching is over.
fn wait(events: &OwnedFd, stopped: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(events, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
    let over = !polled[1].revents().is_empty();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
    !over
}

/// Watches every protected path, what is below it, and the directories it could be moved away with.
fn watch_all(events: &OwnedFd, paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        for directory in path.ancestors().skip(1).take(3) {
            watch(events, directory)?;
        }
        watch_below(events, path)?;
    }
    Ok(())
}

fn watch_below(events: &OwnedFd, path: &Path) -> io::Result<()> {
    watch(events, path)?;
    if !std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        watch_below(events, &entry.path())?;
    }
    Ok(())
}

fn watch(events: &OwnedFd, path: &Path) -> io::Result<()> {
    use inotify::WatchFlags;
    let flags = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::DONT_FOLLOW;
    match inotify::add_watch(events, path, flags) {
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
        let first = CommandWatch::new(Arc::clone(&watch));
        std::fs::create_dir(&path).unwrap();
        assert_eq!(first.first_change(), Some(path.clone()));
        let second = CommandWatch::new(watch);
        assert_eq!(second.first_change(), None);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(second.first_change(), Some(path));
    }

    #[test]
    fn a_change_is_undone_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        let (tell, told) = mpsc::channel();
        let watch = Watch::start(
            &[root.join(".git/hooks"), root.join(".envrc")],
            Box::new(move |path| tell.send(path.to_owned()).unwrap()),
        )
        .unwrap();
        fs::write(root.join(".envrc"), "x").unwrap();
        assert_eq!(told.recv().unwrap(), root.join(".envrc"));
        fs::create_dir(root.join(".git/hooks/deep")).unwrap();
        assert_eq!(told.recv().unwrap(), root.join(".git/hooks/deep"));
        fs::write(root.join("free"), "x").unwrap();
        assert_eq!(watch.look(), [root.join(".envrc"), root.join(".git/hooks/deep")]);
        assert!(!root.join(".envrc").exists() && !root.join(".git/hooks/deep").exists() && root.join("free").exists());
    }
}
