//! `fs.watch`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::function::Func;
use rquickjs::{Ctx, Object};

use super::errno::Failure;
use super::text::Text;
use crate::engine::State;
use crate::engine::inbox::Inbox;

#[cfg(target_os = "linux")]
use inotify as backend;
#[cfg(not(target_os = "linux"))]
use polling as backend;

/// How many directories below one that is watched are watched with it. A larger tree fails as it does where the system
/// has a lower limit.
#[cfg(target_os = "linux")]
const MAX_DIRECTORIES: usize = 8192;

/// The open watches, by the operation that receives changes.
pub struct Watchers {
    inbox: Inbox,
    open: RefCell<HashMap<u64, backend::Watch>>,
}

impl Watchers {
    /// Creates an empty set.
    pub fn new(inbox: Inbox) -> Self {
        Watchers { inbox, open: RefCell::default() }
    }

    fn start(&self, op: u64, path: &str, recursive: bool) -> Result<(), Failure> {
        let watch = backend::watch(op, path, recursive, self.inbox.clone())?;
        self.open.borrow_mut().insert(op, watch);
        Ok(())
    }

    /// Called when JavaScript has dealt with a change. The next one waits until then, so that a flood of changes stays in
    /// the kernel, which bounds it.
    fn acknowledge(&self, op: u64) {
        if let Some(watch) = self.open.borrow().get(&op) {
            watch.acknowledge();
        }
    }

    /// Closes all watches.
    pub fn close(&self) {
        self.open.borrow_mut().clear();
    }
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "watch",
        Func::from(move |ctx: Ctx<'js>, op: f64, path: Text, recursive: bool| {
            here.watchers.start(op as u64, &path.0, recursive).map_err(|failure| failure.throw(&ctx))
        }),
    )?;
    let here = state.clone();
    group.set("watched", Func::from(move |op: f64| here.watchers.acknowledge(op as u64)))?;
    let here = state.clone();
    group.set("unwatch", Func::from(move |op: f64| drop(here.watchers.open.borrow_mut().remove(&(op as u64)))))
}

/// Changes as the kernel reports them.
#[cfg(target_os = "linux")]
mod inotify {
    use std::collections::HashMap;
    use std::fs;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::mpsc::{self, Receiver, Sender};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use serde_json::json;

    use super::super::errno::Failure;
    use super::MAX_DIRECTORIES;
    use crate::engine::inbox::{Inbox, Payload, ToEngine};

    const STACK: usize = 128 << 10;

    /// An open watch. Dropping it removes the root watch, whose removal event ends the thread.
    pub struct Watch {
        descriptor: Arc<OwnedFd>,
        root: i32,
        /// One message for each change that JavaScript has dealt with.
        acknowledged: Sender<()>,
    }

    impl Watch {
        pub fn acknowledge(&self) {
            // The thread ends with what it watches.
            let _ = self.acknowledged.send(());
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            // Fails if the watched file is gone; then the thread has ended already.
            let _ = inotify::remove_watch(&*self.descriptor, self.root);
        }
    }

    fn interest() -> WatchFlags {
        WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
    }

    pub fn watch(op: u64, path: &str, recursive: bool, inbox: Inbox) -> Result<Watch, Failure> {
        let failed = |errno: rustix::io::Errno| Failure::of(errno, "watch", Some(path));
        let descriptor = Arc::new(inotify::init(CreateFlags::CLOEXEC).map_err(failed)?);
        let root = inotify::add_watch(&*descriptor, path, interest()).map_err(failed)?;
        let mut places = Places { root: PathBuf::from(path), directories: HashMap::new() };
        if recursive && !places.add_below(&descriptor, Path::new(path)) {
            return Err(failed(rustix::io::Errno::NOSPC));
        }
        let (acknowledged, acknowledgements) = mpsc::channel();
        let reader = descriptor.clone();
        let builder = std::thread::Builder::new().name("pith-ext-watch".to_owned()).stack_size(STACK);
        let spawned =
            builder.spawn(move || follow(&reader, root, recursive, places, &Target { op, inbox, acknowledgements }));
        spawned.map_err(|error| Failure::new(&error, "watch", Some(path)))?;
        Ok(Watch { descriptor, root, acknowledged })
    }

    /// The directory of each watch number.
    struct Places {
        root: PathBuf,
        directories: HashMap<i32, PathBuf>,
    }

    impl Places {
        /// Watches all directories below one; returns false if there are too many.
        fn add_below(&mut self, descriptor: &OwnedFd, directory: &Path) -> bool {
            let mut waiting = vec![directory.to_owned()];
            while let Some(directory) = waiting.pop() {
                let Ok(entries) = fs::read_dir(directory) else { continue };
                for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                    if self.directories.len() >= MAX_DIRECTORIES {
                        return false;
                    }
                    self.add(descriptor, &entry.path());
                    waiting.push(entry.path());
                }
            }
            true
        }

        fn add(&mut self, descriptor: &OwnedFd, directory: &Path) {
            if let Ok(number) = inotify::add_watch(descriptor, directory, interest()) {
                self.directories.insert(number, directory.to_owned());
            }
        }

        /// The name of what changed, relative to what is watched.
        fn name(&self, number: i32, file: Option<&str>) -> Option<String> {
            let inner = self.directories.get(&number).and_then(|path| path.strip_prefix(&self.root).ok());
            match (inner, file) {
                (Some(inner), Some(file)) => Some(inner.join(file).display().to_string()),
                (Some(inner), None) => Some(inner.display().to_string()),
                (None, Some(file)) => Some(file.to_owned()),
                (None, None) => self.root.file_name().map(|name| name.to_string_lossy().into_owned()),
            }
        }
    }

    /// Who is told of changes, one at a time.
    struct Target {
        op: u64,
        inbox: Inbox,
        acknowledgements: Receiver<()>,
    }

    impl Target {
        /// Reports a change and waits until it is dealt with; returns false if nobody listens any more.
        fn tell(&self, payload: Payload) -> bool {
            self.inbox.send(ToEngine::Push { op: self.op, payload }).is_ok() && self.acknowledgements.recv().is_ok()
        }
    }

    fn follow(descriptor: &OwnedFd, root: i32, recursive: bool, mut places: Places, target: &Target) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(descriptor, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            };
            let flags = event.events();
            if flags.contains(ReadFlags::IGNORED) && event.wd() == root {
                break;
            }
            let file = event.file_name().map(|name| name.to_string_lossy().into_owned());
            if recursive
                && flags.contains(ReadFlags::ISDIR)
                && flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
                && let Some(file) = &file
            {
                let parent = places.directories.get(&event.wd()).cloned().unwrap_or_else(|| places.root.clone());
                if places.directories.len() < MAX_DIRECTORIES {
                    places.add(descriptor, &parent.join(file));
                }
            }
            let kind = if flags.intersects(ReadFlags::MODIFY | ReadFlags::ATTRIB) { "change" } else { "rename" };
            let payload = Payload::json(&json!({ "kind": kind, "name": places.name(event.wd(), file.as_deref()) }));
            if !target.tell(payload) {
                break;
            }
        }
    }
}

/// Finds changes by polling, where the kernel does not report them.
#[cfg(not(target_os = "linux"))]
mod polling {
    use std::collections::HashMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::{self, RecvTimeoutError, Sender};
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::super::errno::Failure;
    use crate::engine::inbox::{Inbox, Payload, ToEngine};

    const PERIOD: Duration = Duration::from_millis(500);

    /// How many files are looked at.
    const MAX_FILES: usize = 1 << 16;

    /// An open watch. Dropping it ends the thread.
    pub struct Watch(#[expect(dead_code, reason = "closing the channel is the message")] Sender<()>);

    impl Watch {
        pub fn acknowledge(&self) {}
    }

    type Snapshot = HashMap<PathBuf, (u64, Option<SystemTime>)>;

    pub fn watch(op: u64, path: &str, recursive: bool, inbox: Inbox) -> Result<Watch, Failure> {
        fs::metadata(path).map_err(|error| Failure::new(&error, "watch", Some(path)))?;
        let root = PathBuf::from(path);
        let (stop, stopped) = mpsc::channel();
        let mut before = look(&root, recursive);
        std::thread::spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = look(&root, recursive);
                for (path, kind) in differences(&before, &now) {
                    let name = path.strip_prefix(&root).ok().filter(|name| !name.as_os_str().is_empty());
                    let name = name.map_or_else(|| path.file_name().map(PathBuf::from), |name| Some(name.to_owned()));
                    let payload = Payload::json(&json!({ "kind": kind, "name": name }));
                    if inbox.send(ToEngine::Push { op, payload }).is_err() {
                        return;
                    }
                }
                before = now;
            }
        });
        Ok(Watch(stop))
    }

    fn look(path: &Path, recursive: bool) -> Snapshot {
        let mut found = Snapshot::new();
        collect(path, recursive, true, &mut found);
        found
    }

    fn collect(path: &Path, recursive: bool, is_root: bool, found: &mut Snapshot) {
        let Ok(facts) = fs::metadata(path) else { return };
        if found.len() >= MAX_FILES {
            return;
        }
        if facts.is_dir() && (is_root || recursive) {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                collect(&entry.path(), recursive, false, found);
            }
        } else {
            found.insert(path.to_owned(), (facts.len(), facts.modified().ok()));
        }
    }

    fn differences(before: &Snapshot, now: &Snapshot) -> Vec<(PathBuf, &'static str)> {
        let changed = now.iter().filter_map(|(path, facts)| match before.get(path) {
            None => Some((path.clone(), "rename")),
            Some(known) if known != facts => Some((path.clone(), "change")),
            Some(_) => None,
        });
        let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path.clone(), "rename"));
        changed.chain(gone).collect()
    }
}
