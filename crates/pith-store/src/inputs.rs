//! Inputs that were accepted and are not entries yet.
//!
//! A host that was told that an input is accepted may rely on it, also if the process is killed
//! before the input has become an entry. Until then it stands in a file beside the session file.
//! Each process has a file of its own and keeps it locked, so what is in a file that can be
//! locked was left by a process that died.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pith_config::is_gone;
use pith_protocol::{ImageBlock, Message};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::files;
use crate::ids::EntryId;
use crate::line::Line;
use crate::paths::side_file;
use crate::store::SessionStore;
use crate::time;
use crate::tree::EntryTree;

/// More processes than that, each with inputs of its own waiting, do not share a session.
const N_FILES: usize = 8;

/// How long a lock may outlive its owner.
const LINGER: Duration = Duration::from_secs(1);

/// Names an accepted input until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputId(Uuid);

/// How an input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    Prompt,
    Steer,
    FollowUp,
}

/// An input that was accepted by a process that died.
#[derive(Clone, Debug, PartialEq)]
pub struct OrphanedInput {
    pub id: InputId,
    pub kind: InputKind,
    pub text: String,
    pub images: Vec<ImageBlock>,
    /// Unix milliseconds.
    pub accepted: i64,
}

impl SessionStore {
    /// Records an input, to be called before it is acknowledged. It survives a process that is killed, until
    /// [`SessionStore::append_input`] or [`SessionStore::input_done`]. The session file is created if there is none,
    /// so that the session can be found again. A failure is reported like that of an append, and the next input tries
    /// again.
    pub fn accept_input(&mut self, kind: InputKind, text: &str, images: &[ImageBlock]) -> InputId {
        let id = InputId(Uuid::new_v4());
        if self.journal.is_none() {
            return id;
        }
        self.create_file();
        let line = Line::start("input")
            .member("id", &id.0.simple().to_string())
            .member("kind", &kind)
            .member("pid", &std::process::id())
            .member("timestamp", &time::now())
            .member("text", text);
        let line = if images.is_empty() { line } else { line.member("images", images) };
        self.on_inputs(|inputs, session| inputs.accept(session, id, &line.finish()));
        id
    }

    /// Appends the message an accepted input has become. The input counts as done if and only if the
    /// entry is in the session file.
    pub fn append_input(&mut self, id: InputId, message: &Arc<Message>) -> EntryId {
        self.append_input_as(id, None, message)
    }

    /// Like [`SessionStore::append_input`], for an entry that was named before.
    pub fn append_input_as(&mut self, id: InputId, entry: Option<EntryId>, message: &Arc<Message>) -> EntryId {
        let index = self.add_message(entry, message);
        let entry = Arc::clone(&self.tree.node(index).id);
        self.on_inputs(|inputs, session| inputs.deliver(session, id, &entry));
        self.finish(index)
    }

    /// Forgets an input that will not become an entry: it was withdrawn, or someone else has dealt with it.
    pub fn input_done(&mut self, id: InputId) {
        self.on_inputs(|inputs, session| inputs.done(session, id));
    }

    /// Returns the inputs that processes had accepted and not dealt with when they died, oldest first, each once.
    /// They stay recorded until they are done. Inputs of processes that live, busy or idle, are not touched.
    pub fn take_orphaned_inputs(&mut self) -> Vec<OrphanedInput> {
        let Some(journal) = self.journal.as_ref().filter(|journal| journal.is_created()) else { return Vec::new() };
        self.inputs.adopt(&journal.target, &self.tree);
        std::mem::take(&mut self.inputs.orphaned)
    }

    /// Called when all entries are in the session file. Marks inputs that have become entries as done.
    pub(crate) fn finish_inputs(&mut self) {
        for id in std::mem::take(&mut self.inputs.delivered) {
            self.input_done(id);
        }
    }

    fn on_inputs(&mut self, act: impl FnOnce(&mut Inputs, Option<&Path>) -> io::Result<()>) {
        let Some(journal) = &self.journal else { return };
        // Without a session file its inputs would not be found.
        let session = journal.is_created().then_some(&*journal.target);
        if let Err(error) = act(&mut self.inputs, session) {
            self.report_write_failure(&error);
        }
    }
}

/// The inputs this process is responsible for.
#[derive(Default)]
pub(crate) struct Inputs {
    /// The last one takes new inputs.
    files: Vec<InputFile>,
    /// Found in those files and not returned yet.
    orphaned: Vec<OrphanedInput>,
    /// Inputs that have become entries, which may not be in the session file yet.
    delivered: Vec<InputId>,
}

/// A file of inputs, locked by this process.
#[derive(Default)]
struct InputFile {
    /// `None` until it could be made.
    open: Option<OpenFile>,
    /// Lines that could not be written yet.
    unwritten: Vec<u8>,
    /// What is not done.
    live: Vec<InputId>,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    len: u64,
}

/// A line.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Record {
    Input {
        id: String,
        kind: InputKind,
        /// Of the process that accepted it.
        pid: u32,
        timestamp: i64,
        text: String,
        #[serde(default)]
        images: Vec<ImageBlock>,
    },
    /// With `entry`, only if the session file has that entry: it is written after this line.
    Done { id: String, entry: Option<String> },
}

impl Inputs {
    fn accept(&mut self, session: Option<&Path>, id: InputId, line: &[u8]) -> io::Result<()> {
        if self.files.is_empty() {
            self.files.push(InputFile::default());
        }
        let file = self.files.last_mut().expect("one was just added");
        file.live.push(id);
        file.write(session, line)
    }

    fn deliver(&mut self, session: Option<&Path>, id: InputId, entry: &str) -> io::Result<()> {
        let Some(file) = self.file_of(id) else { return Ok(()) };
        let written = file.write(session, &done_line(id).member("entry", entry).finish());
        self.delivered.push(id);
        written
    }

    fn done(&mut self, session: Option<&Path>, id: InputId) -> io::Result<()> {
        let Some(file) = self.file_of(id) else { return Ok(()) };
        file.live.retain(|live| *live != id);
        let result =
            if file.live.is_empty() && file.remove() { Ok(()) } else { file.write(session, &done_line(id).finish()) };
        self.files.retain(|file| !file.live.is_empty() || file.open.is_some());
        result
    }

    fn file_of(&mut self, id: InputId) -> Option<&mut InputFile> {
        self.files.iter_mut().find(|file| file.live.contains(&id))
    }

    /// Takes over the files of processes that died.
    fn adopt(&mut self, session: &Path, tree: &EntryTree) {
        for path in names(session) {
            let is_own = |file: &InputFile| file.open.as_ref().is_some_and(|open| open.path == path);
            if self.files.iter().any(is_own) || !path.exists() {
                continue;
            }
            let Some(mut file) = lock_orphaned(&path).map(InputFile::of) else { continue };
            let orphaned = file.read_orphaned(tree);
            file.live = orphaned.iter().map(|input| input.id).collect();
            if !orphaned.is_empty() || !file.remove() {
                // The one that takes new inputs stays the last.
                self.files.insert(0, file);
            }
            self.orphaned.extend(orphaned);
        }
        self.orphaned.sort_by_key(|input| input.accepted);
    }
}

impl InputFile {
    fn of(open: OpenFile) -> Self {
        InputFile { open: Some(open), ..InputFile::default() }
    }

    /// Writes a line with one call, behind those that could not be written before.
    fn write(&mut self, session: Option<&Path>, line: &[u8]) -> io::Result<()> {
        self.unwritten.extend_from_slice(line);
        let open = match (&mut self.open, session) {
            (Some(open), _) => open,
            (none, Some(session)) => none.insert(lock_free_name(session)?),
            (None, None) => return Ok(()),
        };
        if let Err(error) = open.file.write_all(&self.unwritten) {
            // What was written before the disk was full is removed, or becomes a line of its own that is skipped.
            if open.file.set_len(open.len).is_err() {
                self.unwritten.insert(0, b'\n');
            }
            return Err(error);
        }
        open.len += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// Removes the file, which has nothing left to do. It is still locked, so no other process uses the name.
    fn remove(&mut self) -> bool {
        let is_removed = self.open.as_ref().is_none_or(|open| fs::remove_file(&open.path).is_ok());
        if is_removed {
            *self = InputFile::default();
        }
        is_removed
    }

    /// Reads what is not done in a file that another process wrote.
    fn read_orphaned(&mut self, tree: &EntryTree) -> Vec<OrphanedInput> {
        let Some(open) = &mut self.open else { return Vec::new() };
        let mut bytes = Vec::new();
        if open.file.read_to_end(&mut bytes).is_err() {
            return Vec::new();
        }
        if bytes.last().is_some_and(|last| *last != b'\n') {
            // Its process was killed while it wrote.
            self.unwritten.push(b'\n');
        }
        let mut orphaned: Vec<OrphanedInput> = Vec::new();
        for record in records(&bytes) {
            match record {
                Record::Input { id, kind, timestamp, text, images, pid: _ } => {
                    let id = Uuid::parse_str(&id).map(InputId);
                    orphaned.extend(id.map(|id| OrphanedInput { id, kind, text, images, accepted: timestamp }));
                }
                Record::Done { id, entry } if entry.as_ref().is_none_or(|entry| tree.contains(entry)) => {
                    let id = Uuid::parse_str(&id).map(InputId);
                    orphaned.retain(|input| Ok(input.id) != id);
                }
                Record::Done { .. } => {}
            }
        }
        orphaned
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Not left to closing: a process being started may have a copy of the descriptor.
        _ = self.file.unlock();
    }
}

/// Returns the lines that can be read.
fn records(bytes: &[u8]) -> impl DoubleEndedIterator<Item = Record> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn done_line(id: InputId) -> Line {
    Line::start("done").member("id", &id.0.simple().to_string())
}

/// Returns the names of the files of a session, one per process.
fn names(session: &Path) -> impl Iterator<Item = PathBuf> {
    let suffix = |n| if n == 1 { ".inputs".to_owned() } else { format!(".inputs-{n}") };
    (1..=N_FILES).map(move |n| side_file(session, &suffix(n)))
}

/// Makes a new file under the first name that no other process has.
fn lock_free_name(session: &Path) -> io::Result<OpenFile> {
    for path in names(session) {
        // A file with content was left by a process that died; `adopt` takes it.
        if let Some(open) = lock(&path)?.filter(|open| open.len == 0) {
            return Ok(open);
        }
    }
    Err(io::Error::other("too many processes have inputs waiting"))
}

/// Opens and locks a file that a process left which died; `None` if it lives.
fn lock_orphaned(path: &Path) -> Option<OpenFile> {
    let deadline = Instant::now() + LINGER;
    loop {
        if let Some(open) = lock(path).ok()? {
            return Some(open);
        }
        // A process that was killed while it started a command is survived for a moment by the copy it made of
        // itself, which has the lock until it becomes the command.
        let bytes = fs::read(path).ok()?;
        let owner = records(&bytes).rev().find_map(|record| match record {
            Record::Input { pid, .. } => Some(pid),
            Record::Done { .. } => None,
        });
        if !owner.is_some_and(is_gone) || Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Opens and locks a file of inputs; `None` if another process has it.
fn lock(path: &Path) -> io::Result<Option<OpenFile>> {
    loop {
        let file = files::open_or_create(path)?;
        match file.try_lock() {
            Ok(()) if !files::is_at(&file, path) => continue,
            // Where nothing can be locked, one process at a time is all that is served.
            Ok(()) | Err(TryLockError::Error(_)) => {
                let len = file.metadata()?.len();
                return Ok(Some(OpenFile { file, path: path.to_owned(), len }));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
    }
}
