//! Parses the values of flags.

use std::time::Duration;

use pith_protocol::StreamUpdates;

use super::{ExtensionErrors, Mode};
use crate::dialect::{self, Dialect};

pub(super) fn mode(value: &str) -> Result<Mode, String> {
    match value {
        "text" => Ok(Mode::Text),
        "json" => Ok(Mode::Json),
        "rpc" => Ok(Mode::Rpc),
        other => Err(format!("Invalid mode \"{other}\". Valid values: text, json, rpc")),
    }
}

/// Parses the dialect of a flag or variable.
pub fn dialect_named(value: &str) -> Result<&'static Dialect, String> {
    Dialect::named(value).ok_or_else(|| {
        format!("Invalid dialect \"{value}\". Valid values: {}, {}", dialect::PI.name, dialect::XCSH.name)
    })
}

/// Parses the stream form of a flag or variable.
pub fn stream_updates(value: &str) -> Result<StreamUpdates, String> {
    let found = StreamUpdates::WORDS.iter().find(|(word, _)| *word == value);
    found.map(|(_, mode)| *mode).ok_or_else(|| format!("Invalid stream updates \"{value}\". Valid values: full, delta"))
}

pub(super) fn extension_errors(value: &str) -> Result<ExtensionErrors, String> {
    match value {
        "warn" => Ok(ExtensionErrors::Warn),
        "fatal" => Ok(ExtensionErrors::Fatal),
        other => Err(format!("Invalid --extension-errors \"{other}\". Valid values: warn, fatal")),
    }
}

pub(super) fn max_line_bytes(value: &str) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|limit| *limit > 0);
    parsed.ok_or_else(|| format!("Invalid --max-line-bytes \"{value}\": expected a positive number"))
}

pub(super) fn host_tool_timeout(value: &str) -> Result<Duration, String> {
    let parsed = value.parse().ok().filter(|limit| *limit > 0).map(Duration::from_millis);
    parsed.ok_or_else(|| format!("Invalid --host-tool-timeout-ms \"{value}\": expected a positive number"))
}

/// Parses the display name of a session.
pub(super) fn name(value: &str) -> Result<String, String> {
    let name = value.trim();
    if name.is_empty() { Err("--name requires a non-empty value".to_owned()) } else { Ok(name.to_owned()) }
}

/// Splits a comma-separated list.
pub(super) fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
