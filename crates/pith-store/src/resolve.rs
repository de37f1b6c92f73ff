//! Finding the session a user means.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::listing::{directories, is_cwd, session_files};
use crate::summary::peek_header;

/// Where to look for sessions.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub cwd: &'a Path,
    /// The directory for sessions of `cwd`.
    pub session_dir: &'a Path,
    /// The directory of all session directories.
    pub root: &'a Path,
}

/// The session a user means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSession {
    /// Named by its path, which may not exist.
    Path(PathBuf),
    /// A session of this working directory.
    Here(PathBuf),
    /// A session of another working directory.
    Elsewhere { path: PathBuf, cwd: String },
}

/// Resolves a path, an id or the beginning of an id. Sessions of this working directory
/// come before others, whole ids before beginnings, newer sessions before older ones.
pub fn find_session(argument: &str, places: Places<'_>) -> Result<FoundSession, StoreError> {
    if argument.contains(['/', '\\']) || argument.ends_with(".jsonl") {
        return Ok(FoundSession::Path(places.cwd.join(argument)));
    }
    let no_match = || StoreError::NoMatch(argument.to_owned());
    if argument.is_empty() {
        return Err(no_match());
    }
    let here = candidates(places.session_dir, argument);
    let (here, others): (Vec<_>, Vec<_>) = here.into_iter().partition(|found| is_cwd(&found.cwd, places.cwd));
    if let Some(found) = best(here, argument) {
        return Ok(FoundSession::Here(found.path));
    }
    let elsewhere = directories(places.root).into_iter().filter(|directory| directory != places.session_dir);
    let elsewhere = elsewhere.flat_map(|directory| candidates(&directory, argument)).chain(others);
    let found = best(elsewhere.collect(), argument).ok_or_else(no_match)?;
    Ok(if is_cwd(&found.cwd, places.cwd) {
        FoundSession::Here(found.path)
    } else {
        FoundSession::Elsewhere { path: found.path, cwd: found.cwd }
    })
}

/// Returns the session of a working directory that has exactly that id.
pub fn find_by_id(id: &str, session_dir: &Path, cwd: &Path) -> Option<PathBuf> {
    let mut found = candidates(session_dir, id);
    found.retain(|found| found.id == id && is_cwd(&found.cwd, cwd));
    best(found, id).map(|found| found.path)
}

/// Returns the session of a working directory that has exactly that id, by the name pith gives to files. Reads one or
/// two headers instead of all.
pub(crate) fn find_named(id: &str, session_dir: &Path, cwd: &Path) -> Option<PathBuf> {
    let ending = format!("_{id}.jsonl");
    let paths = fs::read_dir(session_dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending)));
    let found = named.filter_map(|path| {
        let header = peek_header(&path).filter(|header| header.id == id && is_cwd(&header.cwd, cwd))?;
        Some((header.created, path))
    });
    found.max().map(|(_, path)| path)
}

/// Returns the session that has exactly that id, of whichever working directory.
pub fn find_anywhere(id: &str, root: &Path) -> Option<LocatedSession> {
    let mut found: Vec<_> = directories(root).iter().flat_map(|directory| candidates(directory, id)).collect();
    found.retain(|found| found.id == id);
    best(found, id).map(|found| LocatedSession { path: found.path, cwd: found.cwd })
}

/// Returns the file that has this id in its name and no header that can be read. Asked when no header has the id.
pub fn find_unreadable(id: &str, root: &Path) -> Option<PathBuf> {
    let ending = format!("_{id}.jsonl");
    let files = directories(root).into_iter().flat_map(|directory| session_files(&directory)).map(|file| file.path);
    let mut named = files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending)));
    named.find(|path| peek_header(path).is_none())
}

/// A session file and the working directory it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedSession {
    pub path: PathBuf,
    pub cwd: String,
}

struct Candidate {
    path: PathBuf,
    id: String,
    cwd: String,
    created: i64,
}

fn candidates(directory: &Path, prefix: &str) -> Vec<Candidate> {
    let headers = session_files(directory).into_iter().filter_map(|file| Some((peek_header(&file.path)?, file.path)));
    let matching = headers.filter(|(header, _)| header.id.starts_with(prefix));
    matching.map(|(header, path)| Candidate { path, id: header.id, cwd: header.cwd, created: header.created }).collect()
}

fn best(candidates: Vec<Candidate>, argument: &str) -> Option<Candidate> {
    candidates.into_iter().max_by_key(|found| (found.id == argument, found.created))
}
