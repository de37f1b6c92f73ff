//! The file: one record a line, without credentials.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pith_secrets::{MASK, Secrets, is_secret_name, mask_shapes};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::frame::{Frame, Texts};
use crate::warn;

/// Something that happened.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The first of a process.
    Begin {
        content: bool,
        time: Option<String>,
        version: &'static str,
    },
    In(Frame),
    Out(Frame),
    /// A line of the host was longer than allowed and was dropped.
    TooLong {},
    /// What pith did, as `PITH_LOG` would show it.
    Event {
        level: &'static str,
        part: &'static str,
        what: String,
        spans: Vec<Value>,
        values: Map<String, Value>,
    },
}

/// An open file.
pub struct DebugFile {
    path: PathBuf,
    home: String,
    shows_content: bool,
    began: Instant,
    /// Makes hashes that can be compared within a process, and not with those of guessed texts.
    hasher: RandomState,
    /// `None` after a write has failed.
    file: Mutex<Option<File>>,
}

impl DebugFile {
    /// Opens a file of a debug log, or makes one that nobody else can read. Appends: processes that a session starts may
    /// write to the same.
    pub fn open(path: &Path, home: &Path, shows_content: bool) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() {
            if metadata.len() > 0 {
                may_follow(path, shows_content)?;
            }
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(DebugFile {
            path: path.to_owned(),
            home: home.to_string_lossy().into_owned(),
            shows_content,
            began: Instant::now(),
            hasher: RandomState::new(),
            file: Mutex::new(Some(file)),
        })
    }

    /// Writes the first record.
    pub fn begin(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let time = now.and_then(|now| pith_acp::iso(i64::try_from(now.as_millis()).ok()?));
        self.write(&Record::Begin { content: self.shows_content, time, version: env!("CARGO_PKG_VERSION") });
    }

    /// Returns a line of the protocol as the file shows it.
    pub fn frame(&self, line: &[u8]) -> Frame {
        let texts = if self.shows_content { Texts::Shown } else { Texts::Counted };
        Frame::of(line, texts, &|text| self.hash(text))
    }

    /// Appends a record. The first failure is told, and nothing more is written.
    pub fn write(&self, record: &Record) {
        let mut value = serde_json::to_value(record).expect("records are plain");
        self.mask(&mut value);
        let mut line = json!({"ms": self.milliseconds(), "pid": std::process::id()});
        if let (Value::Object(line), Value::Object(record)) = (&mut line, value) {
            line.extend(record);
        }
        let text = format!("{line}\n");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Err(error)) = file.as_mut().map(|file| file.write_all(text.as_bytes())) else { return };
        *file = None;
        // Whoever logs this warning comes here again.
        drop(file);
        warn(&format!("Warning: {}: {error}; nothing more is written to it", self.path.display()));
    }

    /// Milliseconds since the process began, to the microsecond.
    fn milliseconds(&self) -> f64 {
        self.began.elapsed().as_micros() as f64 / 1000.0
    }

    fn hash(&self, bytes: &[u8]) -> String {
        format!("{:016x}", self.hasher.hash_one(bytes))
    }

    /// Takes credentials and the home directory out of every string and every name.
    fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.masked(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask(value)),
            Value::Object(members) => {
                for (name, mut value) in std::mem::take(members) {
                    match &mut value {
                        Value::String(text) if is_secret_name(&name) => *text = MASK.to_owned(),
                        value => self.mask(value),
                    }
                    members.insert(self.masked(&name), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn masked(&self, text: &str) -> String {
        let known = Secrets::of_process().redact(text);
        without_home(&mask_shapes(&known), &self.home)
    }
}

/// Refuses a file that is something else, or whose first line says that it has no texts.
fn may_follow(path: &Path, shows_content: bool) -> io::Result<()> {
    let mut first = String::new();
    // A file that cannot be read as text is no debug log either.
    let _ = BufReader::new(File::open(path)?).read_line(&mut first);
    let first: Value = serde_json::from_str(&first).unwrap_or_default();
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    match (first["kind"].as_str(), first["content"].as_bool()) {
        (Some("begin"), Some(content)) if content == shows_content => Ok(()),
        (Some("begin"), Some(true)) => refuse("was begun with --debug-content; name another file"),
        (Some("begin"), Some(false)) => refuse("was begun without --debug-content; name another file"),
        _ => refuse("exists and is not a debug file"),
    }
}

/// Writes `~` for the home directory.
fn without_home(text: &str, home: &str) -> String {
    if home.len() < 2 {
        return text.to_owned();
    }
    let mut pieces = text.split(home);
    let mut short = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // `/home/me2` is not in `/home/me`.
        let is_longer = piece.starts_with(|next: char| next.is_alphanumeric() || "_-.".contains(next));
        short.push_str(if is_longer { home } else { "~" });
        short.push_str(piece);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_a_tilde() {
        let check = |text: &str, expected: &str| assert_eq!(without_home(text, "/home/me"), expected);
        check("/home/me/a:/home/me", "~/a:~");
        check("Some(\"/home/me/x\")", "Some(\"~/x\")");
        check("/home/me2/a /home/me.old", "/home/me2/a /home/me.old");
        assert_eq!(without_home("/a", "/"), "/a");
    }
}
