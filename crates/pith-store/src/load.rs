//! Reading session files.
//!
//! A file is streamed once: each line is looked at for the members the tree needs
//! and left where it is. Files of older formats are brought up to date in memory
//! here; only opening a session for use rewrites them on disk.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backing::{Backing, ReadAt};
use crate::error::{FORMAT_VERSION, StoreError};
use crate::intake::{Intake, LineReader, ReadError, Tail};
use crate::migrate::migrate;
use crate::report::{Repairs, StoreReport};
use crate::sketch::Sketch;
use crate::tree::{EntryTree, Header};

/// The largest file that is opened.
const MAX_FILE: u64 = 2 << 30;

/// Lines are scanned in pieces of this size.
const BUFFER: usize = 256 * 1024;

/// A file that was read from beginning to end.
pub(crate) struct Loaded {
    pub tree: EntryTree,
    pub tail: Tail,
    pub repairs: Repairs,
}

impl EntryTree {
    /// Reads a session file and never changes it. Damage that was worked around is in the report.
    pub fn open(path: &Path) -> Result<(Self, Option<StoreReport>), StoreError> {
        let (file, metadata) = open_for_reading(path)?;
        let file = Arc::new(file);
        let header = read_header(path, &file, metadata.len())?;
        let loaded = if header.version < FORMAT_VERSION {
            let mut migrated = Vec::new();
            let lines = from_start(&file, metadata.len()).map_err(in_file_io(path))?;
            migrate(lines, header.version, &mut migrated).map_err(in_file(path))?;
            load_bytes(migrated.into()).map_err(in_file(path))?
        } else {
            load(path, &file, metadata.len(), header)?
        };
        let report = loaded.repairs.report(Some(path));
        Ok((loaded.tree, report))
    }
}

/// Opens an ordinary file of acceptable size; anything else could block or never end.
pub(crate) fn open_for_reading(path: &Path) -> Result<(File, Metadata), StoreError> {
    let metadata = fs::metadata(path).map_err(in_file_io(path))?;
    if !metadata.is_file() {
        return Err(StoreError::NotASession(path.to_owned()));
    }
    let file = File::open(path).map_err(in_file_io(path))?;
    let metadata = file.metadata().map_err(in_file_io(path))?;
    if metadata.len() > MAX_FILE {
        return Err(StoreError::FileTooLarge(path.to_owned()));
    }
    Ok((file, metadata))
}

/// Reads the first line that is an object, which has to be a header.
pub(crate) fn read_header(path: &Path, file: &File, len: u64) -> Result<Header, StoreError> {
    let mut lines = from_start_with(file, len, 4096).map_err(in_file_io(path))?;
    match Intake::default().header(&mut lines).map_err(in_file(path))? {
        Some(header) => Ok(header),
        None => Err(StoreError::NotASession(path.to_owned())),
    }
}

/// Reads a file of the current format or a newer one.
pub(crate) fn load(path: &Path, file: &Arc<File>, len: u64, header: Header) -> Result<Loaded, StoreError> {
    let tree = EntryTree::new(header, Backing::File(Arc::clone(file)));
    let lines = from_start(file, len).map_err(in_file_io(path))?;
    read_all(tree, lines).map_err(in_file(path))
}

/// Reads content that is in memory.
pub(crate) fn load_bytes(bytes: Arc<[u8]>) -> Result<Loaded, ReadError> {
    let lines = || -> io::Result<_> { skip_bom(&bytes[..]) };
    let header = Intake::default().header(&mut lines()?)?.ok_or(ReadError::NotASession)?;
    let tree = EntryTree::new(header, Backing::Bytes(Arc::clone(&bytes)));
    read_all(tree, lines()?)
}

fn read_all<R: BufRead>(mut tree: EntryTree, mut lines: LineReader<R>) -> Result<Loaded, ReadError> {
    let mut intake = Intake::default();
    intake.header(&mut lines)?;
    intake.read(&mut tree, &mut lines)?;
    intake.resolve_parents(&mut tree);
    Ok(Loaded { tree, tail: intake.tail, repairs: intake.repairs })
}

/// Returns the lines of a file without its byte order mark.
pub(crate) fn from_start(file: &File, len: u64) -> io::Result<LineReader<impl BufRead>> {
    from_start_with(file, len, BUFFER)
}

fn from_start_with(file: &File, len: u64, buffer: usize) -> io::Result<LineReader<impl BufRead>> {
    skip_bom(BufReader::with_capacity(buffer, ReadAt::new(file, 0).until(len)))
}

/// Returns the lines of a stream without its byte order mark.
pub(crate) fn skip_bom<R: BufRead>(mut reader: R) -> io::Result<LineReader<R>> {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    let has_bom = reader.fill_buf()?.starts_with(BOM);
    if has_bom {
        reader.consume(BOM.len());
    }
    Ok(LineReader::new(reader, if has_bom { BOM.len() as u64 } else { 0 }))
}

impl Intake {
    /// Reads up to the header; `None` if the first object is something else.
    pub fn header<R: BufRead>(&mut self, lines: &mut LineReader<R>) -> Result<Option<Header>, ReadError> {
        while let Some(line) = self.next_line(lines)? {
            let mut scratch = Vec::new();
            match Sketch::read(line.bytes, &mut scratch) {
                Some(sketch) => {
                    self.tail = if line.has_newline { Tail::Clean } else { Tail::NoNewline };
                    return Ok(Header::of(&sketch, line.bytes));
                }
                None if line.bytes.trim_ascii().is_empty() => {}
                None => self.note_damage(),
            }
        }
        Ok(None)
    }
}

impl Header {
    fn of(sketch: &Sketch<'_>, line: &[u8]) -> Option<Self> {
        let id = sketch.id.as_deref().filter(|_| sketch.is_header())?;
        Some(Header {
            id: id.to_owned(),
            version: sketch.version.map_or(1, |version| version as u32),
            created: sketch.timestamp.unwrap_or_default(),
            cwd: sketch.cwd.as_deref().unwrap_or_default().to_owned(),
            parent_session: sketch.parent_session.as_deref().map(str::to_owned),
            line: line.to_vec(),
        })
    }
}

/// Names the file in an error.
pub(crate) fn in_file(path: &Path) -> impl Fn(ReadError) -> StoreError {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        ReadError::Io(error) => in_file_io(&path)(error),
        ReadError::LineTooLong(line) => StoreError::LineTooLong { path: path.clone(), line },
        ReadError::NotASession => StoreError::NotASession(path.clone()),
    }
}

/// Names the file in an error of the system.
pub(crate) fn in_file_io(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path: PathBuf = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound(path.clone()),
        _ => StoreError::Io { path: path.clone(), error },
    }
}
