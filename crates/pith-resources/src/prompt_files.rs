//! Texts that replace or extend the built-in system prompt: `SYSTEM.md`,
//! `APPEND_SYSTEM.md` and the flags that beat them.

use std::io;
use std::path::Path;

use pith_config::Diagnostic;

use crate::notes::Notes;
use crate::options::{PromptText, ResourceOptions};
use crate::text;

/// A prompt beyond this size is a mistake.
const LIMIT: usize = 512 * 1024;

/// Returns the prompt that replaces the built-in one. An empty `--system-prompt` asks for the built-in one.
pub(crate) fn custom(options: &ResourceOptions, notes: &mut Notes) -> Option<String> {
    let text = match &options.system_prompt {
        Some(value) => text_of(value, options, notes),
        None => first_file("SYSTEM.md", options, notes),
    };
    text.filter(|text| !text.is_empty())
}

/// Returns texts added to whichever prompt is used.
pub(crate) fn appended(options: &ResourceOptions, notes: &mut Notes) -> Vec<String> {
    let values = &options.append_system_prompt;
    let has_flag = values.iter().any(|value| matches!(value, PromptText::TextOrFile(_)));
    let file = if has_flag { None } else { first_file("APPEND_SYSTEM.md", options, notes) };
    let given = values.iter().filter_map(|value| text_of(value, options, notes));
    file.into_iter().chain(given).filter(|text| !text.is_empty()).collect()
}

fn text_of(value: &PromptText, options: &ResourceOptions, notes: &mut Notes) -> Option<String> {
    match value {
        PromptText::TextOrFile(value) => text_or_file(value, options, notes),
        PromptText::Literal(text) => Some(text.trim_end().to_owned()),
    }
}

/// Returns the file of a trusted project, else the user's.
fn first_file(name: &str, options: &ResourceOptions, notes: &mut Notes) -> Option<String> {
    let project = options.trusted.then(|| options.project_dir());
    let directories = project.iter().map(|directory| &**directory).chain([&*options.agent_dir]);
    for path in directories.map(|directory| directory.join(name)) {
        match notes.look(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                notes.diagnostics.push(unreadable(&path, &error));
                continue;
            }
            _ => continue,
        }
        match read(&path, notes) {
            Ok(text) => return Some(text),
            Err(error) => notes.diagnostics.push(unreadable(&path, &error)),
        }
    }
    None
}

/// Returns the content of the file a flag names, else the flag's text itself.
fn text_or_file(value: &str, options: &ResourceOptions, notes: &mut Notes) -> Option<String> {
    let path = pith_config::resolve(value, &options.cwd, options.home.as_deref());
    // A long text is no possible name, and a word may happen to name a directory: these are texts.
    let is_name = !value.trim().is_empty() && notes.look(&path).is_ok_and(|metadata| !metadata.is_dir());
    if !is_name {
        return Some(value.trim_end().to_owned());
    }
    match read(&path, notes) {
        Ok(text) => Some(text),
        Err(error) => {
            let message = format!("cannot read prompt file: {error}");
            notes.diagnostics.push(Diagnostic::error("prompt_file_unreadable", &path, message));
            None
        }
    }
}

fn read(path: &Path, notes: &mut Notes) -> io::Result<String> {
    let read = text::read(path, LIMIT, &notes.followed)?;
    if !read.is_utf8 {
        let message = "not UTF-8 text; the bytes in question were replaced";
        notes.diagnostics.push(Diagnostic::warning("prompt_file_not_utf8", path, message));
    }
    let mut text = read.text;
    text.truncate(text.trim_end().len());
    if read.is_cut {
        text.push_str(&format!("\n[cut: only the first {LIMIT} bytes of this file are shown]"));
        let message = format!("prompt file is too long: only the first {LIMIT} bytes are used");
        notes.diagnostics.push(Diagnostic::warning("prompt_file_cut", path, message));
    }
    Ok(text)
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::warning("prompt_file_unreadable", path, format!("cannot read prompt file: {error}"))
}
