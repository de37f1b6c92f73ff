//! What a list of sessions shows of each one.

use std::fs::{File, Metadata};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::backing::ReadAt;
use crate::intake::{Intake, ReadError};
use crate::load::skip_bom;
use crate::message::{message_of, text_of};
use crate::sketch::Sketch;
use crate::tree::{Header, Kind, Role, clean_name};

/// Headers beyond this size are not looked for.
const MAX_HEADER: u64 = 1 << 20;

/// First messages are shown up to about this many bytes; pasted files are not a title.
const MAX_FIRST_MESSAGE: usize = 4096;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    #[serde(skip)]
    pub path: PathBuf,
    pub id: String,
    /// Empty if the file does not say.
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// Unix milliseconds, from the header.
    pub created: i64,
    /// Unix milliseconds of the latest prompt or answer.
    pub modified: i64,
    pub message_count: u64,
    /// `(no messages)` if there is none.
    pub first_message: String,
}

impl SessionSummary {
    /// Reads a session file; `None` if it is something else or cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        read(path, &file, &metadata).ok()?
    }
}

/// Returns the header of a session file; `None` if the file is no session.
pub(crate) fn peek_header(path: &Path) -> Option<Header> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))?;
    let mut lines = skip_bom(BufReader::with_capacity(4096, ReadAt::new(&file, 0).until(MAX_HEADER))).ok()?;
    Intake::default().header(&mut lines).ok()?
}

fn read(path: &Path, file: &File, metadata: &Metadata) -> Result<Option<SessionSummary>, ReadError> {
    let mut lines = skip_bom(BufReader::with_capacity(64 * 1024, ReadAt::new(file, 0)))?;
    let mut intake = Intake::default();
    let header = intake.header(&mut lines)?.filter(|header| header.line.len() as u64 <= MAX_HEADER);
    let Some(header) = header else { return Ok(None) };
    let mut gathered = Gathered::default();
    let mut scratch = Vec::new();
    while let Some(line) = intake.next_line(&mut lines)? {
        if let Some(sketch) = Sketch::read(line.bytes, &mut scratch) {
            gathered.take(&sketch, line.bytes);
        }
    }
    let created = if header.created == 0 { milliseconds(metadata) } else { header.created };
    Ok(Some(SessionSummary {
        path: path.to_owned(),
        id: header.id,
        cwd: header.cwd,
        name: gathered.name,
        parent_session_path: header.parent_session,
        created,
        modified: gathered.modified.unwrap_or(created),
        message_count: gathered.message_count,
        first_message: gathered.first_message.unwrap_or_else(|| "(no messages)".to_owned()),
    }))
}

/// What the entries read so far say about their session.
#[derive(Default)]
struct Gathered {
    name: Option<String>,
    modified: Option<i64>,
    message_count: u64,
    first_message: Option<String>,
}

impl Gathered {
    fn take(&mut self, sketch: &Sketch<'_>, line: &[u8]) {
        let kind = Kind::of(sketch);
        match kind {
            Kind::SessionInfo => self.name = sketch.name.as_deref().and_then(clean_name),
            Kind::Message(role) => {
                self.message_count += 1;
                if matches!(role, Role::User | Role::Assistant) {
                    let time = sketch.message.timestamp.map(|time| time as i64).or(sketch.timestamp);
                    self.modified = self.modified.max(time);
                }
                // Versions before 3 call some roles differently, but not this one.
                if role == Role::User
                    && self.first_message.is_none()
                    && let Ok(Some(message)) = message_of(kind, line, 0)
                {
                    self.first_message = Some(shorten(text_of(&message))).filter(|text| !text.is_empty());
                }
            }
            _ => {}
        }
    }
}

fn shorten(mut text: String) -> String {
    let end = text.floor_char_boundary(MAX_FIRST_MESSAGE);
    text.truncate(end);
    text
}

fn milliseconds(metadata: &Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as i64)
}
