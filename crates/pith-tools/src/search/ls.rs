//! The `ls` tool.

use std::fs::{DirEntry, File};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_agent::ToolOutput;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::SearchTool;
use super::collate::compare;
use super::listing::Listing;
use crate::arguments::Arguments;
use crate::confine::real_path;
use crate::os_error;
use crate::tool::{Outcome, check_aborted, spec};
use crate::workbench::Workbench;

const DEFAULT_LIMIT: usize = 500;

/// Lists directories for the model.
pub fn tool(workbench: Arc<Workbench>) -> SearchTool {
    SearchTool { spec: spec("ls", DESCRIPTION, parameters()), snippet: "List a directory", workbench, search: ls }
}

fn ls(workbench: &Workbench, arguments: &Arguments, cancel: &CancellationToken) -> Outcome {
    let limit = arguments.count("limit", 1)?.unwrap_or(DEFAULT_LIMIT);
    let path = workbench.base.resolve(arguments.optional_text("path")?.unwrap_or("."));
    workbench.confinement.admit(&path, "access")?;
    let metadata = path.metadata().map_err(|_| format!("Path not found: {}", path.display()))?;
    if !metadata.is_dir() {
        return Err(format!("Not a directory: {}", path.display()));
    }
    let unreadable = |error| format!("Cannot read directory: {}", os_error::on_path(&error, "scandir", &path));
    let mut entries: Vec<(String, DirEntry)> = Vec::new();
    // Listed as it was checked, wherever its name leads by then.
    let opened = File::open(&path).map_err(unreadable)?;
    workbench.confinement.admit_open(&opened, &path, "scandir")?;
    let real = real_path(&path);
    for entry in std::fs::read_dir(by_descriptor(&opened, &path)).map_err(unreadable)? {
        check_aborted(cancel)?;
        let entry = entry.map_err(unreadable)?;
        if workbench.confinement.leaves_out(&real.join(entry.file_name())) {
            continue;
        }
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry));
    }
    entries.sort_by(|(one, _), (two, _)| compare(one, two));
    let mut listing = Listing::default();
    for (name, entry) in entries.iter().take(limit) {
        listing.push(&format!("{name}{}", suffix(entry)));
    }
    if listing.is_empty() {
        return Ok(ToolOutput::text("(empty directory)"));
    }
    if entries.len() > limit {
        let notice = format!("{limit} entries limit reached. Use limit={} for more", limit.saturating_mul(2));
        listing.notice(notice, "entryLimitReached", limit);
    }
    Ok(listing.finish(None))
}

/// A path of an open directory that no link can lead elsewhere.
#[cfg(target_os = "linux")]
fn by_descriptor(opened: &File, _path: &Path) -> PathBuf {
    format!("/proc/self/fd/{}", opened.as_raw_fd()).into()
}

#[cfg(not(target_os = "linux"))]
fn by_descriptor(_opened: &File, path: &Path) -> PathBuf {
    path.to_owned()
}

/// What follows the name: nothing for files and for entries that cannot be read.
fn suffix(entry: &DirEntry) -> String {
    let Ok(kind) = entry.file_type() else { return String::new() };
    let target = || std::fs::metadata(entry.path());
    match kind {
        kind if kind.is_dir() => "/".to_owned(),
        kind if kind.is_symlink() => match target() {
            Ok(target) if target.is_dir() => "/".to_owned(),
            Ok(_) => String::new(),
            Err(_) => match std::fs::read_link(entry.path()) {
                Ok(target) => format!(" -> {} (broken)", target.display()),
                Err(_) => String::new(),
            },
        },
        _ => String::new(),
    }
}

const DESCRIPTION: &str = "List a directory: names in order, dotfiles included, directories with a slash at the end. \
    At most 500 entries unless a limit is given, at most 50KB.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Directory to list (default: working directory)"},
            "limit": {"type": "number", "description": "Most entries to return (default: 500)"},
        },
    })
}
