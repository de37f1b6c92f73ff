//! What a tool call is about, in a few words.

use pith_protocol::ToolCall;
use serde_json::{Map, Value};

use crate::words::excerpt;

/// The tools whose calls and results have a shape of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A command and what it printed.
    Shell,
    /// The content of a file is in the result.
    Read,
    /// The content of a file is in the call.
    Write,
    /// A change to a file.
    Edit,
    /// Lines of text about files.
    Listing,
    /// Anything else.
    Other,
}

impl Shape {
    pub fn of(tool_name: &str) -> Self {
        match tool_name {
            "bash" => Shape::Shell,
            "read" => Shape::Read,
            "write" => Shape::Write,
            "edit" => Shape::Edit,
            "grep" | "find" | "ls" => Shape::Listing,
            _ => Shape::Other,
        }
    }
}

/// Returns the file a call is about.
pub(crate) fn path(arguments: &Map<String, Value>) -> Option<&str> {
    text(arguments, &["path", "file_path", "filePath", "file"])
}

/// Returns the command a call runs.
pub(crate) fn command(arguments: &Map<String, Value>) -> Option<&str> {
    text(arguments, &["command", "cmd"])
}

/// Returns the argument that says most about a call, on one line.
pub(crate) fn gist(call: &ToolCall) -> String {
    let arguments = &call.arguments;
    let number = |name| arguments.get(name).and_then(Value::as_u64);
    let pattern = text(arguments, &["pattern"]);
    let gist = match (Shape::of(&call.name), pattern, path(arguments)) {
        (Shape::Listing, Some(pattern), Some(path)) => format!("{pattern} in {path}"),
        (Shape::Listing, Some(pattern), None) => pattern.to_owned(),
        (Shape::Read, _, Some(path)) => match (number("offset"), number("limit")) {
            (Some(from), Some(n)) => format!("{path}:{from}-{}", from.saturating_add(n).saturating_sub(1)),
            (Some(from), None) => format!("{path}:{from}"),
            (None, _) => path.to_owned(),
        },
        (_, _, Some(path)) => path.to_owned(),
        (_, _, None) => match command(arguments) {
            Some(command) => command.to_owned(),
            None => first_text(arguments),
        },
    };
    excerpt(&gist, 160)
}

fn text<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|&name| arguments.get(name)?.as_str())
}

fn first_text(arguments: &Map<String, Value>) -> String {
    arguments.values().find_map(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_gist_of_calls() {
        let check = |name: &str, arguments: Value, expected: &str| {
            let arguments = serde_json::from_value(arguments).unwrap();
            let call = ToolCall { name: name.to_owned(), arguments, ..ToolCall::default() };
            assert_eq!(gist(&call), expected);
        };
        check("bash", json!({"command": "cargo\n  test", "timeout": 3}), "cargo test");
        check("read", json!({"path": "a.rs", "offset": 10, "limit": 5}), "a.rs:10-14");
        check("read", json!({"path": "a.rs", "offset": 10}), "a.rs:10");
        check("edit", json!({"file_path": "a.rs", "edits": []}), "a.rs");
        check("grep", json!({"pattern": "fn .*", "path": "src"}), "fn .* in src");
        check("find", json!({"pattern": "*.rs"}), "*.rs");
        check("ls", json!({}), "");
        check("web", json!({"n": 1, "query": "what?"}), "what?");
        check("bash", json!({"command": ["not", "text"]}), "");
    }
}
