//! Prompt templates: Markdown files whose text replaces `/name arguments`.

use std::io;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;

use crate::followed::Followed;
use crate::front_matter;
use crate::notes::Notes;
use crate::scan::Candidate;
use crate::skills::MAX_BODY;
use crate::source_info::SourceInfo;
use crate::substitution;
use crate::text;

/// A description made from the body is cut to this many characters.
const MAX_BORROWED: usize = 60;

/// A template as found; its text stays in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate {
    /// File name without `.md`.
    pub name: String,
    /// From the front matter, else the first line of the text.
    pub description: String,
    pub argument_hint: Option<String>,
    pub path: PathBuf,
    pub source_info: SourceInfo,
}

impl PromptTemplate {
    /// Returns the text with the arguments put in, and whether the file was cut for it.
    pub(crate) fn expand(&self, arguments: &str, followed: &Followed) -> io::Result<(String, bool)> {
        let read = text::read(&self.path, MAX_BODY, followed)?;
        let whole = text::with_plain_line_ends(read.text);
        let arguments = substitution::split(arguments);
        Ok((substitution::fill(front_matter::body(&whole), &arguments), read.is_cut))
    }
}

/// Reads a candidate's head.
pub(crate) fn load(candidate: Candidate, source_info: SourceInfo, notes: &mut Notes) -> Option<PromptTemplate> {
    let path = candidate.path;
    let head = match front_matter::read_head(&path, notes) {
        Ok(head) => head,
        Err(error) => {
            notes.diagnostics.push(Diagnostic::warning("prompt_unreadable", &path, error.to_string()));
            return None;
        }
    };
    if !head.is_utf8 {
        let message = "not UTF-8 text; the bytes in question were replaced";
        notes.diagnostics.push(Diagnostic::warning("prompt_not_utf8", &path, message));
    }
    let written = front_matter::only_text(&head.fields, "description").filter(|text| !text.is_empty());
    Some(PromptTemplate {
        name: name_of(&path),
        description: written.map_or_else(|| shortened(head.first_line), str::to_owned),
        argument_hint: front_matter::only_text(&head.fields, "argument-hint").map(str::to_owned),
        path,
        source_info,
    })
}

fn name_of(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn shortened(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(MAX_BORROWED) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}
