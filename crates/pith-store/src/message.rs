//! The message an entry contributes to the conversation.

use pith_protocol::{
    AssistantMessage, BashExecution, Block, BranchSummary, CompactionSummary, Content, CustomMessage, Message,
    ToolResultMessage, UserMessage,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::lenient::mend;
use crate::tree::{Kind, Role};

/// Returns the message of an entry's line, `None` if its kind contributes none.
pub(crate) fn message_of(kind: Kind, line: &[u8], timestamp: i64) -> serde_json::Result<Option<Message>> {
    let message = match kind {
        // Newer pi versions store the prompt in the conversation; pith builds its own.
        Kind::Message(Role::System) => None,
        Kind::Message(role) => Some(stored_message(role, line)?),
        Kind::CustomMessage => Some(custom_message(object(line)?, timestamp)),
        Kind::Compaction => Some(compaction_summary(object(line)?, timestamp)),
        Kind::BranchSummary => branch_summary(object(line)?, timestamp),
        _ => None,
    };
    Ok(message)
}

/// Whether entries of that kind can stand in the conversation.
pub(crate) fn contributes(kind: Kind) -> bool {
    match kind {
        Kind::Message(role) => role != Role::System,
        Kind::CustomMessage | Kind::Compaction | Kind::BranchSummary => true,
        Kind::ModelChange
        | Kind::ThinkingLevelChange
        | Kind::SessionInfo
        | Kind::Label
        | Kind::Custom
        | Kind::ContextEdit
        | Kind::Usage
        | Kind::Other => false,
    }
}

/// Returns the members of a line as JSON values.
pub(crate) fn object(line: &[u8]) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_slice(line).or_else(|error| match mend(line) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// Puts other content into a message, as a `context_edit` does. Roles without content stay as they are.
pub fn with_content(message: &Message, content: Content) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::User(message) => message.content = content,
        Message::Custom(message) => message.content = content,
        Message::Assistant(message) => message.content = into_blocks(content),
        Message::ToolResult(message) => message.content = into_blocks(content),
        Message::BashExecution(_) | Message::CompactionSummary(_) | Message::BranchSummary(_) | Message::Other(_) => {}
    }
    message
}

/// Returns the text blocks of a message that has content, joined without a separator.
pub(crate) fn text_of(message: &Message) -> String {
    let joined = |blocks: &[Block]| blocks.iter().filter_map(Block::as_text).collect();
    match message {
        Message::User(message) => message.content.text(),
        Message::Custom(message) => message.content.text(),
        Message::Assistant(message) => joined(&message.content),
        Message::ToolResult(message) => joined(&message.content),
        Message::BashExecution(_) | Message::CompactionSummary(_) | Message::BranchSummary(_) | Message::Other(_) => {
            String::new()
        }
    }
}

fn into_blocks(content: Content) -> Vec<Block> {
    match content {
        Content::Text(text) => vec![Block::text(text)],
        Content::Blocks(blocks) => blocks,
    }
}

fn stored_message(role: Role, line: &[u8]) -> serde_json::Result<Message> {
    // Straight into the type: building a JSON tree first doubles the time to read a long session.
    match typed(role, line) {
        Some(message) => Ok(message),
        None => Ok(mended_message(object(line)?.remove("message").unwrap_or_default())),
    }
}

fn typed(role: Role, line: &[u8]) -> Option<Message> {
    #[derive(Deserialize)]
    struct MessageLine<T> {
        message: T,
    }
    /// Reads a message. `role` is the type itself, so it is taken out of the unknown members.
    fn read<T: DeserializeOwned>(line: &[u8], extra: fn(&mut T) -> &mut Map<String, Value>) -> Option<T> {
        let MessageLine { mut message } = serde_json::from_slice(line).ok()?;
        let extra = extra(&mut message);
        extra.shift_remove("role");
        if extra.is_empty() {
            // Thousands of maps that once held a role are megabytes.
            *extra = Map::new();
        }
        Some(message)
    }
    Some(match role {
        Role::User => Message::User(read::<UserMessage>(line, |message| &mut message.extra)?),
        Role::Assistant => Message::Assistant(read::<AssistantMessage>(line, |message| &mut message.extra)?),
        Role::ToolResult => Message::ToolResult(read::<ToolResultMessage>(line, |message| &mut message.extra)?),
        Role::BashExecution => Message::BashExecution(read::<BashExecution>(line, |message| &mut message.extra)?),
        Role::Custom => Message::Custom(read::<CustomMessage>(line, |message| &mut message.extra)?),
        Role::System | Role::Other => serde_json::from_slice::<MessageLine<Message>>(line).ok()?.message,
    })
}

/// Returns a message some member of which has a type we do not expect: the known members that
/// do not fit are left out, one by one, until the rest fits.
fn mended_message(message: Value) -> Message {
    let Value::Object(mut object) = message else { return Message::Other(Map::new()) };
    object.retain(|_, value| !value.is_null());
    if let Some(Value::Object(usage)) = object.get_mut("usage") {
        usage.retain(|_, value| !value.is_null());
    }
    if let Some(timestamp) = object.get("timestamp").and_then(Value::as_f64) {
        object.insert("timestamp".into(), Value::from(timestamp as i64));
    }
    let fits = |object: &Map<String, Value>| serde_json::from_value::<Message>(Value::Object(object.clone())).ok();
    if let Some(message) = fits(&object) {
        return message;
    }
    let names: Vec<_> = object.keys().filter(|name| *name != "role").cloned().collect();
    for name in names {
        let mut single = Map::new();
        for member in ["role", &name] {
            if let Some(value) = object.get(member) {
                single.insert(member.to_owned(), value.clone());
            }
        }
        if fits(&single).is_none() {
            object.shift_remove(&name);
        }
    }
    fits(&object).unwrap_or(Message::Other(object))
}

fn custom_message(mut object: Map<String, Value>, timestamp: i64) -> Message {
    Message::Custom(CustomMessage {
        custom_type: text(&mut object, "customType"),
        content: object.remove("content").and_then(|content| serde_json::from_value(content).ok()).unwrap_or_default(),
        display: object.get("display").and_then(Value::as_bool).unwrap_or_default(),
        details: object.remove("details").filter(|details| !details.is_null()),
        timestamp,
        extra: Map::new(),
    })
}

fn compaction_summary(mut object: Map<String, Value>, timestamp: i64) -> Message {
    let tokens_before = object.get("tokensBefore").and_then(Value::as_f64).unwrap_or_default() as u64;
    Message::CompactionSummary(CompactionSummary { summary: text(&mut object, "summary"), tokens_before, timestamp })
}

fn branch_summary(mut object: Map<String, Value>, timestamp: i64) -> Option<Message> {
    let summary = text(&mut object, "summary");
    let from_id = Some(text(&mut object, "fromId")).filter(|id| !id.is_empty());
    (!summary.is_empty()).then_some(Message::BranchSummary(BranchSummary { summary, from_id, timestamp }))
}

fn text(object: &mut Map<String, Value>, name: &str) -> String {
    match object.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(message: Value, expected: Value) {
        let line = json!({"type": "message", "id": "a", "message": message}).to_string();
        let sketch = crate::sketch::Sketch::read(line.as_bytes(), &mut Vec::new()).map(|sketch| Kind::of(&sketch));
        let message = message_of(sketch.unwrap(), line.as_bytes(), 0).unwrap().unwrap();
        assert_eq!(serde_json::to_value(message).unwrap(), expected);
    }

    #[test]
    fn good_messages_are_read_whole() {
        for message in [
            json!({"role":"user","content":"hi","timestamp":1,"mystery":[1]}),
            json!({"role":"toolResult","toolCallId":"c","toolName":"t","content":[],"isError":false,"timestamp":1}),
            json!({"role":"fileMention","files":["a"],"timestamp":1}),
        ] {
            check(message.clone(), message);
        }
    }

    #[test]
    fn members_that_do_not_fit_cost_only_themselves() {
        check(
            json!({"role":"user","content":"hi","timestamp":1.5,"attribution":null}),
            json!({"role":"user","content":"hi","timestamp":1}),
        );
        check(
            json!({"role":"toolResult","toolCallId":7,"toolName":"t","content":null,"isError":"no","timestamp":"x"}),
            json!({"role":"toolResult","toolCallId":"","toolName":"t","content":[],"isError":false,"timestamp":0}),
        );
    }

    #[test]
    fn text_cut_inside_a_character_is_kept() {
        let line = br#"{"message":{"role":"user","content":"cut \ud83d","timestamp":1}}"#;
        let message = message_of(Kind::Message(Role::User), line, 0).unwrap().unwrap();
        assert_eq!(serde_json::to_value(message).unwrap()["content"], "cut \u{fffd}");
    }
}
