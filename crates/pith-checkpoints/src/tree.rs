//! What a project contains, and what has changed since the last look.
//!
//! A walk compares times, size, inode and mode with what it saw before, and reads only files that differ. Ignored files,
//! `.git` and paths that must not be changed are passed over.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use crate::capture::{Capture, modified, unkept};
use crate::log::Covered;
use crate::state::{Digest, Name, State, Unkept};
use crate::store::Bounds;

/// File systems stamp changes by a clock that ticks; two changes within this time may look like one.
const TICK: i64 = 20_000_000;

/// The files of a project as they were last seen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tree {
    entries: HashMap<Name, Entry>,
    /// When the last walk began, in nanoseconds; 0 before the first.
    walked_at: i64,
    /// Why not everything was seen, if so.
    #[serde(skip)]
    pub partial: Option<String>,
    /// Whether the entries differ from those on the disk.
    #[serde(skip)]
    is_changed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    state: State,
}

/// What tells a changed file from one that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    modified: i64,
    changed: i64,
    size: u64,
    inode: u64,
    mode: u32,
    /// Whether a further change would have got another stamp.
    is_settled: bool,
}

/// Where and how far a walk goes.
#[derive(Clone, Debug)]
pub(crate) struct Range<'a> {
    pub project: &'a Path,
    pub unwalked: &'a HashSet<PathBuf>,
    pub bounds: &'a Bounds,
    /// Ends the walk early, with an error.
    pub stop: &'a AtomicBool,
}

impl Stamp {
    fn of(metadata: &Metadata, seen_at: i64) -> Self {
        let changed = metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec());
        Stamp {
            modified: modified(metadata),
            changed,
            size: if metadata.is_dir() { 0 } else { metadata.len() },
            inode: metadata.ino(),
            mode: metadata.mode(),
            is_settled: changed.saturating_add(TICK) < seen_at,
        }
    }

    /// Whether the file surely is what it was.
    fn proves(&self, now: &Stamp, is_directory: bool) -> bool {
        // Times of a directory change with its files, which are seen themselves.
        if is_directory {
            return self.mode == now.mode;
        }
        self.is_settled && Stamp { is_settled: true, ..*now } == *self
    }
}

impl Tree {
    pub fn is_walked(&self) -> bool {
        self.walked_at != 0
    }

    /// How many files and directories it knows.
    pub fn n_entries(&self) -> usize {
        self.entries.len()
    }

    /// The digests of all contents in it.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (&Digest, u64)> {
        self.entries.values().filter_map(|entry| Some((entry.state.digest()?, entry.state.bytes())))
    }

    /// Walks the project, keeps what differs, and returns it.
    pub(crate) fn walk(&mut self, range: &Range<'_>, capture: &Capture) -> io::Result<Vec<Covered>> {
        let started = nanoseconds();
        let inodes: HashSet<u64> = self.entries.values().map(|entry| entry.stamp.inode).collect();
        let mut found = Found { changes: Vec::new(), total: self.digests().map(|(_, bytes)| bytes).sum() };
        let mut seen = HashSet::with_capacity(self.entries.len());
        self.partial = None;
        for path in walker(range) {
            if range.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if seen.len() >= range.bounds.max_files {
                self.partial = Some(format!("more than {} files", range.bounds.max_files));
                break;
            }
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let name = Name::of(&path, range.project);
            // Not new, only seen for the first time: it was ignored before.
            let is_old =
                |stamp: &Stamp| stamp.changed.saturating_add(TICK) < self.walked_at && !inodes.contains(&stamp.inode);
            let stamp = Stamp::of(&metadata, nanoseconds());
            match self.entries.get(&name) {
                Some(entry) if entry.stamp.proves(&stamp, entry.state.is_directory() && metadata.is_dir()) => {}
                Some(entry) => {
                    let before = entry.state.clone();
                    self.take(range, capture, (&name, &path), (stamp, &metadata), before, &mut found)?;
                }
                None if self.walked_at == 0 || is_old(&stamp) => {
                    let state = self.keep(range, capture, &path, &metadata, &mut found)?;
                    self.insert(name.clone(), stamp, state);
                }
                None => {
                    self.take(range, capture, (&name, &path), (stamp, &metadata), State::Absent, &mut found)?;
                }
            }
            seen.insert(name);
        }
        // Removed, ignored by now, or beyond a bound.
        let unseen: Vec<Name> = self.entries.keys().filter(|name| !seen.contains(*name)).cloned().collect();
        for name in unseen {
            let path = name.within(range.project);
            let before = self.entries[&name].state.clone();
            match path.symlink_metadata() {
                Ok(metadata) => {
                    let stamp = Stamp::of(&metadata, nanoseconds());
                    if !self.entries[&name].stamp.proves(&stamp, before.is_directory() && metadata.is_dir()) {
                        self.take(range, capture, (&name, &path), (stamp, &metadata), before, &mut found)?;
                    }
                }
                Err(_) => {
                    self.entries.remove(&name);
                    self.is_changed = true;
                    found.changes.push(Covered { path: name, before, after: Some(State::Absent) });
                }
            }
        }
        let is_left_out = |entry: &Entry| matches!(entry.state, State::Unkept { why: Unkept::TooMuch, .. });
        if self.partial.is_none() && self.entries.values().any(is_left_out) {
            self.partial = Some(Unkept::TooMuch.to_string());
        }
        self.walked_at = started;
        Ok(found.changes)
    }

    /// Remembers a file that the session itself has just changed.
    pub(crate) fn refresh(&mut self, name: &Name, project: &Path, capture: &Capture) -> io::Result<()> {
        if !self.is_walked() || name.0.is_absolute() {
            return Ok(());
        }
        let path = name.within(project);
        match path.symlink_metadata() {
            Ok(metadata) => {
                let stamp = Stamp::of(&metadata, nanoseconds());
                let state = capture.keep(&path)?;
                self.insert(name.clone(), stamp, state);
            }
            Err(_) => {
                self.entries.remove(name);
                self.is_changed = true;
            }
        }
        Ok(())
    }

    /// Writes the tree, if it differs from what is there.
    pub(crate) fn save(&mut self, file: &Path) -> io::Result<()> {
        if self.is_changed || !file.exists() {
            file.parent().map_or(Ok(()), crate::objects::create_private)?;
            let new = file.with_extension("new");
            let text = serde_json::to_vec(&Saved::of(self))?;
            let written = write_private(&new, &text).and_then(|()| fs::rename(&new, file));
            written.inspect_err(|_| drop(fs::remove_file(&new)))?;
            self.is_changed = false;
        }
        Ok(())
    }

    pub(crate) fn load(file: &Path) -> io::Result<Tree> {
        let saved: Saved<Name, Entry> = serde_json::from_slice(&fs::read(file)?)?;
        let mut tree =
            Tree { entries: saved.entries.into_iter().collect(), walked_at: saved.walked_at, ..Tree::default() };
        // Who reads it knows nothing of the time in between.
        tree.entries.values_mut().for_each(|entry| entry.stamp.is_settled = false);
        Ok(tree)
    }

    fn take(
        &mut self,
        range: &Range<'_>,
        capture: &Capture,
        (name, path): (&Name, &Path),
        (stamp, metadata): (Stamp, &Metadata),
        before: State,
        found: &mut Found,
    ) -> io::Result<()> {
        found.total = found.total.saturating_sub(before.bytes());
        let after = self.keep(range, capture, path, metadata, found)?;
        self.insert(name.clone(), stamp, after.clone());
        if after != before {
            found.changes.push(Covered { path: name.clone(), before, after: Some(after) });
        }
        Ok(())
    }

    fn keep(
        &self,
        range: &Range<'_>,
        capture: &Capture,
        path: &Path,
        metadata: &Metadata,
        found: &mut Found,
    ) -> io::Result<State> {
        found.total += metadata.len();
        if metadata.is_file() && found.total > range.bounds.max_total {
            return Ok(unkept(metadata, Unkept::TooMuch));
        }
        capture.keep(path)
    }

    fn insert(&mut self, name: Name, stamp: Stamp, state: State) {
        self.entries.insert(name, Entry { stamp, state });
        self.is_changed = true;
    }
}

/// What a walk has found so far.
struct Found {
    changes: Vec<Covered>,
    /// Bytes that are kept.
    total: u64,
}

/// A tree on the disk: names are no keys of JSON.
#[derive(Serialize, Deserialize)]
struct Saved<N, E> {
    walked_at: i64,
    entries: Vec<(N, E)>,
}

impl<'a> Saved<&'a Name, &'a Entry> {
    fn of(tree: &'a Tree) -> Self {
        Saved { walked_at: tree.walked_at, entries: tree.entries.iter().collect() }
    }
}

fn walker(range: &Range<'_>) -> impl Iterator<Item = PathBuf> + use<> {
    let in_repository = range.project.ancestors().any(|directory| directory.join(".git").exists());
    let unwalked = range.unwalked.clone();
    let mut builder = WalkBuilder::new(range.project);
    builder.hidden(false).require_git(in_repository).follow_links(false).same_file_system(true);
    // So that a bound cuts off the same files every time.
    builder.sort_by_file_name(std::ffi::OsStr::cmp);
    builder.filter_entry(move |entry| {
        entry.depth() == 0 || (entry.file_name() != ".git" && !unwalked.contains(entry.path()))
    });
    builder.build().flatten().filter(|entry| entry.depth() > 0).map(ignore::DirEntry::into_path)
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text)
}

fn nanoseconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as i64)
}
