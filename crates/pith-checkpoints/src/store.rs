//! The checkpoints of one project: contents, and the log that says what they belong to.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use ring::digest::{SHA256, digest};

use crate::capture::Capture;
use crate::log::{Checkpoint, Covered, Log, now};
use crate::objects::Objects;
use crate::state::{Digest, Name, State};
use crate::tree::{Range, Tree};

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Off,
    /// The files that `write` and `edit` change.
    Files,
    /// Also what commands and other tools change in the project.
    Workspace,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Files of a project that are looked at.
    pub max_files: usize,
    /// Bytes of one file.
    pub max_file: u64,
    /// Bytes of all contents of a project.
    pub max_total: u64,
    pub max_age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Bounds { max_files: 50_000, max_file: 4 << 20, max_total: 512 << 20, max_age: 14 * day }
    }
}

/// The checkpoints of one project. Nothing is created before the first one is written.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    project: PathBuf,
    bounds: Bounds,
    /// Paths that walks pass over.
    unwalked: HashSet<PathBuf>,
    pub(crate) capture: Capture,
    log: Log,
}

/// A checkpoint that is about to be written.
#[derive(Debug)]
pub(crate) struct Draft {
    pub session: String,
    pub entry_id: Option<String>,
    pub tool_call_id: Option<String>,
    pub tool: String,
    pub partial: Option<String>,
    pub files: Vec<Covered>,
    /// All its changes are known already.
    pub is_ended: bool,
    pub tree: Option<String>,
}

impl Store {
    /// Opens the checkpoints of a directory below `root`.
    pub fn new(root: &Path, cwd: &Path, bounds: Bounds, unwalked: impl IntoIterator<Item = PathBuf>) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let project = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let name = Digest::new(digest(&SHA256, project.as_os_str().as_bytes()).as_ref());
        let directory = root.join(name.as_str());
        let capture = Capture { objects: Objects::below(&directory), max_file: bounds.max_file };
        let log = Log::below(&directory);
        let unwalked = unwalked.into_iter().chain([root.to_owned()]).collect();
        Store { directory, project, bounds, unwalked, capture, log }
    }

    /// The directory whose files are kept, links resolved.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns all checkpoints, the oldest first.
    pub fn checkpoints(&self) -> io::Result<Vec<Checkpoint>> {
        self.log.read()
    }

    /// Returns what is at a path now.
    pub(crate) fn look(&self, name: &Name) -> State {
        self.capture.look(&name.within(&self.project))
    }

    /// Writes a checkpoint and returns its id. `number` is the session's own count.
    pub(crate) fn begin(&self, draft: Draft, number: u64) -> io::Result<String> {
        let mut log = self.log.lock()?;
        let at = log.next_moment()?;
        let Draft { session, entry_id, tool_call_id, tool, partial, files, is_ended, tree } = draft;
        let id = format!("c{at}-{number}");
        let checkpoint =
            Checkpoint { id: id.clone(), session, entry_id, tool_call_id, tool, at, partial, files, is_ended, tree };
        log.begin(checkpoint)?;
        Ok(id)
    }

    /// Adds changes to a checkpoint.
    pub(crate) fn change(&self, id: &str, files: Vec<Covered>, is_end: bool) -> io::Result<()> {
        self.log.lock()?.change(id, files, is_end)
    }

    /// Walks the project; see [`Tree::walk`].
    pub(crate) fn walk(&self, tree: &mut Tree, stop: &AtomicBool) -> io::Result<Vec<Covered>> {
        let range = Range { project: &self.project, unwalked: &self.unwalked, bounds: &self.bounds, stop };
        tree.walk(&range, &self.capture)
    }

    /// Where the tree of a recorder is, for when its process is killed.
    pub(crate) fn tree_file(&self, writer: &str) -> PathBuf {
        self.directory.join("trees").join(format!("{writer}.json"))
    }

    /// Removes checkpoints beyond the bounds, the oldest first, and contents that nothing refers to.
    pub(crate) fn prune(&self) -> io::Result<()> {
        let mut log = self.log.lock()?;
        let checkpoints = self.log.read()?;
        let trees = self.trees();
        let oldest = now().saturating_sub(self.bounds.max_age.as_millis() as u64);
        let mut wanted: HashSet<&Digest> = HashSet::new();
        let mut total = 0;
        let mut want = |digest, bytes: u64| {
            if wanted.insert(digest) {
                total += bytes;
            }
            total
        };
        for (digest, bytes) in trees.iter().flat_map(Tree::digests) {
            want(digest, bytes);
        }
        let mut kept = Vec::new();
        for checkpoint in checkpoints.iter().rev() {
            let contents =
                checkpoint.files.iter().filter_map(|file| Some((file.before.digest()?, file.before.bytes())));
            let total = contents.fold(0, |_, (digest, bytes)| want(digest, bytes));
            if checkpoint.at < oldest || total > self.bounds.max_total {
                break;
            }
            kept.push(checkpoint.clone());
        }
        kept.reverse();
        if kept.len() < checkpoints.len() {
            log.rewrite(&kept)?;
        }
        let contents = kept.iter().flat_map(|checkpoint| &checkpoint.files).filter_map(|file| file.before.digest());
        self.capture
            .objects
            .sweep(&contents.chain(trees.iter().flat_map(Tree::digests).map(|(digest, _)| digest)).collect());
        Ok(())
    }

    /// The trees that recorders have left or use; those of long ago are removed.
    fn trees(&self) -> Vec<Tree> {
        let files = fs::read_dir(self.directory.join("trees")).into_iter().flatten().flatten();
        let read = |file: fs::DirEntry| {
            let modified = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
            let is_old = SystemTime::now().duration_since(modified).is_ok_and(|age| age > self.bounds.max_age);
            if is_old {
                let _ = fs::remove_file(file.path());
                return None;
            }
            Tree::load(&file.path()).ok()
        };
        files.filter_map(read).collect()
    }
}
