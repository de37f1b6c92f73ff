//! Which files the summarised part of a conversation read and changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use pith_protocol::Message;
use serde_json::{Value, json};

/// Files by what happened to them, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileLists {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

impl FileLists {
    /// Starts from the lists an earlier compaction recorded in its `details`.
    pub fn from_details(details: Option<&Value>) -> Self {
        let list = |name: &str| {
            let values = details.and_then(|details| details.get(name)?.as_array());
            values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        FileLists { read: list("readFiles"), modified: list("modifiedFiles") }
    }

    /// Merges two sets of lists.
    pub fn and(mut self, other: Self) -> Self {
        self.read.extend(other.read);
        self.modified.extend(other.modified);
        self
    }

    /// Adds the files that the tool calls of the messages read or changed.
    pub fn add(&mut self, messages: &[Arc<Message>]) {
        for call in messages.iter().filter_map(|message| message.as_assistant()).flat_map(|answer| answer.tool_calls())
        {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else { continue };
            match call.name.as_str() {
                "read" => self.read.insert(path.to_owned()),
                "write" | "edit" => self.modified.insert(path.to_owned()),
                _ => continue,
            };
        }
    }

    /// The `fileOps` that extensions get.
    pub fn operations(&self) -> Value {
        json!({"read": self.read, "written": [], "edited": self.modified})
    }

    fn only_read(&self) -> Vec<&String> {
        self.read.difference(&self.modified).collect()
    }

    /// The `details` of the compaction entry.
    pub fn details(&self) -> Value {
        json!({"readFiles": self.only_read(), "modifiedFiles": self.modified})
    }

    /// The blocks appended to the text of a summary.
    pub fn blocks(&self) -> String {
        let block = |name: &str, files: Vec<&String>| {
            if files.is_empty() {
                return String::new();
            }
            let lines: Vec<&str> = files.into_iter().map(String::as_str).collect();
            format!("\n\n<{name}>\n{}\n</{name}>", lines.join("\n"))
        };
        block("read-files", self.only_read()) + &block("modified-files", self.modified.iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{AssistantMessage, Block, ToolCall};

    #[test]
    fn a_changed_file_counts_once() {
        let call = |name: &str, path: &str| {
            let arguments = [("path".to_owned(), Value::from(path))].into_iter().collect();
            Block::ToolCall(ToolCall { name: name.into(), arguments, ..Default::default() })
        };
        let content = vec![call("read", "b"), call("read", "a"), call("edit", "b"), call("bash", "c")];
        let message = Arc::new(Message::Assistant(AssistantMessage { content, ..Default::default() }));
        let mut lists = FileLists::from_details(Some(&json!({"readFiles":["z"],"modifiedFiles":["m"]})));
        lists.add(&[message]);
        assert_eq!(lists.details(), json!({"readFiles":["a","z"],"modifiedFiles":["b","m"]}));
        assert_eq!(
            lists.blocks(),
            "\n\n<read-files>\na\nz\n</read-files>\n\n<modified-files>\nb\nm\n</modified-files>"
        );
    }
}
