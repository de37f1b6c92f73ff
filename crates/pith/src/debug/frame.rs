//! A line of the protocol with lengths and hashes in the place of texts. Knows both protocols by the names of their
//! members only: what it does not know is a text.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Members that hold one of a few words, or an id. Everything else that is a string is a text.
const WORDS: [&str; 44] = [
    "api",
    "behavior",
    "by",
    "code",
    "customType",
    "decision",
    "disposition",
    "entryId",
    "event",
    "id",
    "jsonrpc",
    "kind",
    "level",
    "limit",
    "method",
    "mode",
    "model",
    "modelId",
    "notifyType",
    "optionId",
    "outcome",
    "parentId",
    "phase",
    "priority",
    "provider",
    "reason",
    "requestId",
    "role",
    "scope",
    "sessionId",
    "sessionUpdate",
    "state",
    "status",
    "stopReason",
    "streamingBehavior",
    "targetId",
    "thinkingLevel",
    "timestamp",
    "tool",
    "toolCallId",
    "toolName",
    "tool_call_id",
    "type",
    "version",
];
/// Members of which not even the names inside are the protocol's.
const FOREIGN: [&str; 13] = [
    "_meta",
    "args",
    "arguments",
    "data",
    "details",
    "env",
    "headers",
    "input",
    "inputSchema",
    "parameters",
    "rawInput",
    "rawOutput",
    "schema",
];
/// Frames with pieces of texts. A key in pieces would be recognised in none of them, so they are never shown.
const STREAMED: [&str; 4] = ["message_update", "tool_execution_update", "bash_execution_update", "session/update"];
/// What is longer is no word.
const MAX_WORD: usize = 80;

/// What is done with texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    Counted,
    Shown,
}

/// A line of the protocol.
#[derive(Serialize)]
pub struct Frame {
    bytes: usize,
    hash: String,
    /// `None` if the line is no JSON.
    frame: Option<Value>,
}

impl Frame {
    /// Makes the frame of a line.
    pub fn of(line: &[u8], texts: Texts, hash: &dyn Fn(&[u8]) -> String) -> Self {
        let frame = serde_json::from_slice(line).ok().map(|frame: Value| {
            let is_streamed = [&frame["type"], &frame["method"]]
                .iter()
                .any(|name| name.as_str().is_some_and(|name| STREAMED.contains(&name)));
            if texts == Texts::Shown && !is_streamed { frame } else { Counter { hash }.frame(frame) }
        });
        Frame { bytes: line.len(), hash: hash(line), frame }
    }
}

/// Counts texts.
struct Counter<'a> {
    hash: &'a dyn Fn(&[u8]) -> String,
}

impl Counter<'_> {
    fn frame(&self, frame: Value) -> Value {
        let Value::Object(mut members) = frame else { return self.value(frame) };
        let is_response = members.get("type").is_some_and(|kind| kind == "response");
        // Elsewhere `command` is one of a shell, and `data` is whatever an extension has made.
        let command = members.get("command").filter(|_| is_response).cloned();
        let data = if is_response { members.remove("data") } else { None };
        let mut members = self.members(members);
        members.extend(command.filter(is_word).map(|command| ("command".to_owned(), command)));
        members.extend(data.map(|data| ("data".to_owned(), self.value(data))));
        Value::Object(members)
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.counted(text.as_bytes()),
            Value::Array(values) => Value::Array(values.into_iter().map(|value| self.value(value)).collect()),
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn members(&self, members: Map<String, Value>) -> Map<String, Value> {
        let member = |(name, value): (String, Value)| {
            let value = match &value {
                Value::Null | Value::Bool(_) => value,
                _ if FOREIGN.contains(&name.as_str()) => self.counted(value.to_string().as_bytes()),
                word if WORDS.contains(&name.as_str()) && is_word(word) => value,
                _ => self.value(value),
            };
            (if is_name(&name) { name } else { (self.hash)(name.as_bytes()) }, value)
        };
        members.into_iter().map(member).collect()
    }

    fn counted(&self, text: &[u8]) -> Value {
        json!({"bytes": text.len(), "hash": (self.hash)(text)})
    }
}

fn is_word(value: &Value) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/@+".contains(&byte);
    value.as_str().is_some_and(|text| text.len() <= MAX_WORD && text.bytes().all(is_part))
}

/// Whether a protocol would name a member so.
fn is_name(name: &str) -> bool {
    name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, texts: Texts) -> Value {
        Frame::of(line.as_bytes(), texts, &|text| format!("h{}", text.len())).frame.expect("JSON")
    }

    #[test]
    fn texts_are_counted_and_words_stay() {
        let check = |line: &str, expected: Value| assert_eq!(shown(line, Texts::Counted), expected, "{line}");
        check(
            r#"{"type":"prompt","id":"ask-1","message":"Sell it","images":[]}"#,
            json!({"type": "prompt", "id": "ask-1", "message": {"bytes": 7, "hash": "h7"}, "images": []}),
        );
        check(r#"{"type":"bash","command":"ls"}"#, json!({"type": "bash", "command": {"bytes": 2, "hash": "h2"}}));
        check(
            r#"{"type":"response","command":"get_state","success":true,"data":{"mode":"all","cwd":"/x"}}"#,
            json!({"type": "response", "command": "get_state", "success": true,
                   "data": {"mode": "all", "cwd": {"bytes": 2, "hash": "h2"}}}),
        );
        check(
            r#"{"type":"tool_execution_start","toolName":"bash","args":{"pin":1234}}"#,
            json!({"type": "tool_execution_start", "toolName": "bash", "args": {"bytes": 12, "hash": "h12"}}),
        );
        check(r#"{"id":"two words","a b":1}"#, json!({"id": {"bytes": 9, "hash": "h9"}, "h3": 1}));
        check("\"alone\"", json!({"bytes": 5, "hash": "h5"}));
    }

    #[test]
    fn texts_are_shown_if_wanted_but_not_pieces_of_them() {
        let prompt = r#"{"type":"prompt","message":"Sell it"}"#;
        assert_eq!(shown(prompt, Texts::Shown), json!({"type": "prompt", "message": "Sell it"}));
        let piece = r#"{"type":"message_update","delta":"Se"}"#;
        assert_eq!(shown(piece, Texts::Shown), json!({"type": "message_update", "delta": {"bytes": 2, "hash": "h2"}}));
        assert!(Frame::of(b"{", Texts::Shown, &|_| String::new()).frame.is_none());
    }
}
