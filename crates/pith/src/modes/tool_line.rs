//! Describes a tool call in one line.

use serde_json::{Map, Value};

/// Longer lines are cut; the session file has the rest.
const MAX_CHARS: usize = 100;

/// Describes what a call is about to do.
pub fn describe(tool: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let subject = match tool {
        "bash" => return cut(&format!("$ {}", text("command").unwrap_or("…"))),
        "grep" | "find" => {
            let place = text("path").map_or_else(String::new, |path| format!(" in {path}"));
            text("pattern").map(|pattern| format!("{pattern}{place}"))
        }
        _ => text("path").or_else(|| arguments.values().find_map(Value::as_str)).map(str::to_owned),
    };
    match subject {
        Some(subject) => cut(&format!("{tool} {subject}")),
        None => cut(tool),
    }
}

/// The first non-empty line of an error.
pub fn first_line(text: &str) -> String {
    cut(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}

/// Returns one line without tabs, at most [`MAX_CHARS`] long.
pub fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let is_whole = line.len() == text.trim_end().len() && line.chars().count() <= MAX_CHARS;
    let mut shown: String = line.chars().take(MAX_CHARS).map(|char| if char == '\t' { ' ' } else { char }).collect();
    if !is_whole {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_in_a_line() {
        let check = |tool: &str, arguments: Value, expected: &str| {
            let Value::Object(arguments) = arguments else { unreachable!("an object") };
            assert_eq!(describe(tool, &arguments), expected);
        };
        check("bash", serde_json::json!({"command": "cargo test\nls"}), "$ cargo test…");
        check("read", serde_json::json!({"path": "src/main.rs", "offset": 3}), "read src/main.rs");
        check("grep", serde_json::json!({"pattern": "fn", "path": "src"}), "grep fn in src");
        check("find", serde_json::json!({"pattern": "*.rs"}), "find *.rs");
        check("weather", serde_json::json!({"days": 2, "city": "Oslo"}), "weather Oslo");
        check("noop", serde_json::json!({}), "noop");
        check("bash", serde_json::json!({"command": "a\tb\u{1b}[2J"}), "$ a b\u{1b}[2J");
        assert_eq!(cut(&"x".repeat(200)).chars().count(), MAX_CHARS + 1);
        assert_eq!(first_line("\n  \n boom \nmore"), "boom");
    }
}
