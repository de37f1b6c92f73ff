//! Lists of sessions, and the index that makes them quick.
//!
//! Each session directory has a `.pith-index.json` with what the list shows of
//! each file, and the size and time of the file it was read from. It is only a
//! memory: whatever is missing or out of date is read again, and deleting it is safe.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::files::{Replacement, remove_if_stale_replacement};
use crate::paths::normalise;
use crate::summary::{SessionSummary, peek_header};

const INDEX_NAME: &str = ".pith-index.json";
const INDEX_VERSION: u32 = 1;

/// Returns the sessions of a directory, newest first. With `cwd`, only those of that working directory:
/// directories are shared by several more often than their names suggest.
pub fn list(directory: &Path, cwd: Option<&Path>) -> Vec<SessionSummary> {
    let mut sessions = read_directory(directory);
    if let Some(cwd) = cwd {
        sessions.retain(|session| is_cwd(&session.cwd, cwd));
    }
    sort(&mut sessions);
    sessions
}

/// Returns the sessions of all directories below the root, newest first.
pub fn list_all(root: &Path) -> Vec<SessionSummary> {
    let mut sessions: Vec<_> = directories(root).iter().flat_map(|directory| read_directory(directory)).collect();
    sort(&mut sessions);
    sessions
}

/// Returns the file last written to among the sessions of a working directory.
pub fn latest(directory: &Path, cwd: &Path) -> Option<PathBuf> {
    let mut files = session_files(directory);
    files.sort_by_key(|file| std::cmp::Reverse(file.stamp.modified));
    let of_cwd = |file: &Listed| peek_header(&file.path).is_some_and(|header| is_cwd(&header.cwd, cwd));
    files.into_iter().find(of_cwd).map(|file| file.path)
}

pub(crate) fn is_cwd(stored: &str, cwd: &Path) -> bool {
    !stored.is_empty() && normalise(Path::new(stored)) == normalise(cwd)
}

/// Returns the root itself and its subdirectories, links to directories included.
pub(crate) fn directories(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut directories: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories.insert(0, root.to_owned());
    directories
}

/// A session file as its directory shows it.
pub(crate) struct Listed {
    pub path: PathBuf,
    name: String,
    stamp: Stamp,
}

/// Changes whenever the content of an append-only file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Index {
    version: u32,
    /// By file name.
    sessions: BTreeMap<String, Indexed>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Indexed {
    #[serde(flatten)]
    stamp: Stamp,
    /// `None`: the file is no session.
    session: Option<SessionSummary>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Stamp { size: metadata.len(), modified: since.map_or(0, |since| since.as_nanos() as u64) }
    }
}

/// Returns the session files of a directory, and removes what killed processes left among them.
pub(crate) fn session_files(directory: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let listed = entries.filter_map(|entry| {
        let path = entry.path();
        let name = path.file_name()?.to_str()?.to_owned();
        if !name.ends_with(".jsonl") {
            remove_if_stale_replacement(&path);
            return None;
        }
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
        Some(Listed { name, stamp: Stamp::of(&metadata), path })
    });
    listed.collect()
}

fn sort(sessions: &mut [SessionSummary]) {
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
}

fn read_directory(directory: &Path) -> Vec<SessionSummary> {
    let files = session_files(directory);
    if files.is_empty() {
        return Vec::new();
    }
    let mut known = read_index(directory).sessions;
    let n_known = known.len();
    let mut sessions = BTreeMap::new();
    let mut stale = Vec::new();
    for file in &files {
        match known.remove(&file.name).filter(|indexed| indexed.stamp == file.stamp) {
            Some(indexed) => _ = sessions.insert(file.name.clone(), indexed),
            None => stale.push(file),
        }
    }
    let is_changed = !stale.is_empty() || sessions.len() != n_known;
    for (file, session) in read_all(&stale) {
        sessions.insert(file.name.clone(), Indexed { stamp: file.stamp, session });
    }
    let index = Index { version: INDEX_VERSION, sessions };
    if is_changed {
        write_index(directory, &index);
    }
    let with_path = |(name, indexed): (String, Indexed)| {
        let session = indexed.session?;
        Some(SessionSummary { path: directory.join(name), ..session })
    };
    index.sessions.into_iter().filter_map(with_path).collect()
}

/// Reads summaries on all processors: the first list of a large directory is the slow one.
fn read_all<'f>(files: &[&'f Listed]) -> Vec<(&'f Listed, Option<SessionSummary>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*file, SessionSummary::read(&file.path)));
        }
        done
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len() / 8 + 1);
    std::thread::scope(|scope| {
        // Where no thread is to be had this one does it all.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (1..n_threads).map_while(start).collect();
        let mut done = work();
        done.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
        done
    })
}

fn read_index(directory: &Path) -> Index {
    let bytes = fs::read(directory.join(INDEX_NAME)).unwrap_or_default();
    let index: Index = serde_json::from_slice(&bytes).unwrap_or_default();
    if index.version == INDEX_VERSION { index } else { Index::default() }
}

/// Writes the index. A directory that cannot be written to is listed without one, only slower.
fn write_index(directory: &Path, index: &Index) {
    let Ok(bytes) = serde_json::to_vec(index) else { return };
    if let Ok(mut replacement) = Replacement::start(&directory.join(INDEX_NAME))
        && replacement.write_all(&bytes).is_ok()
    {
        _ = replacement.finish_soon();
    }
}
