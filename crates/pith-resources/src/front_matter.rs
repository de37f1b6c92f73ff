//! The YAML head of a Markdown file, read without reading the file.

use std::io::{self, Read};
use std::path::Path;

use pith_config::document::{self, YamlBooleans};
use serde_json::{Map, Value};

use crate::notes::Notes;
use crate::text::{self, Text};

/// Enough for the head of nearly every file.
const FIRST_READ: usize = 4 * 1024;
/// A head beyond this is not read.
const LIMIT: usize = 64 * 1024;
/// What of the body is read along, for its first line.
const BODY_SAMPLE: usize = 512;
const FENCE: &str = "---";

/// The fields of a file and a glimpse of its body.
#[derive(Debug)]
pub(crate) struct Head {
    pub fields: Map<String, Value>,
    /// The first line of the body that is not blank.
    pub first_line: String,
    pub is_utf8: bool,
}

/// Why a head cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("cannot read file: {0}")]
    Read(io::Error),
    #[error("invalid front matter: {0}")]
    Yaml(String),
    #[error("front matter is not a list of fields")]
    NotFields,
    #[error("front matter is longer than {LIMIT} bytes")]
    TooLong,
}

/// Reads the head of a regular file.
pub(crate) fn read_head(path: &Path, notes: &mut Notes) -> Result<Head, HeadError> {
    let Text { text, is_cut, is_utf8 } = read_beginning(path, notes).map_err(HeadError::Read)?;
    let (fields, body) = match split(&text) {
        Some((yaml, body)) => match fields(yaml) {
            Ok(fields) => (fields, body),
            // Some other YAML between two lines; what counts is below it.
            Err(HeadError::NotFields) => (Map::new(), body),
            Err(error) => return Err(error),
        },
        None if is_cut && text.starts_with(FENCE) => return Err(HeadError::TooLong),
        None => (Map::new(), &*text),
    };
    let first_line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    Ok(Head { fields, first_line, is_utf8 })
}

/// Splits a text with plain line ends into its YAML and its trimmed body. `None` if it has no front matter.
/// The line above the YAML may be longer than it has to be.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(FENCE)?.trim_start_matches('-');
    let end = rest.find("\n---")?;
    Some((&rest[..end], rest[end + "\n---".len()..].trim()))
}

/// Returns the body of a whole text: trimmed if it had front matter, else as it is.
pub(crate) fn body(text: &str) -> &str {
    split(text).map_or(text, |(_, body)| body)
}

/// Returns a field if it is a text.
pub(crate) fn only_text<'f>(fields: &'f Map<String, Value>, name: &str) -> Option<&'f str> {
    fields.get(name)?.as_str()
}

/// Returns a field as text. Numbers and booleans count as text.
pub(crate) fn text_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads until the front matter has ended and the body begun, or the limit is reached.
fn read_beginning(path: &Path, notes: &mut Notes) -> io::Result<Text> {
    let mut file = notes.followed.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(text::not_a_file());
    }
    notes.saw(path, &metadata);
    let mut bytes = Vec::with_capacity(FIRST_READ);
    let mut goal = FIRST_READ;
    loop {
        let wanted = goal - bytes.len();
        let is_end = file.by_ref().take(wanted as u64).read_to_end(&mut bytes)? < wanted;
        if is_end || bytes.len() >= LIMIT || has_whole_head(&bytes) {
            let is_cut = !is_end && metadata.len() > bytes.len() as u64;
            let mut text = text::decode(bytes, is_cut);
            text.text = text::with_plain_line_ends(text.text);
            return Ok(text);
        }
        goal = (goal * 4).min(LIMIT);
    }
}

fn has_whole_head(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let Some(rest) = rest.strip_prefix(FENCE.as_bytes()) else { return true };
    // A lone carriage return ends a line, too.
    let end = rest.windows(4).position(|window| matches!(window, [b'\n' | b'\r', b'-', b'-', b'-']));
    end.is_some_and(|end| rest.len() - end > BODY_SAMPLE)
}

/// Returns the fields of a head.
pub(crate) fn fields(yaml: &str) -> Result<Map<String, Value>, HeadError> {
    let value = document::parse_yaml(yaml, YamlBooleans::Strict).map_err(HeadError::Yaml)?;
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(HeadError::NotFields),
    }
}

#[cfg(test)]
#[path = "front_matter/tests.rs"]
mod tests;
