//! Reads what a shell command would run, without running it.
//!
//! The parser is that of a whole shell; over its tree stands a list of the node kinds that are understood. Whatever is
//! not on the list is *opaque*: nobody can say what it runs, so no rule can allow it.
//!
//! [`read`] is that strict reading. [`scan`] walks the same tree for rules against something, the other way round: every
//! text in it counts, unless it is clearly only printed or searched for.

mod expansion;
mod invocation;
mod known;
mod look_through;
mod prescreen;
mod reader;
mod redirection;
mod scan;
mod strings;
mod tokens;
mod walk;
mod word;
mod word_text;

pub use scan::{Scan, scan};
pub(crate) use tokens::{COMPUTED, is_computed};
pub use tokens::{Text, TextKind};
pub use word::Word;

/// What a shell command would run, read and write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Every simple command, wherever it stands, in the order of the text.
    pub parts: Vec<Part>,
    /// Files that redirections open.
    pub files: Vec<FileAccess>,
    /// Why some of it is not understood; empty if all is.
    pub opaque: Vec<String>,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub words: Vec<Word>,
    /// Whether something changes what the words mean, such as an assignment to `PATH` or another user. Rules that allow
    /// do not match then.
    pub is_altered: bool,
    pub role: Role,
    /// The commands that it runs, as far as it says so itself.
    pub inner: Vec<Part>,
}

/// What a command that runs others is to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It does something of its own.
    Command,
    /// It only runs the inner commands, so a rule that allows those allows it.
    Wrapper,
}

/// A file that a redirection opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAccess {
    pub kind: AccessKind,
    /// As the shell takes it: relative to its directory, or below `~`. `Unknown` if it is computed.
    pub path: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    Write,
}

/// Reads a command as bash would.
pub fn read(script: &str) -> Reading {
    let mut reader = reader::Reader::default();
    reader.script(script);
    reader.finish()
}
