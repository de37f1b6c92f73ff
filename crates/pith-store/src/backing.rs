//! Where the lines of a session lie, and reading them back.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::tree::{Node, NodeIndex};

/// What offsets refer to.
#[derive(Clone)]
pub(crate) enum Backing {
    /// No file (yet): every line is in memory.
    None,
    File(Arc<File>),
    /// A file's content as a whole, possibly migrated.
    Bytes(Arc<[u8]>),
}

/// Where one line lies, without its newline.
#[derive(Clone)]
pub(crate) enum Place {
    /// In the backing.
    Stored { offset: u64, len: u32 },
    /// Not saved yet, or never to be. With the newline, ready to be written.
    Memory(Vec<u8>),
}

impl Place {
    /// Returns the length of the line.
    pub fn len(&self) -> usize {
        match self {
            Place::Stored { len, .. } => *len as usize,
            Place::Memory(line) => line.strip_suffix(b"\n").unwrap_or(line).len(),
        }
    }
}

/// Reads a file at positions of its own: the descriptor's position, which the
/// writer and other readers share, is neither used nor relied upon.
pub(crate) struct ReadAt<'f> {
    file: &'f File,
    position: u64,
}

impl<'f> ReadAt<'f> {
    pub fn new(file: &'f File, position: u64) -> Self {
        ReadAt { file, position }
    }

    /// Ends at a position of the file instead of its end.
    pub fn until(self, end: u64) -> io::Take<Self> {
        let len = end.saturating_sub(self.position);
        self.take(len)
    }
}

impl Read for ReadAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let n_read = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.position)?;
        #[cfg(windows)]
        let n_read = std::os::windows::fs::FileExt::seek_read(self.file, buffer, self.position)?;
        self.position += n_read as u64;
        Ok(n_read)
    }
}

impl Seek for ReadAt<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Reads lines of entries; cheap for many lines in file order.
pub(crate) struct Lines<'t> {
    nodes: &'t [Node],
    backing: &'t Backing,
    /// With the position of the next byte it would give.
    reader: Option<(BufReader<ReadAt<'t>>, u64)>,
    buffer: Vec<u8>,
    n_read: u64,
}

impl<'t> Lines<'t> {
    pub fn new(nodes: &'t [Node], backing: &'t Backing) -> Self {
        Lines { nodes, backing, reader: None, buffer: Vec::new(), n_read: 0 }
    }

    /// Returns the line of an entry.
    pub fn get(&mut self, index: NodeIndex) -> io::Result<&[u8]> {
        let nodes = self.nodes;
        self.at(&nodes[index as usize].place)
    }

    /// Returns the line at a place.
    pub fn at<'a>(&'a mut self, place: &'a Place) -> io::Result<&'a [u8]> {
        let (offset, len) = match place {
            Place::Memory(line) => return Ok(line.strip_suffix(b"\n").unwrap_or(line)),
            Place::Stored { offset, len } => (*offset, *len as usize),
        };
        match self.backing {
            Backing::None => Err(io::Error::other("the line was never stored")),
            Backing::Bytes(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|start| bytes.get(start..start.checked_add(len)?))
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
            Backing::File(file) => self.read(file, offset, len),
        }
    }

    fn read(&mut self, file: &'t File, offset: u64, len: usize) -> io::Result<&[u8]> {
        self.buffer.resize(len, 0);
        self.n_read += 1;
        if self.n_read == 1 {
            // Often the only one; reading ahead pays from the second on.
            ReadAt::new(file, offset).read_exact(&mut self.buffer)?;
            return Ok(&self.buffer);
        }
        let start = || (BufReader::with_capacity(64 * 1024, ReadAt::new(file, offset)), offset);
        let (mut reader, position) = self.reader.take().unwrap_or_else(start);
        reader.seek_relative(offset as i64 - position as i64)?;
        reader.read_exact(&mut self.buffer)?;
        self.reader = Some((reader, offset + len as u64));
        Ok(&self.buffer)
    }
}
