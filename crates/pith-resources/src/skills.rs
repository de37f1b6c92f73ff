//! Skills: a Markdown file of instructions with a name and a description, read
//! in full only when it is used.

use std::io;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;
use serde_json::{Map, Value};

use crate::followed::Followed;
use crate::front_matter::{self, HeadError, text_field};
use crate::notes::Notes;
use crate::scan::{Candidate, How};
use crate::source_info::SourceInfo;
use crate::text;

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
/// What an expansion reads of a file at most.
pub(crate) const MAX_BODY: usize = 1024 * 1024;

/// A skill as found; its instructions stay in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The file with the instructions.
    pub path: PathBuf,
    /// Hidden from the system prompt; people can still call it.
    pub disable_model_invocation: bool,
    /// All fields as written, also those without a meaning here.
    pub front_matter: Map<String, Value>,
    pub source_info: SourceInfo,
}

impl Skill {
    /// Returns the directory that relative paths in the skill start from.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns the text that stands for `/skill:name arguments`, and whether the file was cut for it.
    pub(crate) fn expand(&self, arguments: &str, followed: &Followed) -> io::Result<(String, bool)> {
        let read = text::read(&self.path, MAX_BODY, followed)?;
        let whole = text::with_plain_line_ends(read.text);
        let body = front_matter::body(&whole).trim();
        let (name, location, directory) = (&self.name, self.path.display(), self.directory().display());
        let mut text = format!(
            "<skill name=\"{name}\" location=\"{location}\">\nReferences are relative to {directory}.\n\n{body}\n</skill>"
        );
        let arguments = arguments.trim();
        if !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        Ok((text, read.is_cut))
    }
}

/// Reads a candidate's head. What is not a skill after all gives `None`, with a reason if it should have been one.
pub(crate) fn load(candidate: Candidate, source_info: SourceInfo, notes: &mut Notes) -> Option<Skill> {
    let Candidate { path, found, .. } = candidate;
    let head = match front_matter::read_head(&path, notes) {
        Ok(head) => head,
        Err(error) => {
            let is_expected = found != How::Loose || matches!(error, HeadError::Read(_));
            if is_expected {
                notes.diagnostics.push(Diagnostic::warning("skill_unreadable", &path, error.to_string()));
            }
            return None;
        }
    };
    let description = front_matter::only_text(&head.fields, "description").filter(|text| !text.trim().is_empty());
    let Some(description) = description.map(str::to_owned) else {
        if found != How::Loose {
            let message = "description is required";
            notes.diagnostics.push(Diagnostic::warning("skill_description_missing", &path, message));
        }
        return None;
    };
    let mut warn = |code, message| notes.diagnostics.push(Diagnostic::warning(code, &path, message));
    if !head.is_utf8 {
        warn("skill_not_utf8", "not UTF-8 text; the bytes in question were replaced".to_owned());
    }
    let n_chars = description.chars().count();
    if n_chars > MAX_DESCRIPTION {
        warn("skill_description", format!("description is longer than {MAX_DESCRIPTION} characters ({n_chars})"));
    }
    let name = text_field(&head.fields, "name").filter(|name| !name.is_empty()).unwrap_or_else(|| default_name(&path));
    for fault in name_faults(&name) {
        warn("skill_name", fault);
    }
    let disable_model_invocation = head.fields.get("disable-model-invocation") == Some(&Value::Bool(true));
    Some(Skill { name, description, path, disable_model_invocation, front_matter: head.fields, source_info })
}

fn default_name(path: &Path) -> String {
    let directory = path.parent().and_then(Path::file_name);
    directory.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let n_chars = name.chars().count();
    if n_chars > MAX_NAME {
        faults.push(format!("name is longer than {MAX_NAME} characters ({n_chars})"));
    }
    if !name.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '-')) {
        faults.push(format!("name {name:?} may only contain a-z, 0-9 and -"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push(format!("name {name:?} must not start or end with -"));
    }
    if name.contains("--") {
        faults.push(format!("name {name:?} must not contain --"));
    }
    faults
}
