//! `log.jsonl`: what every checkpoint covers, one line before a call and one after it.
//!
//! Every change happens under a lock that all sessions of the project share. A line that a killed process left
//! incomplete is passed over.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::objects::create_private;
use crate::state::{Name, State};

/// What was recorded about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    pub id: String,
    /// The session that made the call.
    pub session: String,
    /// The entry of the answer that the call is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    pub tool: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// Why not everything is covered, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    pub files: Vec<Covered>,
    /// Whether the call has ended and all its changes are known.
    #[serde(default)]
    pub is_ended: bool,
    /// The tree that was seen before a command, for when its process is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A path that a checkpoint covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Covered {
    pub path: Name,
    pub before: State,
    /// What the call left there; `None` as long as that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<State>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Line {
    Checkpoint(Checkpoint),
    /// Further changes of the call.
    #[serde(rename_all = "camelCase")]
    Changed {
        id: String,
        files: Vec<Covered>,
        is_end: bool,
    },
}

/// The log of one project.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    path: PathBuf,
    lock: PathBuf,
}

/// Holds the log against other processes and threads until dropped.
pub(crate) struct LockedLog<'a> {
    log: &'a Log,
    /// Contains the moment of the newest checkpoint, so that two never have the same id.
    lock: File,
}

impl Log {
    pub fn below(store: &Path) -> Self {
        Log { path: store.join("log.jsonl"), lock: store.join("lock") }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> io::Result<LockedLog<'_>> {
        self.lock.parent().map_or(Ok(()), create_private)?;
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.lock)?;
        lock.lock()?;
        Ok(LockedLog { log: self, lock })
    }

    /// Returns all checkpoints, the oldest first. Needs no lock: lines are only ever added, and a new log appears whole.
    pub fn read(&self) -> io::Result<Vec<Checkpoint>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut checkpoints: Vec<Checkpoint> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Checkpoint(checkpoint)) => {
                    places.insert(checkpoint.id.clone(), checkpoints.len());
                    checkpoints.push(checkpoint);
                }
                Ok(Line::Changed { id, files, is_end }) => {
                    if let Some(checkpoint) = places.get(&id).and_then(|at| checkpoints.get_mut(*at)) {
                        checkpoint.add(files);
                        checkpoint.is_ended |= is_end;
                    }
                }
                // Empty, or what a killed process left.
                Err(_) => {}
            }
        }
        Ok(checkpoints)
    }
}

impl Checkpoint {
    /// Adds changes of the call. Of a path that is covered already only the end is new.
    pub(crate) fn add(&mut self, files: Vec<Covered>) {
        for file in files {
            match self.files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => known.after = file.after,
                None => self.files.push(file),
            }
        }
    }

    /// Whether the call is known to have changed nothing.
    pub fn is_void(&self) -> bool {
        self.is_ended && self.files.iter().all(|file| file.after.as_ref() == Some(&file.before))
    }
}

impl LockedLog<'_> {
    /// The moment of a new checkpoint: now, or just after the newest one.
    pub fn next_moment(&mut self) -> io::Result<u64> {
        let mut newest = String::new();
        // Damaged numbers count as none.
        let _ = self.lock.read_to_string(&mut newest);
        let after = newest.trim().parse::<u64>().map_or(0, |newest| newest.saturating_add(1));
        let moment = now().max(after);
        self.lock.seek(SeekFrom::Start(0))?;
        self.lock.write_all(format!("{moment}\n").as_bytes())?;
        Ok(moment)
    }

    pub fn begin(&mut self, checkpoint: Checkpoint) -> io::Result<()> {
        self.append(&Line::Checkpoint(checkpoint))
    }

    pub fn change(&mut self, id: &str, files: Vec<Covered>, is_end: bool) -> io::Result<()> {
        self.append(&Line::Changed { id: id.to_owned(), files, is_end })
    }

    /// Appends a line: the whole of it, or nothing.
    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.log.path)?;
        let length = file.seek(SeekFrom::End(0))?;
        let mut text = Vec::new();
        if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                text.push(b'\n');
            }
        }
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
        file.write_all(&text).inspect_err(|_| {
            // The disk is full. What stays of the line would be passed over.
            let _ = file.set_len(length);
        })
    }

    /// Replaces the log in one step.
    pub fn rewrite(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        let mut text = Vec::new();
        for checkpoint in checkpoints {
            serde_json::to_writer(&mut text, &Line::Checkpoint(checkpoint.clone()))?;
            text.push(b'\n');
        }
        // Only the holder of the lock writes it.
        let new = self.log.path.with_extension("new");
        let written = (|| {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&text)?;
            fs::rename(&new, &self.log.path)
        })();
        written.inspect_err(|_| drop(fs::remove_file(&new)))
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}
