//! The default system prompt. Byte-identical as long as its inputs are, so
//! that providers can keep it cached.

use std::path::Path;
use std::sync::Arc;

use pith_agent::{Tool, Toolset};

const PREAMBLE: &str = "You are an expert coding assistant working inside pith, a coding agent. You help by reading files, \
                        running commands, and editing and writing files.";
const SHELL_SEARCH: &str = "Use bash for listing and searching files (ls, rg, find)";
const ALWAYS: [&str; 2] = ["Be concise", "Show file paths clearly when you work with files"];

/// Assembles the prompt for the active tools.
pub(crate) fn assemble(tools: &Toolset, cwd: &Path) -> Arc<str> {
    let mut prompt = PREAMBLE.to_owned();
    section(&mut prompt, "tools", &tool_list(tools));
    section(&mut prompt, "rules", &rules(tools));
    section(&mut prompt, "cwd", &cwd.to_string_lossy().replace('\\', "/"));
    prompt.into()
}

fn section(prompt: &mut String, name: &str, body: &str) {
    prompt.push_str(&format!("\n\n<{name}>\n{body}\n</{name}>"));
}

fn tool_list(tools: &Toolset) -> String {
    let mut lines: Vec<String> =
        tools.iter().filter_map(|tool| Some(format!("- {}: {}", tool.spec().name, tool.snippet()?))).collect();
    if lines.is_empty() {
        lines.push("(none)".to_owned());
    }
    lines.push("Other tools may be available; their descriptions come with them.".to_owned());
    lines.join("\n")
}

fn rules(tools: &Toolset) -> String {
    let has = |name: &str| tools.get(name).is_some();
    let mut rules: Vec<&str> = Vec::new();
    if has("bash") && !["grep", "find", "ls"].into_iter().any(has) {
        rules.push(SHELL_SEARCH);
    }
    for rule in tools.iter().flat_map(|tool| Tool::rules(&**tool)).chain(&ALWAYS) {
        if !rules.contains(rule) {
            rules.push(rule);
        }
    }
    rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}
