//! Changes of files, as editors show them.

use std::path::Path;

use agent_client_protocol_schema::v1::{Diff, ToolCallContent};
use serde_json::{Map, Value};

/// The most of a hunk that is shown.
const MAX_HUNK: usize = 64 << 10;

/// A piece of a file before and after.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Hunk {
    /// The first line that has changed, in the file as it is.
    pub line: u32,
    old: String,
    new: String,
}

/// Reads the hunks of a unified diff.
pub(crate) fn hunks(patch: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut last, mut is_changed) = (' ', false);
    for line in patch.split_inclusive('\n') {
        if let Some(header) = line.strip_prefix("@@ ") {
            let after = header.split('+').nth(1).unwrap_or_default();
            let start = after.split([',', ' ']).next().unwrap_or_default();
            // A file that has become empty has no line, but editors count from 1.
            hunks.push(Hunk { line: start.parse().unwrap_or(1).max(1), ..Hunk::default() });
            is_changed = false;
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let Some(sign) = line.chars().next() else { continue };
        let text = &line[sign.len_utf8()..];
        match sign {
            ' ' => {
                hunk.line += u32::from(!is_changed);
                hunk.old.push_str(text);
                hunk.new.push_str(text);
            }
            '-' => {
                is_changed = true;
                hunk.old.push_str(text);
            }
            '+' => {
                is_changed = true;
                hunk.new.push_str(text);
            }
            // "\ No newline at end of file" is about the line before.
            '\\' => {
                if last != '+' {
                    hunk.old.pop();
                }
                if last != '-' {
                    hunk.new.pop();
                }
            }
            // Blank lines between files.
            _ => {}
        }
        last = sign;
    }
    hunks
}

/// The hunks as diffs of a file.
pub(crate) fn contents(path: &Path, hunks: &[Hunk]) -> Vec<ToolCallContent> {
    hunks.iter().flat_map(|hunk| change(path, Some(&hunk.old), &hunk.new)).collect()
}

/// What the arguments of `edit` and `write` say will change.
pub(crate) fn announced(tool: &str, path: &Path, arguments: &Map<String, Value>) -> Vec<ToolCallContent> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let arguments = Value::Object(arguments.clone());
    match tool {
        "write" => text(&arguments, "content").map_or(Vec::new(), |content| change(path, None, &content)),
        "edit" => {
            let pairs = match arguments.get("edits").and_then(Value::as_array) {
                Some(edits) => edits.clone(),
                None => vec![arguments],
            };
            let both = |edit: &Value| Some((text(edit, "oldText")?, text(edit, "newText")?));
            pairs.iter().filter_map(both).flat_map(|(old, new)| change(path, Some(&old), &new)).collect()
        }
        _ => Vec::new(),
    }
}

/// One change: a diff, and a line with the sizes if it is cut.
pub(crate) fn change(path: &Path, old: Option<&str>, new: &str) -> Vec<ToolCallContent> {
    let head = |text: &str| text[..text.floor_char_boundary(MAX_HUNK)].to_owned();
    let diff = Diff::new(path, head(new)).old_text(old.map(head));
    let mut contents = vec![ToolCallContent::Diff(diff)];
    let (before, after) = (old.map_or(0, str::len), new.len());
    if before.max(after) > MAX_HUNK {
        contents
            .push(ToolCallContent::from(format!("The change is larger than shown: {before} bytes become {after}.")));
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_is_read_hunk_by_hunk() {
        let patch = "--- a\n+++ b\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -10 +10,2 @@\n-x\n+y\n+z\n\\ No newline at end of file\n";
        let found = hunks(patch);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Hunk { line: 2, old: "one\ntwo\nthree\n".into(), new: "one\nTWO\nthree\n".into() });
        assert_eq!(found[1], Hunk { line: 10, old: "x\n".into(), new: "y\nz".into() });
        let both = hunks("@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n");
        assert_eq!(both, [Hunk { line: 1, old: "a\nc".into(), new: "b\nc".into() }]);
        assert!(hunks("nonsense").is_empty());
    }

    #[test]
    fn a_large_change_is_cut_and_says_so() {
        let arguments = serde_json::json!({"content": "é".repeat(MAX_HUNK)});
        let contents = announced("write", Path::new("/a"), arguments.as_object().expect("an object"));
        assert_eq!(contents.len(), 2);
    }
}
