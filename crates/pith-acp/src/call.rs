//! How a tool call looks in an editor: kind, title, locations, and its result.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, ImageContent, TextContent, ToolCallContent, ToolCallLocation, ToolKind,
};
use pith_protocol::Block;
use serde_json::{Map, Value, json};

use crate::diff;
use crate::looks::Looks;
use crate::place::Place;

/// How many characters of a command its title shows.
const MAX_TITLE: usize = 200;

/// What `bash` adds to the output of a command that failed.
const EXIT_PREFIX: &str = "Command exited with code ";

/// What is shown of a call once its arguments are known.
pub(crate) struct Shown {
    pub title: String,
    pub kind: ToolKind,
    pub locations: Vec<ToolCallLocation>,
    /// The change that the arguments describe.
    pub content: Vec<ToolCallContent>,
}

/// What is shown of a result.
pub(crate) struct Finished {
    pub content: Vec<ToolCallContent>,
    pub raw_output: Option<Value>,
    /// Where files have changed, if that is known only now.
    pub locations: Option<Vec<ToolCallLocation>>,
}

/// The category of a tool.
pub(crate) fn kind(tool: &str, looks: &Looks) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "edit" | "write" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "grep" | "find" | "ls" => ToolKind::Search,
        "todo_write" => ToolKind::Think,
        _ => looks.of(tool).kind,
    }
}

/// Whether a tool is one of pith's own, which say in their arguments what they touch.
fn is_own(tool: &str) -> bool {
    ["read", "edit", "write", "bash", "grep", "find", "ls", "todo_write"].contains(&tool)
}

/// Describes a call by its arguments.
pub(crate) fn shown(tool: &str, arguments: &Map<String, Value>, place: &dyn Place, looks: &Looks) -> Shown {
    let path = path_of(arguments, place);
    let locations = match (tool, &path) {
        ("read", Some(path)) => {
            let line = arguments.get("offset").and_then(Value::as_f64).map(|line| line.max(1.0) as u32);
            vec![ToolCallLocation::new(path).line(line)]
        }
        ("edit" | "write", Some(path)) => vec![ToolCallLocation::new(path)],
        _ => Vec::new(),
    };
    let content = path.as_deref().map_or_else(Vec::new, |path| diff::announced(tool, path, arguments));
    Shown { title: title(tool, arguments, looks), kind: kind(tool, looks), locations, content }
}

/// Describes the result of a call.
pub(crate) fn finished(
    tool: &str,
    arguments: &Map<String, Value>,
    blocks: &[Block],
    details: Option<&Value>,
    is_error: bool,
    place: &dyn Place,
) -> Finished {
    let path = path_of(arguments, place);
    let mut locations = None;
    let content = match (tool, &path) {
        ("edit", Some(path)) if !is_error => {
            let patch = details.and_then(|details| details.get("patch")).and_then(Value::as_str).unwrap_or_default();
            let hunks = diff::hunks(patch);
            if !hunks.is_empty() {
                let places = hunks.iter().map(|hunk| ToolCallLocation::new(path).line(hunk.line));
                locations = Some(places.collect());
            }
            diff::contents(path, &hunks)
        }
        ("write", Some(path)) if !is_error => diff::announced(tool, path, arguments),
        ("bash", _) => fenced(&text_of(blocks)),
        _ => contents(blocks),
    };
    if locations.is_none() && !is_own(tool) {
        let named = details.and_then(|details| details.get("path")).and_then(Value::as_str);
        locations = named.map(|path| vec![ToolCallLocation::new(place.cwd().join(path))]);
    }
    let raw_output = if tool == "bash" { Some(exit_of(blocks, details, is_error)) } else { details.cloned() };
    Finished { content, raw_output, locations }
}

/// The content of a call that will not end any more.
pub(crate) fn aborted() -> Vec<ToolCallContent> {
    vec![ToolCallContent::from("Aborted".to_owned())]
}

/// Text and images as content; commands get [`fenced`].
pub(crate) fn contents(blocks: &[Block]) -> Vec<ToolCallContent> {
    blocks.iter().filter_map(content_block).map(ToolCallContent::from).collect()
}

/// A block of a message for an editor; `None` for what editors do not show.
pub(crate) fn content_block(block: &Block) -> Option<ContentBlock> {
    match block {
        Block::Text(text) => Some(ContentBlock::Text(TextContent::new(text.text.clone()))),
        Block::Image(image) => {
            Some(ContentBlock::Image(ImageContent::new(image.data.clone(), image.mime_type.clone())))
        }
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

/// Output of a command as a code block, whatever is in it.
pub(crate) fn fenced(text: &str) -> Vec<ToolCallContent> {
    if text.is_empty() {
        return Vec::new();
    }
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    vec![ToolCallContent::from(format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n')))]
}

pub(crate) fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

/// How a command ended, as far as its result tells.
fn exit_of(blocks: &[Block], details: Option<&Value>, is_error: bool) -> Value {
    let full = details.and_then(|details| details.get("fullOutputPath")).filter(|path| path.is_string());
    let is_truncated = details.is_some_and(|details| details.get("truncation").is_some());
    let mut raw = json!({"exitCode": exit_code(&text_of(blocks), is_error), "truncated": is_truncated});
    if let Some(path) = full {
        raw["fullOutputPath"] = path.clone();
    }
    raw
}

/// The terminal of the client in which a command runs.
pub(crate) fn terminal_of(details: Option<&Value>) -> Option<&str> {
    details?.get("terminalId")?.as_str()
}

/// The signal that has ended a command.
pub(crate) fn signal_of(details: Option<&Value>) -> Option<&str> {
    details?.get("signal")?.as_str()
}

/// The exit code; `None` if the command was ended otherwise.
pub(crate) fn exit_code(text: &str, is_error: bool) -> Option<i32> {
    if !is_error {
        return Some(0);
    }
    text.lines().next_back()?.strip_prefix(EXIT_PREFIX)?.parse().ok()
}

/// The file that a call names.
pub(crate) fn path_of(arguments: &Map<String, Value>, place: &dyn Place) -> Option<PathBuf> {
    let path = arguments.get("path").and_then(Value::as_str).filter(|path| !path.is_empty())?;
    Some(place.resolve(path))
}

fn title(tool: &str, arguments: &Map<String, Value>, looks: &Looks) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = text("path");
    let within = path.map_or(String::new(), |path| format!(" in {path}"));
    match (tool, path) {
        ("read", Some(path)) => format!("Read {path}{}", range(arguments)),
        ("edit", Some(path)) => format!("Edit {path}"),
        ("write", Some(path)) => format!("Write {path}"),
        ("bash", _) => text("command").map_or_else(|| tool.to_owned(), first_line),
        ("grep" | "find", _) => {
            text("pattern").map_or_else(|| tool.to_owned(), |what| format!("Search \"{what}\"{within}"))
        }
        ("ls", _) => format!("List {}", path.unwrap_or(".")),
        ("todo_write", _) => "Update plan".to_owned(),
        _ => looks.of(tool).title,
    }
}

fn first_line(command: &str) -> String {
    let line = command.trim_start().lines().next().unwrap_or_default();
    line.chars().take(MAX_TITLE).collect()
}

/// ` (5–80)`, or nothing for a whole file.
fn range(arguments: &Map<String, Value>) -> String {
    let number = |key: &str| arguments.get(key).and_then(Value::as_f64).map(|number| number as i64);
    match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (Some(first), None) => format!(" (from {first})"),
        (first, Some(count)) => {
            let first = first.unwrap_or(1);
            format!(" ({first}–{})", first + count - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_say_what_is_done() {
        let check = |tool: &str, arguments: Value, expected: &str| {
            let arguments = arguments.as_object().expect("an object");
            assert_eq!(title(tool, arguments, &Looks::default()), expected);
        };
        check("read", json!({"path": "src/a.rs", "offset": 5, "limit": 76}), "Read src/a.rs (5–80)");
        check("read", json!({"path": "a"}), "Read a");
        check("edit", json!({"path": "a"}), "Edit a");
        check("bash", json!({"command": "\nmake\nmake test"}), "make");
        check("bash", json!({}), "bash");
        check("grep", json!({"pattern": "foo", "path": "src"}), "Search \"foo\" in src");
        check("my_tool", json!({"path": "x"}), "my_tool");
    }

    #[test]
    fn output_cannot_leave_its_fence() {
        let [ToolCallContent::Content(content)] = &fenced("a\n```\nb\n")[..] else { panic!("one block") };
        assert_eq!(content.content, ContentBlock::Text(TextContent::new("````\na\n```\nb\n````")));
    }

    #[test]
    fn exit_codes_are_found() {
        assert_eq!(exit_code("x\n\nCommand exited with code 3", true), Some(3));
        assert_eq!(exit_code("Command aborted", true), None);
        assert_eq!(exit_code("", false), Some(0));
    }
}
