//! Parses the values of flags.

use std::time::Duration;

use pith_config::settings::Limits;
use pith_protocol::StreamUpdates;
use pith_protocol::permissions::{ApprovalMode, PermissionMode};
use pith_session::ToolFlags;

use super::{ExtensionErrors, Mode};
use crate::dialect::{self, Dialect};

pub(super) fn mode(value: &str) -> Result<Mode, String> {
    match value {
        "text" => Ok(Mode::Text),
        "json" => Ok(Mode::Json),
        "rpc" => Ok(Mode::Rpc),
        "acp" => Ok(Mode::Acp),
        other => Err(format!("Invalid mode \"{other}\". Valid values: text, json, rpc, acp")),
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

pub(super) fn permission_mode(value: &str) -> Result<PermissionMode, String> {
    PermissionMode::parse(value).ok_or_else(|| {
        let words: Vec<&str> = PermissionMode::WORDS.iter().map(|(word, _)| *word).collect();
        format!("Invalid permission mode \"{value}\". Valid values: {}", words.join(", "))
    })
}

pub(super) fn approval_mode(value: &str) -> Result<ApprovalMode, String> {
    ApprovalMode::parse(value).ok_or_else(|| {
        let words: Vec<&str> = ApprovalMode::WORDS.iter().map(|(word, _)| *word).collect();
        format!("Invalid approval mode \"{value}\". Valid values: {}", words.join(", "))
    })
}

/// Parses a list of rules: commas and spaces separate them, except between parentheses.
pub(super) fn rules(value: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let separated = value.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    separated.filter(|rule| !rule.is_empty()).map(str::to_owned).collect()
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

/// Parses `1.5h`, `30m`, `90s`, `500ms`, or seconds; the error names the flag.
pub fn duration(flag: &str, text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let (number, seconds) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .expect("any text ends in nothing");
    let number = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let parsed = number.and_then(|number| number.parse::<f64>().ok());
    let parsed = parsed.and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    parsed.ok_or_else(|| format!("Invalid {flag} \"{text}\": expected a duration such as 90s, 30m or 2h"))
}

pub(super) fn timeout(value: &str) -> Result<Duration, String> {
    let parsed = duration("--timeout", value)?;
    if parsed.is_zero() {
        Err(format!("Invalid --timeout \"{value}\": expected a duration above 0, such as 90s"))
    } else {
        Ok(parsed)
    }
}

/// Parses a number of turns or tries.
pub(super) fn count(flag: &str, value: &str) -> Result<u32, String> {
    let parsed = value.parse().ok().filter(|count| *count > 0);
    parsed.ok_or_else(|| format!("Invalid {flag} \"{value}\": expected a whole number above 0"))
}

/// Parses an amount of US dollars.
pub(super) fn dollars(value: &str) -> Result<f64, String> {
    let parsed = value.trim_start_matches('$').parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    parsed.ok_or_else(|| format!("Invalid --max-cost \"{value}\": expected US dollars above 0, such as 0.50"))
}

/// Parses a limit of the session.
pub(super) fn limit(value: &str) -> Result<Limits, String> {
    Limits::read_pair(value).map_err(|problem| format!("Invalid --limit \"{value}\": {problem}"))
}

/// Parses the display name of a session.
pub(super) fn name(value: &str) -> Result<String, String> {
    let name = value.trim();
    if name.is_empty() { Err("--name requires a non-empty value".to_owned()) } else { Ok(name.to_owned()) }
}

/// Splits a comma-separated list.
/// Parses the list of `--tools`.
pub(super) fn tools(list: &str) -> Result<Vec<String>, String> {
    let names = names(list);
    match ToolFlags::problem(&names) {
        Some(problem) => Err(format!("--tools: {problem}")),
        None => Ok(names),
    }
}

pub(super) fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
