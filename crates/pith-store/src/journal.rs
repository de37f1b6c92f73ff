//! Writing a session file: created late, appended to line by line, never trusted
//! to be as we left it.
//!
//! Other programs append to the same files without asking, so the file is looked
//! at before each append and whatever is new is taken in first. A line that could
//! not be written stays in memory and goes first the next time.

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::backing::{Backing, Place, ReadAt};
use crate::files;
use crate::intake::{Intake, LineReader, ReadError, Tail};
use crate::lock::Lock;
use crate::report::{Repairs, ReportKind, StoreReport};
use crate::tree::{EntryTree, NodeIndex};
use crate::write_access::WriteAccess;

/// The file of a session, which may not exist yet.
pub(crate) struct Journal {
    pub path: PathBuf,
    /// Where a link at `path` leads. Other processes may know the session by another name, so locks and notes are
    /// named after it.
    pub target: PathBuf,
    open: Option<OpenFile>,
    access: WriteAccess,
    /// The file is to be created even if there is nothing worth keeping in it.
    pub is_wanted: bool,
    /// Entries not in the file yet, oldest first.
    unsaved: Vec<NodeIndex>,
    needs_sync: bool,
    needs_directory_sync: bool,
}

struct OpenFile {
    file: Arc<File>,
    seen: Look,
    tail: Tail,
}

/// The file as it was after our last look.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
}

/// Data that has to reach the disk; may be waited for anywhere.
#[derive(Debug)]
pub struct SyncTask {
    file: Arc<File>,
    path: PathBuf,
    is_new: bool,
}

impl Journal {
    /// Makes the journal of a file that is created with the first entry worth keeping.
    pub fn planned(path: PathBuf) -> Self {
        Journal {
            target: path.clone(),
            path,
            open: None,
            access: WriteAccess::default(),
            is_wanted: false,
            unsaved: Vec::new(),
            needs_sync: false,
            needs_directory_sync: false,
        }
    }

    /// Makes the journal of a file that was just read, up to the length it had then.
    pub fn opened(path: PathBuf, file: Arc<File>, metadata: &Metadata, tail: Tail) -> Self {
        let open = OpenFile { file, seen: Look::of(metadata), tail };
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        Journal { open: Some(open), target, ..Journal::planned(path) }
    }

    /// Whether the file exists as far as we know.
    pub fn is_created(&self) -> bool {
        self.open.is_some()
    }

    /// Notes an entry that has to be written.
    pub fn add(&mut self, index: NodeIndex) {
        self.unsaved.push(index);
    }

    /// Keeps other processes away until [`Journal::release`]; the error is the pid of one that is running.
    pub fn lock(&mut self) -> Result<(), Option<u32>> {
        self.access.lock(self.open.as_ref().map(|_| &*self.target))
    }

    /// Lets other processes use the file.
    pub fn unlock(&mut self) {
        self.access.unlock();
    }

    /// Keeps other processes away from a file that this journal is to go on in, or to create, until
    /// [`Journal::end_append`]; the error is the pid of one that uses it.
    pub fn begin_at(&mut self, path: &Path) -> Result<(), Option<u32>> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.access.begin_for(&target)
    }

    /// Keeps other processes away for one append. What they wrote before can be taken in now.
    pub fn begin_append(&mut self) {
        if self.is_created() {
            self.access.begin(&self.target);
        }
    }

    /// Ends what [`Journal::begin_append`] began.
    pub fn end_append(&mut self) {
        self.access.end();
    }

    /// Continues with what another journal found at the path.
    pub fn continue_as(&mut self, other: Journal, unsaved: Vec<NodeIndex>) {
        (self.path, self.target, self.open, self.unsaved) = (other.path, other.target, other.open, unsaved);
    }

    /// Takes in what others appended since the last look. `None`: the file is not the one we know.
    pub fn refresh(&mut self, tree: &mut EntryTree) -> io::Result<Option<Repairs>> {
        let Some(open) = &mut self.open else { return Ok(Some(Repairs::default())) };
        match open.look(&self.path)? {
            None => Ok(None),
            Some(now) if now == open.seen => Ok(Some(Repairs::default())),
            Some(now) => open.take_in(tree, now).map(Some),
        }
    }

    /// Writes everything that is not in the file yet.
    pub fn save(&mut self, tree: &mut EntryTree) -> io::Result<()> {
        if self.is_due(tree) {
            return self.create(tree);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if self.unsaved.is_empty() {
            return Ok(());
        }
        self.access.check()?;
        if open.look(&self.path)?.is_none() {
            return Err(io::Error::other("another program replaced it"));
        }
        open.mend_tail(&self.path)?;
        let mut n_saved = 0;
        let result = self.unsaved.iter().try_for_each(|&index| {
            open.append(tree, &self.path, index)?;
            n_saved += 1;
            Ok(())
        });
        self.unsaved.drain(..n_saved);
        self.needs_sync |= n_saved > 0;
        result
    }

    /// Returns what has to be synced since the last call.
    pub fn take_sync(&mut self) -> Option<SyncTask> {
        let open = self.open.as_ref().filter(|_| self.needs_sync)?;
        self.needs_sync = false;
        let is_new = std::mem::take(&mut self.needs_directory_sync);
        Some(SyncTask { file: Arc::clone(&open.file), path: self.path.clone(), is_new })
    }

    /// Whether the next save creates the file.
    pub fn is_due(&self, tree: &EntryTree) -> bool {
        !self.is_created() && (self.is_wanted || self.has_content(tree))
    }

    fn has_content(&self, tree: &EntryTree) -> bool {
        self.unsaved.iter().any(|&index| tree.node(index).kind.is_content())
    }

    /// Makes a session of an empty file, whether it has content or not.
    pub fn adopt(&mut self, tree: &mut EntryTree, lock: Option<Lock>) -> io::Result<()> {
        self.access = WriteAccess::with(lock);
        let created = self.create(tree);
        self.access.end();
        created
    }

    /// Makes the directory the file is to be in.
    pub fn create_directory(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), pith_config::create_private_directory)
    }

    /// Creates the file with the header and all entries so far.
    fn create(&mut self, tree: &mut EntryTree) -> io::Result<()> {
        self.create_directory()?;
        // Others can only learn of the file through its lock.
        _ = self.access.begin_for(&self.target);
        self.access.check()?;
        let (content, places) = whole_content(tree, &self.unsaved)?;
        let mut file = create_or_adopt(&self.path)?;
        if let Err(error) = file.write_all(&content) {
            // The next attempt must find the name free again.
            _ = fs::remove_file(&self.path);
            return Err(error);
        }
        let seen = Look::of(&file.metadata()?);
        for (index, place) in self.unsaved.drain(..).zip(places) {
            tree.nodes[index as usize].place = place;
        }
        let file = Arc::new(file);
        tree.backing = Backing::File(Arc::clone(&file));
        self.open = Some(OpenFile { file, seen, tail: Tail::Clean });
        (self.needs_sync, self.needs_directory_sync) = (true, true);
        Ok(())
    }
}

/// Returns the header and entries as they go into a new file, and where each entry will be.
fn whole_content(tree: &EntryTree, entries: &[NodeIndex]) -> io::Result<(Vec<u8>, Vec<Place>)> {
    let mut content = tree.header.line.clone();
    content.push(b'\n');
    let mut places = Vec::with_capacity(entries.len());
    let mut lines = tree.lines();
    for &index in entries {
        let line = lines.get(index)?;
        let len = u32::try_from(line.len()).map_err(io::Error::other)?;
        places.push(Place::Stored { offset: content.len() as u64, len });
        content.extend_from_slice(line);
        content.push(b'\n');
    }
    Ok((content, places))
}

/// Opens a new file, or an empty one that was already there.
fn create_or_adopt(path: &Path) -> io::Result<File> {
    match files::create_private(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::metadata(path)?.len() == 0 => {
            files::open_append(path)
        }
        result => result,
    }
}

impl OpenFile {
    /// Opens the file as it is now; `None` if it is another file than before.
    fn look(&self, path: &Path) -> io::Result<Option<Look>> {
        let now = match fs::metadata(path) {
            Ok(metadata) => Look::of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_known = now.identity == self.seen.identity && now.len >= self.seen.len;
        Ok(is_known.then_some(now))
    }

    /// Reads the lines between what was seen before and `now`.
    fn take_in(&mut self, tree: &mut EntryTree, now: Look) -> io::Result<Repairs> {
        let start = match self.tail {
            // The rest of the line may be among what is new.
            Tail::Torn(offset) | Tail::Unfinished(offset) => offset,
            Tail::Clean | Tail::NoNewline => self.seen.len,
        };
        let reader = BufReader::new(ReadAt::new(&self.file, start).until(now.len));
        let mut intake = Intake::of_addition();
        intake.read(tree, &mut LineReader::new(reader, start)).map_err(|error| match error {
            ReadError::Io(error) => error,
            ReadError::LineTooLong(_) | ReadError::NotASession => {
                io::Error::other("another program wrote a line longer than 64 MiB")
            }
        })?;
        intake.resolve_parents(tree);
        self.tail = intake.tail;
        self.seen = now;
        Ok(intake.repairs)
    }

    /// Makes sure that the next line starts on a line of its own.
    fn mend_tail(&mut self, path: &Path) -> io::Result<()> {
        match self.tail {
            Tail::Clean => return Ok(()),
            // A fragment another program may still be writing stays where it is.
            Tail::NoNewline | Tail::Unfinished(_) => {
                (&*self.file).write_all(b"\n")?;
                self.seen.len += 1;
            }
            Tail::Torn(offset) => {
                self.cut_fragment(path, offset)?;
                self.seen.len = offset;
            }
        }
        self.tail = Tail::Clean;
        Ok(())
    }

    /// Moves an unfinished last line to a file of its own. Cutting the file is one step for
    /// the file system and comes after the copy is safe, so no crash can lose either.
    fn cut_fragment(&mut self, path: &Path, offset: u64) -> io::Result<()> {
        let torn = crate::paths::side_file(path, &format!(".torn-{}", crate::time::now()));
        let mut fragment = files::create_private(&torn)?;
        io::copy(&mut ReadAt::new(&self.file, offset), &mut fragment)?;
        fragment.sync_all()?;
        files::cut(path, offset)?;
        self.file.sync_all()
    }

    /// Writes one entry with one call.
    fn append(&mut self, tree: &mut EntryTree, path: &Path, index: NodeIndex) -> io::Result<()> {
        let Place::Memory(line) = &tree.node(index).place else { return Ok(()) };
        let len = u32::try_from(line.len() - 1).map_err(io::Error::other)?;
        if let Err((n_written, error)) = write_counting(&self.file, line) {
            self.take_back(path, n_written);
            return Err(error);
        }
        let expected = self.seen.len + line.len() as u64;
        let now = Look::of(&self.file.metadata()?);
        if now.len == expected {
            tree.nodes[index as usize].place = Place::Stored { offset: self.seen.len, len };
            self.seen = now;
        } else {
            // Someone wrote between our look and our write; reading it all finds our line too.
            self.take_in(tree, now)?;
        }
        Ok(())
    }

    /// Removes the part of a line that was written before the disk was full. If that is
    /// impossible the fragment is found by the next look and gets a newline of its own.
    fn take_back(&mut self, path: &Path, n_written: u64) {
        let is_last = self.file.metadata().is_ok_and(|now| now.len() == self.seen.len + n_written);
        if is_last
            && files::cut(path, self.seen.len).is_ok()
            && let Ok(metadata) = self.file.metadata()
        {
            self.seen = Look::of(&metadata);
        }
    }
}

/// Writes all bytes; the error says how many were written before it.
fn write_counting(mut file: &File, line: &[u8]) -> Result<(), (u64, io::Error)> {
    let mut n_written = 0;
    while n_written < line.len() {
        match file.write(&line[n_written..]) {
            Ok(0) => return Err((n_written as u64, io::ErrorKind::WriteZero.into())),
            Ok(n) => n_written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((n_written as u64, error)),
        }
    }
    Ok(())
}

impl Look {
    fn of(metadata: &Metadata) -> Self {
        Look { identity: files::identity(metadata), len: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl SyncTask {
    /// Waits until the data is on the disk.
    pub fn run(self) -> Result<(), StoreReport> {
        let directory = self.path.parent().filter(|_| self.is_new);
        let result = self.file.sync_data().and_then(|()| directory.map_or(Ok(()), pith_config::sync_directory));
        result.map_err(|error| StoreReport {
            kind: ReportKind::Write,
            message: format!("session file {}: cannot sync: {error}", self.path.display()),
        })
    }
}
