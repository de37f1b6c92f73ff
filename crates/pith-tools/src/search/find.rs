//! The `find` tool.

use std::path::Path;
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use ignore::DirEntry;
use pith_agent::ToolOutput;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::SearchTool;
use super::listing::Listing;
use super::walk::{Ignoring, from_here, walk};
use crate::arguments::Arguments;
use crate::paths::relative;
use crate::tool::{Outcome, check_aborted, spec};
use crate::workbench::Workbench;

const DEFAULT_LIMIT: usize = 1000;

/// Finds files by name for the model.
pub fn tool(workbench: Arc<Workbench>) -> SearchTool {
    SearchTool {
        spec: spec("find", DESCRIPTION, parameters()),
        snippet: "Find files by glob pattern (respects .gitignore)",
        workbench,
        search: find,
    }
}

fn find(workbench: &Workbench, arguments: &Arguments, cancel: &CancellationToken) -> Outcome {
    let limit = arguments.count("limit", 1)?.unwrap_or(DEFAULT_LIMIT);
    let pattern = Pattern::new(arguments.text("pattern")?)?;
    let root = workbench.base.resolve(arguments.optional_text("path")?.unwrap_or("."));
    workbench.confinement.admit(&root, "access")?;
    if !root.is_dir() {
        // fd's message, which models know.
        let root = root.display();
        return Err(format!(
            "[fd error]: Search path '{root}' is not a directory.\n[fd error]: No valid search paths given."
        ));
    }
    let mut listing = Listing::default();
    let mut left = limit;
    for entry in walk(&root, Ignoring::LikeFind, None, &workbench.confinement).flatten() {
        check_aborted(cancel)?;
        if entry.depth() == 0 || !pattern.matches(&entry) {
            continue;
        }
        if left == 0 {
            let more = limit.saturating_mul(2);
            let notice = format!("{limit} results limit reached. Use limit={more} for more, or refine pattern");
            listing.notice(notice, "resultLimitReached", limit);
            break;
        }
        left -= 1;
        let suffix = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        listing.push(&format!("{}{suffix}", relative(entry.path(), &root)));
    }
    if listing.is_empty() {
        return Ok(ToolOutput::text("No files found matching pattern"));
    }
    Ok(listing.finish(None))
}

/// A glob for names, or for whole paths if it contains a slash.
struct Pattern {
    glob: GlobMatcher,
    whole_path: bool,
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, String> {
        // An empty pattern matches everything, as in fd.
        let pattern = Some(from_here(pattern)).filter(|pattern| !pattern.is_empty()).unwrap_or("*");
        let whole_path = pattern.contains('/');
        let anchored = !whole_path || pattern.starts_with('/') || pattern.starts_with("**/");
        let glob = if anchored { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&glob)
            .literal_separator(true)
            // A pattern in lower case ignores case.
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| format!("[fd error]: {error}"))?;
        Ok(Pattern { glob: glob.compile_matcher(), whole_path })
    }

    fn matches(&self, entry: &DirEntry) -> bool {
        self.glob.is_match(if self.whole_path { entry.path() } else { Path::new(entry.file_name()) })
    }
}

const DESCRIPTION: &str = "Find files and directories by glob pattern. Returns paths relative to the searched \
    directory, in order. Ignored files (.gitignore) are left out. At most 1000 results unless a limit is given, at \
    most 50KB.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "description": "Glob for names, or with a slash for paths: *.ts, src/**/*.md"},
            "path": {"type": "string", "description": "Directory to search (default: working directory)"},
            "limit": {"type": "number", "description": "Most results to return (default: 1000)"},
        },
    })
}
