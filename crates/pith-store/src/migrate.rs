//! Bringing files of older formats up to date.
//!
//! Version 1 is a plain list; version 2 gave entries ids and parents; version 3
//! renamed a role. Everything else in a line keeps its bytes, and lines that
//! cannot be read are passed on for the reader to report.

use std::io::{BufRead, Write};

use serde_json::value::RawValue;

use crate::error::FORMAT_VERSION;
use crate::ids::{EntryId, new_entry_id};
use crate::intake::{LineReader, ReadError};
use crate::line::Members;

/// Copies a file, given its version, as one of the current version.
pub(crate) fn migrate<R: BufRead>(
    mut lines: LineReader<R>,
    version: u32,
    out: &mut impl Write,
) -> Result<(), ReadError> {
    let mut migration = Migration { version, objects: Vec::new(), taken: Default::default() };
    let mut number = 0;
    loop {
        number += 1;
        let Some(line) = lines.next(number)? else { return Ok(()) };
        match migration.line(line.bytes) {
            Some(migrated) => out.write_all(&migrated)?,
            None => {
                out.write_all(line.bytes)?;
                if line.has_newline {
                    out.write_all(b"\n")?;
                }
            }
        }
    }
}

struct Migration {
    version: u32,
    /// The ids of all objects so far, `None` for headers: old compactions count from the file's start.
    objects: Vec<Option<EntryId>>,
    taken: std::collections::HashSet<EntryId>,
}

impl Migration {
    fn line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let mut scratch = Vec::new();
        let mut members = Members::read(line, &mut scratch)?;
        if members.text("type").as_deref() == Some("session") {
            members.set("version", &FORMAT_VERSION);
            self.objects.push(None);
            return Some(members.to_line());
        }
        if self.version < 2 {
            self.add_identity(&mut members);
        }
        rename_hook_messages(&mut members);
        Some(members.to_line())
    }

    fn add_identity(&mut self, members: &mut Members<'_>) {
        let id = new_entry_id(|id| self.taken.contains(id));
        let parent = self.objects.iter().rev().find_map(Option::as_deref);
        members.set_at(1, "id", &*id);
        members.set_at(2, "parentId", &parent);
        let index = members.get("firstKeptEntryIndex").and_then(|index| index.parse::<usize>().ok());
        if members.text("type").as_deref() == Some("compaction") && members.get("firstKeptEntryIndex").is_some() {
            members.remove("firstKeptEntryIndex");
            if let Some(Some(kept)) = index.and_then(|index| self.objects.get(index)) {
                members.set("firstKeptEntryId", &**kept);
            }
        }
        self.taken.insert(id.clone());
        self.objects.push(Some(id));
    }
}

fn rename_hook_messages(members: &mut Members<'_>) {
    let Some(mut message) = members.get("message").and_then(|json| Members::of(json.as_bytes()).ok()) else { return };
    if message.text("role").as_deref() == Some("hookMessage") {
        message.set("role", "custom");
        let json = RawValue::from_string(message.to_json()).expect("members are JSON");
        members.set("message", &json);
    }
}
