//! Watches directories that commands can write, however deep, for what must not be new: names of the
//! [table](crate::names), and repositories in which git would run something it did not run before.
//!
//! The directories are walked once; from then on the kernel tells what appears in them. What git reads at a place is
//! watched file by file, so a call that touches none of it costs nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::names::may_be_named;

/// How many directories are watched at most. Each takes about a kilobyte of the kernel.
const MAX_DIRECTORIES: usize = 32_768;
/// How many watches the system lets a user have. Other programs of the user, such as editors, need most of them.
const SYSTEM_LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";
/// How long the first walk may take.
const MAX_WALK: Duration = Duration::from_secs(3);
/// Walked last, because they are large and nobody works in them.
const LATE: [&str; 8] = ["node_modules", "target", ".venv", "venv", "vendor", "build", "dist", "site-packages"];
/// In a `.git` only objects and names of commits are in these.
const OF_GIT: [&str; 4] = ["objects", "refs", "logs", "lfs"];

/// The kernel's own.
const OF_SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What happened since it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Where git may read something else now.
    pub places: BTreeSet<PathBuf>,
    /// Paths that may be named by the table, or that were and are different now.
    pub named: BTreeSet<PathBuf>,
}

impl Touched {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.named.is_empty()
    }
}

/// The directories that are watched.
#[derive(Debug)]
pub(crate) struct Tree {
    roots: Vec<PathBuf>,
    /// What is watched under each number of the kernel.
    watched: HashMap<i32, Watched>,
    /// The directories that were walked.
    directories: BTreeMap<PathBuf, i32>,
    touched: Touched,
    max_directories: usize,
    /// Whether there is more than can be watched.
    pub is_partial: bool,
}

/// Why something is watched.
#[derive(Debug, Default)]
struct Watched {
    /// A directory in which names may appear.
    directory: Option<PathBuf>,
    /// The places at which git reads it.
    places: BTreeSet<PathBuf>,
    /// The path of the table that it belongs to.
    named: Option<PathBuf>,
}

struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Option<Vec<u8>>,
}

impl Tree {
    /// Walks the directories below these roots.
    pub fn new(events: &OwnedFd, roots: &[PathBuf]) -> Tree {
        let limit = fs::read_to_string(SYSTEM_LIMIT).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let mut tree = Tree {
            max_directories: limit.map_or(MAX_DIRECTORIES, |limit| MAX_DIRECTORIES.min(limit / 4)),
            roots: roots.to_vec(),
            watched: HashMap::new(),
            directories: BTreeMap::new(),
            touched: Touched::default(),
            is_partial: false,
        };
        tree.walk_roots(events);
        tree
    }

    fn walk_roots(&mut self, events: &OwnedFd) {
        self.walk(events, self.roots.clone());
    }

    /// Takes note of what happened, and returns what may be different now.
    pub fn touched(&mut self, events: &OwnedFd) -> Touched {
        for event in read(events) {
            if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.look_everywhere(events);
            } else {
                self.take(events, &event);
            }
        }
        std::mem::take(&mut self.touched)
    }

    /// Something happened that the kernel could not keep.
    fn look_everywhere(&mut self, events: &OwnedFd) {
        for watched in self.watched.values() {
            self.touched.places.extend(watched.places.iter().cloned());
            self.touched.named.extend(watched.named.clone());
        }
        self.walk_roots(events);
    }

    fn take(&mut self, events: &OwnedFd, event: &Event) {
        let name = event.name.as_deref().map(OsStr::from_bytes);
        let Some(watched) = self.watched.get(&event.watch) else { return };
        self.touched.named.extend(watched.named.clone());
        if !name.is_some_and(is_noise) || self.is_partial {
            self.touched.places.extend(watched.places.iter().cloned());
        }
        let directory = watched.directory.clone();
        if event.flags.contains(ReadFlags::IGNORED) {
            self.watched.remove(&event.watch);
            if let Some(directory) = directory.filter(|path| self.directories.get(path) == Some(&event.watch)) {
                self.directories.remove(&directory);
            }
            return;
        }
        let (Some(directory), Some(name)) = (directory, name) else { return };
        let path = directory.join(name);
        if event.flags.contains(ReadFlags::MOVED_FROM) && event.flags.contains(ReadFlags::ISDIR) {
            self.forget(events, &path);
        }
        if event.flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            let is_directory = event.flags.contains(ReadFlags::ISDIR);
            self.note(&directory, name, &path);
            if is_directory {
                make_readable(&path);
                self.walk(events, vec![path]);
            }
        }
    }

    /// Takes note of an entry of a directory.
    fn note(&mut self, directory: &Path, name: &OsStr, path: &Path) {
        if name == ".git" {
            self.touched.places.insert(path.to_owned());
        } else if name == "HEAD" {
            self.touched.places.insert(directory.to_owned());
        } else if may_be_named(name) {
            self.touched.named.insert(path.to_owned());
        }
    }

    /// A directory has another name: what was below it will be walked again, if it still is below a root.
    fn forget(&mut self, events: &OwnedFd, path: &Path) {
        let below = self.directories.range(path.to_owned()..).take_while(|(below, _)| below.starts_with(path));
        let below: Vec<(PathBuf, i32)> = below.map(|(path, watch)| (path.clone(), *watch)).collect();
        for (below, watch) in below {
            self.directories.remove(&below);
            if let Some(watched) = self.watched.remove(&watch) {
                self.touched.places.extend(watched.places);
                self.touched.named.extend(watched.named);
            }
            let _ = inotify::remove_watch(events, watch);
        }
    }

    /// Watches directories and what is below them, those near the top first.
    fn walk(&mut self, events: &OwnedFd, from: Vec<PathBuf>) {
        let began = Instant::now();
        let (mut next, mut late) = (VecDeque::from(from), VecDeque::new());
        while let Some(directory) = next.pop_front().or_else(|| late.pop_front()) {
            let is_known = self.directories.contains_key(&directory);
            if !is_known && self.directories.len() >= self.max_directories || began.elapsed() > MAX_WALK {
                self.is_partial = true;
                return;
            }
            if OF_SYSTEM.iter().any(|of_system| directory == Path::new(of_system)) {
                continue;
            }
            let flags = entries_change() | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW | WatchFlags::EXCL_UNLINK;
            let Some(watch) = self.add(events, &directory, flags) else { continue };
            self.watched.entry(watch).or_default().directory = Some(directory.clone());
            self.directories.insert(directory.clone(), watch);
            // No index can lead git into a `.git`; elsewhere these names mean nothing.
            let is_git = directory.components().any(|part| part.as_os_str() == ".git");
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                self.note(&directory, &name, &path);
                let is_of_git = is_git && OF_GIT.iter().any(|of_git| name == *of_git);
                if !is_of_git && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let queue = if LATE.iter().any(|late| name == *late) { &mut late } else { &mut next };
                    queue.push_back(path);
                }
            }
        }
    }

    /// Watches what git reads at a place.
    pub fn watch_place(&mut self, events: &OwnedFd, place: &Path, read: &BTreeSet<PathBuf>) {
        for path in read {
            let is_content = path.file_name().is_none_or(|name| name != "objects" && name != "refs");
            let flags = if is_content { everything() } else { WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF };
            // What a link leads to is there by its own name.
            let watch = match self.add(events, path, flags | WatchFlags::DONT_FOLLOW) {
                Some(watch) => Some(watch),
                None => path.parent().and_then(|parent| self.add(events, parent, entries_change())),
            };
            if let Some(watch) = watch {
                self.watched.entry(watch).or_default().places.insert(place.to_owned());
            }
        }
    }

    /// Watches a path of the table and everything below it.
    pub fn watch_named(&mut self, events: &OwnedFd, named: &Path) {
        let mut next = vec![named.to_owned()];
        while let Some(path) = next.pop() {
            let Some(watch) = self.add(events, &path, everything() | WatchFlags::DONT_FOLLOW) else { continue };
            self.watched.entry(watch).or_default().named = Some(named.to_owned());
            if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                next.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
    }

    fn add(&mut self, events: &OwnedFd, path: &Path, flags: WatchFlags) -> Option<i32> {
        match inotify::add_watch(events, path, flags | WatchFlags::MASK_ADD) {
            Ok(watch) => Some(watch),
            Err(error) => {
                self.is_partial |= matches!(error, Errno::NOSPC | Errno::NOMEM);
                None
            }
        }
    }
}

/// Opens a new directory of this user that pith cannot read: it would hide what is in it.
fn make_readable(path: &Path) {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else { return };
    let Ok(mode) = rustix::fs::fstat(&directory).map(|stat| stat.st_mode & 0o7777) else { return };
    if mode & 0o500 != 0o500 {
        let by_descriptor = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let _ = fs::set_permissions(by_descriptor, fs::Permissions::from_mode(mode | 0o700));
    }
}

/// What git writes all the time and reads nothing to run from.
fn is_noise(name: &OsStr) -> bool {
    const NAMES: [&str; 7] = ["index", "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "packed-refs", "logs", "gc.pid"];
    NAMES.iter().any(|noise| name == *noise) || name.as_bytes().ends_with(b".lock")
}

fn entries_change() -> WatchFlags {
    WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM
}

fn everything() -> WatchFlags {
    entries_change()
        | WatchFlags::DELETE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
}

fn read(events: &OwnedFd) -> Vec<Event> {
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    let mut all = Vec::new();
    while let Ok(event) = reader.next() {
        let name = event.file_name().map(|name| name.to_bytes().to_owned());
        all.push(Event { watch: event.wd(), flags: event.events(), name });
    }
    all
}
