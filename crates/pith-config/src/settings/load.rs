//! From files to [`Settings`].

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::keys::{self, Scope, UnknownKey};
use super::migrate::migrate;
use super::{Limits, Settings};
use crate::agent_dir::AgentDir;
use crate::diagnostic::Diagnostic;
use crate::{document, locked_file};

/// Settings and what was wrong with the files.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    pub settings: Settings,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the user's settings and, for a trusted project, those of `cwd`.
pub fn load(agent: &AgentDir, cwd: &Path, trusted: bool) -> LoadedSettings {
    let mut diagnostics = Vec::new();
    let user = read_scope(&agent.settings_file(), Scope::User, &mut diagnostics);
    let project_file = agent.project_settings_file(cwd);
    let project =
        if trusted { read_scope(&project_file, Scope::Project, &mut diagnostics) } else { Document::default() };
    let limits = merge_limits(user.limits, project.limits, &project_file, &mut diagnostics);
    let (user, mut project) = (user.members, project.members);
    let user_resources = decode(&user, agent.settings_file(), &mut diagnostics);
    let project_resources = decode(&project, project_file, &mut diagnostics);
    extend_default_tools(&user, &mut project);
    let mut merged = Value::Object(user);
    document::merge(&mut merged, Value::Object(project));
    let merged = merged.as_object().expect("objects merge into an object");
    let settings = decode(merged, agent.settings_file(), &mut diagnostics);
    LoadedSettings { settings: Settings { limits, user_resources, project_resources, ..settings }, diagnostics }
}

/// Returns the `sessionDir` of the project or the user, which is needed before trust can be decided.
pub fn session_dir(agent: &AgentDir, cwd: &Path) -> Option<String> {
    let mut ignored = Vec::new();
    let files = [(agent.project_settings_file(cwd), Scope::Project), (agent.settings_file(), Scope::User)];
    files.into_iter().find_map(|(file, owner)| {
        let document = read_scope(&file, owner, &mut ignored);
        document.members.get("sessionDir")?.as_str().map(str::to_owned)
    })
}

/// Returns a value of a settings file as it is written, for settings whose mistakes must not be passed over. A file that
/// cannot be read is an error if it mentions the key; one that does not mention it is not parsed.
pub fn written(file: &Path, key: &str) -> Result<Option<Value>, String> {
    let is_mentioned = match std::fs::read(file) {
        Ok(text) => mentions(&text, key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Mention::No,
        Err(_) => Mention::Yes,
    };
    if is_mentioned == Mention::No {
        return Ok(None);
    }
    match locked_file::read(file) {
        Ok(Some(Value::Object(mut document))) => Ok(document.remove(key)),
        Ok(_) => Ok(None),
        // Who reads the other settings reports a file that says nothing about this one.
        Err(_) if is_mentioned == Mention::Escaped => Ok(None),
        Err(reason) => Err(format!("{}: {reason}", file.display())),
    }
}

/// Whether a text has a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mention {
    Yes,
    /// Its letters may be written as escapes.
    Escaped,
    No,
}

fn mentions(text: &[u8], key: &str) -> Mention {
    if text.windows(key.len()).any(|letters| letters == key.as_bytes()) {
        Mention::Yes
    } else if text.contains(&b'\\') {
        Mention::Escaped
    } else {
        Mention::No
    }
}

/// Returns the keys of a settings file that are no settings; none if it cannot be read.
pub fn unknown_keys(file: &Path) -> Vec<UnknownKey> {
    let Ok(Some(Value::Object(mut document))) = locked_file::read(file) else { return Vec::new() };
    migrate(&mut document);
    keys::unknown(&document)
}

/// Returns the file whose value of a top-level key applies: the project's if it has one, else the user's.
pub fn file_with(agent: &AgentDir, cwd: &Path, key: &str) -> PathBuf {
    let file = agent.project_settings_file(cwd);
    let document = read_scope(&file, Scope::Project, &mut Vec::new());
    if document.members.contains_key(key) { file } else { agent.settings_file() }
}

/// What one settings file says.
#[derive(Default)]
struct Document {
    members: Map<String, Value>,
    limits: Limits,
}

/// Reads one file, migrated and checked; empty when it is missing or cannot be read.
fn read_scope(file: &Path, scope: Scope, found: &mut Vec<Diagnostic>) -> Document {
    let reason = match locked_file::read(file) {
        Ok(None) => return Document::default(),
        Ok(Some(Value::Object(mut members))) => {
            migrate(&mut members);
            let limits = members.shift_remove("limits").map_or_else(Limits::default, |value| Limits::read(&value));
            for problem in &limits.problems {
                let message = format!("{problem}. Prompts are refused. File: {}", file.display());
                found.push(Diagnostic::error("limits", file, message));
            }
            keys::check(&mut members, file, scope, found);
            return Document { members, limits };
        }
        Ok(Some(_)) => "expected an object".to_owned(),
        Err(reason) => reason,
    };
    let message = format!("Invalid settings file {}: {reason}", file.display());
    found.push(Diagnostic::warning("settings_file", file, message));
    let mut limits = Limits::default();
    if std::fs::read(file).is_ok_and(|text| mentions(&text, "limits") == Mention::Yes) {
        limits.problems.push(format!("limits: {} cannot be read", file.display()));
    }
    Document { members: Map::new(), limits }
}

/// Puts the user's `defaultTools` before a list of the project that only changes it, with `+name` and `-name`.
fn extend_default_tools(user: &Map<String, Value>, project: &mut Map<String, Value>) {
    let (Some(Value::Array(user)), Some(Value::Array(own))) =
        (user.get("defaultTools"), project.get_mut("defaultTools"))
    else {
        return;
    };
    let is_change = |entry: &Value| entry.as_str().is_some_and(|entry| entry.starts_with(['+', '-']));
    if !own.is_empty() && own.iter().all(is_change) {
        own.splice(0..0, user.iter().cloned());
    }
}

/// The user's limits, lowered by those of the project.
fn merge_limits(mut user: Limits, project: Limits, project_file: &Path, found: &mut Vec<Diagnostic>) -> Limits {
    for name in user.lower(project) {
        let file = project_file.display();
        let message = format!("Ignored limits.{name} in {file}: a project can only lower the user's limit");
        found.push(Diagnostic::warning("settings_scope", project_file, message));
    }
    user
}

fn decode<T: Default + for<'de> Deserialize<'de>>(
    document: &Map<String, Value>,
    file: PathBuf,
    found: &mut Vec<Diagnostic>,
) -> T {
    T::deserialize(document).unwrap_or_else(|error| {
        let message = format!("Invalid settings file {}: {error}", file.display());
        found.push(Diagnostic::warning("settings_file", file, message));
        T::default()
    })
}

#[cfg(test)]
mod tests;
