//! The `grep` tool.

use std::path::Path;
use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use pith_agent::ToolOutput;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::SearchTool;
use super::matches::{Binary, Matches, searcher};
use super::walk::{Glob, Ignoring, walk};
use crate::arguments::Arguments;
use crate::files::{open_admitted, open_regular};
use crate::paths::relative;
use crate::tool::{Outcome, check_aborted, spec};
use crate::workbench::Workbench;

const DEFAULT_LIMIT: usize = 100;
/// More lines around a match than any result could show.
const MAX_CONTEXT: usize = 10_000;

/// Searches the contents of files for the model.
pub fn tool(workbench: Arc<Workbench>) -> SearchTool {
    SearchTool {
        spec: spec("grep", DESCRIPTION, parameters()),
        snippet: "Search file contents for patterns (respects .gitignore)",
        workbench,
        search: grep,
    }
}

fn grep(workbench: &Workbench, arguments: &Arguments, cancel: &CancellationToken) -> Outcome {
    let limit = arguments.count("limit", 1)?.unwrap_or(DEFAULT_LIMIT);
    let context = arguments.count("context", 0)?.unwrap_or(0).min(MAX_CONTEXT);
    let matcher = matcher(arguments)?;
    let root = workbench.base.resolve(arguments.optional_text("path")?.unwrap_or("."));
    workbench.confinement.admit(&root, "access")?;
    let metadata = root.metadata().map_err(|_| format!("Path not found: {}", root.display()))?;
    let mut matches = Matches::new(limit, context, workbench.secrets.clone());
    if metadata.is_dir() {
        let glob = glob(arguments, &root, &workbench.base.cwd)?;
        search_directory(workbench, &root, glob, &matcher, context, &mut matches, cancel)?;
    } else {
        let (file, _) = open_regular(&root, &workbench.confinement)?;
        let name = root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        matches.search(&mut searcher(context, Binary::Search), &matcher, &name, file, cancel);
    }
    check_aborted(cancel)?;
    Ok(render(matches, limit))
}

fn search_directory(
    workbench: &Workbench,
    root: &Path,
    glob: Option<Arc<Glob>>,
    matcher: &RegexMatcher,
    context: usize,
    matches: &mut Matches,
    cancel: &CancellationToken,
) -> Result<(), String> {
    let mut searcher = searcher(context, Binary::Skip);
    for entry in walk(root, Ignoring::LikeGrep, glob.clone(), &workbench.confinement).flatten() {
        check_aborted(cancel)?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if !is_file || glob.as_ref().is_some_and(|glob| !glob.takes(entry.path())) {
            continue;
        }
        // A file that cannot be opened, or that leads outside by now, has no matches.
        let Ok(file) = open_admitted(entry.path(), &workbench.confinement) else { continue };
        matches.search(&mut searcher, matcher, &relative(entry.path(), root), file, cancel);
        if matches.has_more {
            break;
        }
    }
    Ok(())
}

/// Compiles the pattern as ripgrep does, with its error messages, which models know.
fn matcher(arguments: &Arguments) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.flag("ignoreCase"))
        .fixed_strings(arguments.flag("literal"))
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(arguments.text("pattern")?)
        .map_err(|error| format!("rg: {error}"))
}

fn glob(arguments: &Arguments, root: &Path, cwd: &Path) -> Result<Option<Arc<Glob>>, String> {
    let Some(glob) = arguments.optional_text("glob")? else { return Ok(None) };
    let bases = if root == cwd { vec![root] } else { vec![root, cwd] };
    Glob::new(glob, &bases).map(|glob| glob.map(Arc::new)).map_err(|error| format!("rg: {error}"))
}

fn render(matches: Matches, limit: usize) -> ToolOutput {
    let Matches { mut listing, has_more, cut_lines, .. } = matches;
    if listing.is_empty() {
        return ToolOutput::text("No matches found");
    }
    if has_more {
        let more = limit.saturating_mul(2);
        let notice = format!("{limit} matches limit reached. Use limit={more} for more, or refine pattern");
        listing.notice(notice, "matchLimitReached", limit);
    }
    let cut = "Some lines truncated to 500 chars. Use read tool to see full lines";
    listing.finish(cut_lines.then(|| (cut.to_owned(), "linesTruncated", json!(true))))
}

const DESCRIPTION: &str = "Search the contents of files. Returns matching lines with path and line number, in the \
    order of paths. Ignored files (.gitignore) are left out. At most 100 matches unless a limit is given, at most 50KB; \
    lines beyond 500 characters are cut.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "description": "Regular expression, or plain text with literal"},
            "path": {"type": "string", "description": "Directory or file to search (default: working directory)"},
            "glob": {"type": "string", "description": "Search only files that match, e.g. '*.ts'; '!' excludes"},
            "ignoreCase": {"type": "boolean", "description": "Upper and lower case are the same (default: false)"},
            "literal": {"type": "boolean", "description": "The pattern is plain text (default: false)"},
            "context": {"type": "number", "description": "Lines to show around each match (default: 0)"},
            "limit": {"type": "number", "description": "Most matches to return (default: 100)"},
        },
    })
}
