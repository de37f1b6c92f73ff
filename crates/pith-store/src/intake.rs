//! Taking the lines of a file into a tree.
//!
//! Used for whole files and for what another program appended while pith had
//! the file open. Damage never stops it: lines that cannot be used are skipped
//! and counted, and entries without a parent are attached to what is there.

use std::io::{self, BufRead, Read};

use crate::backing::Place;
use crate::report::Repairs;
use crate::sketch::Sketch;
use crate::tree::{EntryTree, Inserted, Kind, NodeIndex};

/// The longest line that is read or written; images are inline, so lines are allowed to be long.
pub(crate) const MAX_LINE: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// How a file ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With a newline, or not at all.
    #[default]
    Clean,
    /// With a complete line that lacks its newline.
    NoNewline,
    /// With the beginning of a line, at this offset, that will not be completed.
    Torn(u64),
    /// With the beginning of a line, at this offset, that another program may be writing.
    Unfinished(u64),
}

/// One pass over lines.
#[derive(Default)]
pub(crate) struct Intake {
    pub repairs: Repairs,
    /// How the lines read so far end.
    pub tail: Tail,
    unresolved: Vec<(NodeIndex, Box<str>)>,
    /// Some parent may come after its child, so that walks need not end.
    may_cycle: bool,
    line_number: u64,
    /// The lines were appended by another program while the file was open.
    is_addition: bool,
}

/// A line with its place, or the end.
pub(crate) struct RawLine<'b> {
    pub bytes: &'b [u8],
    pub offset: u64,
    pub has_newline: bool,
}

/// Splits a stream into lines at LF only; remembers where it is.
pub(crate) struct LineReader<R> {
    reader: R,
    offset: u64,
    /// What was handed out from the reader's own buffer and is still in it.
    n_lent: usize,
    /// A line that was not in the reader's buffer as a whole.
    buffer: Vec<u8>,
}

/// Why reading stopped early.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    /// The number of the line, counted from 1 where reading began.
    LineTooLong(u64),
    /// The first object is not a header.
    NotASession,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl<R: BufRead> LineReader<R> {
    pub fn new(reader: R, offset: u64) -> Self {
        LineReader { reader, offset, n_lent: 0, buffer: Vec::new() }
    }

    /// Returns the next line without LF and CR; `None` at the end.
    pub fn next(&mut self, number: u64) -> Result<Option<RawLine<'_>>, ReadError> {
        self.reader.consume(std::mem::take(&mut self.n_lent));
        let offset = self.offset;
        let line = match memchr::memchr(b'\n', self.reader.fill_buf()?) {
            // Most lines need not be copied.
            Some(at) => {
                self.n_lent = at + 1;
                &self.reader.fill_buf()?[..=at]
            }
            None => {
                self.buffer.clear();
                self.reader.by_ref().take(MAX_LINE + 2).read_until(b'\n', &mut self.buffer)?;
                &self.buffer[..]
            }
        };
        if line.is_empty() {
            return Ok(None);
        }
        self.offset += line.len() as u64;
        let bytes = line.strip_suffix(b"\n");
        let has_newline = bytes.is_some();
        let bytes = bytes.unwrap_or(line);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() as u64 > MAX_LINE {
            return Err(ReadError::LineTooLong(number));
        }
        Ok(Some(RawLine { bytes, offset, has_newline }))
    }
}

impl Intake {
    /// Makes an intake of lines that another program added to a file that was read before.
    pub fn of_addition() -> Self {
        Intake { is_addition: true, ..Intake::default() }
    }

    /// Reads all remaining lines.
    pub fn read<R: BufRead>(&mut self, tree: &mut EntryTree, lines: &mut LineReader<R>) -> Result<(), ReadError> {
        let mut scratch = Vec::new();
        while let Some(line) = self.next_line(lines)? {
            let is_usable = line.bytes.trim_ascii().is_empty() || self.take(tree, &line, &mut scratch);
            self.tail = match (line.has_newline, is_usable) {
                (true, true) => Tail::Clean,
                (true, false) => {
                    self.note_damage();
                    self.take_fused(tree, &line);
                    Tail::Clean
                }
                (false, true) => Tail::NoNewline,
                (false, false) if self.take_fused(tree, &line) => {
                    self.note_damage();
                    Tail::NoNewline
                }
                (false, false) if self.is_addition => Tail::Unfinished(line.offset),
                (false, false) => {
                    self.repairs.torn = Some(line.bytes.len() as u64);
                    Tail::Torn(line.offset)
                }
            };
        }
        Ok(())
    }

    pub fn next_line<'l, R: BufRead>(
        &mut self,
        lines: &'l mut LineReader<R>,
    ) -> Result<Option<RawLine<'l>>, ReadError> {
        self.line_number += 1;
        lines.next(self.line_number)
    }

    pub fn note_damage(&mut self) {
        let place = self.place();
        self.repairs.damaged.note(|| place);
    }

    /// Describes where the current line is.
    fn place(&self) -> String {
        let of = if self.is_addition { " of what another program added" } else { "" };
        format!("line {}{of}", self.line_number)
    }

    /// Takes one line; `false` if it is not a JSON object.
    fn take(&mut self, tree: &mut EntryTree, line: &RawLine<'_>, scratch: &mut Vec<u8>) -> bool {
        let Some(sketch) = Sketch::read(line.bytes, scratch) else { return false };
        if sketch.is_header() {
            // Continuing a file without an answer, old versions write everything again, header included.
            return true;
        }
        let len = u32::try_from(line.bytes.len()).expect("lines are limited to 64 MiB");
        match tree.insert(&sketch, Place::Stored { offset: line.offset, len }) {
            Inserted::New(index, missing) => {
                self.unresolved.extend(missing.map(|parent| (index, parent)));
            }
            Inserted::Replaced(index, missing) => {
                self.may_cycle = true;
                self.unresolved.extend(missing.map(|parent| (index, parent)));
            }
            Inserted::Known => return true,
            Inserted::Nameless => {
                let place = self.place();
                self.repairs.nameless.note(|| place);
                return true;
            }
        }
        if sketch.kind.as_deref() == Some("message") && sketch.message.role.is_none() {
            self.repairs.unreadable.note(|| sketch.id.as_deref().unwrap_or_default().to_owned());
        }
        true
    }

    /// Saves what can be saved of a line that lacks a newline in its middle: old versions append
    /// behind an unfinished line, so that a complete entry follows a fragment or another entry.
    fn take_fused(&mut self, tree: &mut EntryTree, line: &RawLine<'_>) -> bool {
        const START: &[u8] = b"{\"type\":\"";
        // Content blocks begin the same way; far more of them than this means no fused line.
        const MAX_ATTEMPTS: usize = 64;
        let starts = line.bytes.windows(START.len()).enumerate().skip(1).filter(|(_, window)| *window == START);
        for (at, _) in starts.take(MAX_ATTEMPTS) {
            let mut scratch = Vec::new();
            let (before, after) = line.bytes.split_at(at);
            let is_entry = |sketch: Sketch<'_>| Kind::of(&sketch) != Kind::Other && sketch.timestamp.is_some();
            if !Sketch::read(after, &mut scratch).is_some_and(is_entry) {
                continue;
            }
            let before = RawLine { bytes: before, ..*line };
            if !self.take(tree, &before, &mut scratch) {
                self.take_fused(tree, &before);
            }
            let after = RawLine { bytes: after, offset: line.offset + at as u64, has_newline: line.has_newline };
            return self.take(tree, &after, &mut scratch);
        }
        false
    }

    /// Attaches entries to parents that came after them, then makes sure that every
    /// walk towards a root ends.
    pub fn resolve_parents(&mut self, tree: &mut EntryTree) {
        for (index, parent) in std::mem::take(&mut self.unresolved) {
            match tree.find(&parent) {
                Some(found) => {
                    tree.nodes[index as usize].parent = Some(found);
                    self.may_cycle = true;
                }
                None => {
                    tree.reattach(index, index.checked_sub(1));
                    let id = &tree.node(index).id;
                    self.repairs.orphans.note(|| format!("{id}, parent {parent}"));
                }
            }
        }
        if self.may_cycle {
            self.cut_cycles(tree);
        }
    }

    /// Cuts cycles of parents: the entry whose parent was already passed
    /// becomes a root. The leaf's walk goes first, so its branch keeps every entry.
    fn cut_cycles(&mut self, tree: &mut EntryTree) {
        const UNSEEN: u32 = 0;
        let mut walk_of = vec![UNSEEN; tree.len()];
        let starts = tree.end.into_iter().chain(tree.indexes().rev());
        for (start, walk) in starts.zip(1..) {
            let mut at = start;
            while walk_of[at as usize] == UNSEEN {
                walk_of[at as usize] = walk;
                let Some(parent) = tree.node(at).parent else { break };
                if walk_of[parent as usize] == walk {
                    tree.reattach(at, None);
                    let id = &tree.node(at).id;
                    self.repairs.cycles.note(|| format!("at {id}"));
                    break;
                }
                at = parent;
            }
        }
    }
}
