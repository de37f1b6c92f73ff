//! A stored conversation as updates: what an editor would show had it watched.

use std::collections::HashMap;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, SessionInfoUpdate, SessionUpdate, TextContent,
    ToolCall, ToolCallStatus, ToolKind,
};
use pith_protocol::answers::Entries;
use pith_protocol::entry::{CompactionEntry, MessageEntry};
use pith_protocol::{AssistantMessage, BashExecution, Block, Content, Entry, Message, ToolResultMessage};
use serde_json::json;

use crate::Client;
use crate::call::{self, Finished, Shown};
use crate::looks::Looks;
use crate::plan::plan;
use crate::time::iso;
use crate::updates::{Meter, phases_of, title_of, usage, user_blocks};

/// The conversation up to the leaf.
pub struct Replay<'a> {
    branch: Vec<&'a Entry>,
    /// Results by the id of their call.
    results: HashMap<&'a str, &'a ToolResultMessage>,
    cwd: &'a Path,
    client: &'a Client,
    looks: Looks,
}

/// What the last updates of a replay are made of.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Updates about the plan, the context and the title.
    pub updates: Vec<SessionUpdate>,
    pub meter: Meter,
    pub has_title: bool,
}

impl<'a> Replay<'a> {
    pub fn new(entries: &'a Entries, cwd: &'a Path, client: &'a Client, looks: Looks) -> Self {
        let branch = branch(entries);
        let results = branch.iter().filter_map(|entry| match entry {
            Entry::Message(stored) => match &stored.message {
                Message::ToolResult(result) => Some((result.tool_call_id.as_str(), result)),
                _ => None,
            },
            _ => None,
        });
        Replay { results: results.collect(), branch, cwd, client, looks }
    }

    /// The updates of the messages, entry by entry.
    pub fn updates(&self) -> impl Iterator<Item = Vec<SessionUpdate>> {
        self.branch.iter().map(|entry| self.entry(entry))
    }

    fn entry(&self, entry: &Entry) -> Vec<SessionUpdate> {
        match entry {
            Entry::Message(stored) => self.message(stored),
            Entry::CustomMessage(custom) if custom.display => user(&custom.id, &custom.content),
            Entry::Compaction(compaction) => vec![self.compaction(compaction)],
            _ => Vec::new(),
        }
    }

    fn message(&self, stored: &MessageEntry) -> Vec<SessionUpdate> {
        match &stored.message {
            Message::User(message) => user(&stored.id, &message.content),
            Message::Assistant(answer) => self.answer(&stored.id, answer),
            Message::BashExecution(command) => vec![shell_command(&stored.id, command)],
            Message::Custom(custom) if custom.display => user(&stored.id, &custom.content),
            _ => Vec::new(),
        }
    }

    fn answer(&self, id: &str, answer: &AssistantMessage) -> Vec<SessionUpdate> {
        let update = |block: &Block| match block {
            Block::Text(text) if !text.text.is_empty() => Some(SessionUpdate::AgentMessageChunk(chunk(
                id,
                ContentBlock::Text(TextContent::new(text.text.clone())),
            ))),
            Block::Thinking(thought) if !thought.thinking.is_empty() => {
                let text = ContentBlock::Text(TextContent::new(thought.thinking.clone()));
                Some(SessionUpdate::AgentThoughtChunk(chunk(id, text)))
            }
            Block::ToolCall(call) => Some(SessionUpdate::ToolCall(self.call(call))),
            _ => None,
        };
        answer.content.iter().filter_map(update).collect()
    }

    /// A call with its end; one that never ended has failed.
    fn call(&self, call: &pith_protocol::ToolCall) -> ToolCall {
        let Shown { title, kind, locations, .. } = call::shown(&call.name, &call.arguments, self.cwd, &self.looks);
        let replayed = ToolCall::new(call.id.clone(), title)
            .name(call.name.clone())
            .kind(kind)
            .raw_input(serde_json::Value::Object(call.arguments.clone()));
        let Some(result) = self.results.get(call.id.as_str()) else {
            return replayed.locations(locations).status(ToolCallStatus::Failed).content(call::aborted());
        };
        let Finished { content, raw_output, locations: changed } = call::finished(
            &call.name,
            &call.arguments,
            &result.content,
            result.details.as_ref(),
            result.is_error,
            self.cwd,
        );
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        replayed.locations(changed.unwrap_or(locations)).status(status).content(content).raw_output(raw_output)
    }

    fn compaction(&self, compaction: &CompactionEntry) -> SessionUpdate {
        let summary = ContentBlock::Text(TextContent::new(compaction.summary.clone()));
        if self.client.shows_compactions() {
            let update = CompactionUpdate::new(compaction.id.clone(), CompactionStatus::Completed);
            return SessionUpdate::CompactionUpdate(update.summary(vec![summary]));
        }
        let text = format!("_The conversation was summarised here ({} tokens before)._", compaction.tokens_before);
        SessionUpdate::AgentMessageChunk(chunk(&compaction.id, ContentBlock::Text(TextContent::new(text))))
    }

    /// What follows the messages. `window` is that of the model in use, `name` that of the session.
    pub fn summary(&self, window: u64, name: Option<&str>) -> Summary {
        let mut meter = Meter { window, cost: 0.0 };
        let (mut used, mut phases, mut first, mut updated) = (None, None, None, None);
        for entry in &self.branch {
            let Entry::Message(stored) = entry else { continue };
            match &stored.message {
                Message::Assistant(answer) => {
                    meter.cost += answer.usage.cost.total;
                    used = Some(answer.usage.context_tokens());
                }
                Message::User(message) => {
                    first = first.or_else(|| Some(title_of(&message.content.text())));
                    updated = iso(message.timestamp);
                }
                Message::ToolResult(result) if result.tool_name == "todo_write" && !result.is_error => {
                    phases = result.details.as_ref().and_then(phases_of).or(phases);
                }
                _ => {}
            }
        }
        let title = name.map(str::to_owned).or(first);
        let has_title = title.is_some();
        let mut updates = Vec::new();
        updates.extend(phases.map(|phases| SessionUpdate::Plan(plan(&phases))));
        updates.extend(used.and_then(|used| usage(meter, used)));
        if has_title {
            updates.push(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title).updated_at(updated)));
        }
        Summary { updates, meter, has_title }
    }
}

/// The entries from the first to the leaf.
fn branch(entries: &Entries) -> Vec<&Entry> {
    let by_id: HashMap<&str, &Entry> =
        entries.entries.iter().filter_map(|entry| Some((place(entry)?.0, entry))).collect();
    let mut branch = Vec::new();
    let mut at = entries.leaf_id.as_deref();
    while let Some(entry) = at.and_then(|id| by_id.get(id)) {
        branch.push(*entry);
        // A file that names an entry among its own ancestors would never end.
        if branch.len() > entries.entries.len() {
            break;
        }
        at = place(entry).and_then(|(_, parent)| parent);
    }
    branch.reverse();
    branch
}

/// Id and parent of an entry.
fn place(entry: &Entry) -> Option<(&str, Option<&str>)> {
    macro_rules! of {
        ($entry:expr) => {
            Some((&$entry.id, $entry.parent_id.as_deref()))
        };
    }
    match entry {
        Entry::Message(entry) => of!(entry),
        Entry::ModelChange(entry) => of!(entry),
        Entry::ThinkingLevelChange(entry) => of!(entry),
        Entry::SessionInfo(entry) => of!(entry),
        Entry::Label(entry) => of!(entry),
        Entry::Compaction(entry) => of!(entry),
        Entry::BranchSummary(entry) => of!(entry),
        Entry::Custom(entry) => of!(entry),
        Entry::CustomMessage(entry) => of!(entry),
        Entry::ContextEdit(entry) => of!(entry),
        Entry::Usage(entry) => of!(entry),
        Entry::Other(members) => {
            let text = |key: &str| members.get(key).and_then(serde_json::Value::as_str);
            Some((text("id")?, text("parentId")))
        }
    }
}

fn user(id: &str, content: &Content) -> Vec<SessionUpdate> {
    let blocks = user_blocks(content).into_iter();
    blocks.map(|block| SessionUpdate::UserMessageChunk(chunk(id, block))).collect()
}

fn chunk(id: &str, content: ContentBlock) -> ContentChunk {
    ContentChunk::new(content).message_id(agent_client_protocol_schema::v1::MessageId::new(id))
}

/// A command that the user ran beside the model.
fn shell_command(id: &str, command: &BashExecution) -> SessionUpdate {
    let failed = command.cancelled || command.exit_code.is_some_and(|code| code != 0);
    let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let title = command.command.lines().next().unwrap_or_default().to_owned();
    let call = ToolCall::new(id.to_owned(), title)
        .kind(ToolKind::Execute)
        .status(status)
        .content(call::fenced(&command.output))
        .raw_input(json!({"command": command.command}))
        .raw_output(json!({"exitCode": command.exit_code, "truncated": command.truncated}));
    SessionUpdate::ToolCall(call)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Shows entries, each below the one before unless it names another parent.
    fn shown(entries: Vec<Value>, leaf: &str, capabilities: Value) -> (Vec<Value>, Vec<Value>) {
        let mut before = Value::Null;
        let entry = |mut entry: Value| {
            entry["timestamp"] = "2026-11-15T06:52:55.000Z".into();
            if entry.get("parentId").is_none() {
                entry["parentId"] = before.clone();
            }
            before = entry["id"].clone();
            Entry::from_json(&entry.to_string()).expect("an entry")
        };
        let entries = Entries { entries: entries.into_iter().map(entry).collect(), leaf_id: Some(leaf.to_owned()) };
        let introduction = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let client = Client::of(serde_json::from_value(introduction).expect("an introduction"));
        let replay = Replay::new(&entries, Path::new("/w"), &client, Looks::default());
        let values = |updates: Vec<SessionUpdate>| updates.iter().map(|update| json!(update)).collect();
        (values(replay.updates().flatten().collect()), values(replay.summary(1000, None).updates))
    }

    fn message(id: &str, message: Value) -> Value {
        json!({"type": "message", "id": id, "message": message})
    }

    fn prompt(id: &str, text: &str) -> Value {
        message(id, json!({"role": "user", "content": text, "timestamp": 1_763_000_000_000_i64}))
    }

    fn answer(id: &str, content: Value) -> Value {
        let usage = json!({"input": 5, "output": 2, "totalTokens": 7, "cost": {"total": 0.5}});
        message(id, json!({"role": "assistant", "content": content, "usage": usage, "timestamp": 2}))
    }

    fn kinds(updates: &[Value]) -> Vec<&str> {
        updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
    }

    #[test]
    fn the_branch_is_shown_in_its_order_and_then_what_it_comes_to() {
        let task = json!({"id": "t1", "content": "first", "status": "pending"});
        let todos = json!({"phases": [{"id": "p1", "name": "P", "tasks": [task]}]});
        let call = json!({"type": "toolCall", "id": "t", "name": "todo_write", "arguments": {}});
        let entries = vec![
            prompt("a", "First line\nsecond"),
            answer("left", json!([{"type": "text", "text": "on another branch"}])),
            json!({"type": "message", "id": "b", "parentId": "a", "message": answer("", json!([
                {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ""}, {"type": "text", "text": "see"}, call,
            ]))["message"]}),
            message(
                "c",
                json!({"role": "toolResult", "toolCallId": "t", "toolName": "todo_write", "content": [],
                "details": todos, "isError": false}),
            ),
            json!({"type": "custom_message", "id": "d", "customType": "x", "content": "shown", "display": true}),
            json!({"type": "custom_message", "id": "e", "customType": "x", "content": "hidden", "display": false}),
            json!({"type": "custom", "id": "f", "customType": "x"}),
            message(
                "g",
                json!({"role": "bashExecution", "command": "make\nmake", "output": "no", "exitCode": 2,
                "cancelled": false, "truncated": false}),
            ),
            answer("h", json!([{"type": "toolCall", "id": "u", "name": "bash", "arguments": {"command": "sleep"}}])),
        ];
        let (updates, last) = shown(entries, "h", json!({}));
        let order = [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "user_message_chunk",
            "tool_call",
            "tool_call",
        ];
        assert_eq!(kinds(&updates), order);
        assert_eq!((&updates[0]["messageId"], &updates[2]["messageId"]), (&json!("a"), &json!("b")));
        let calls: Vec<_> = updates.iter().filter(|update| update["toolCallId"].is_string()).collect();
        let about: Vec<_> = calls.iter().map(|call| json!([call["title"], call["status"]])).collect();
        assert_eq!(about, [json!(["Update plan", "completed"]), json!(["make", "failed"]), json!(["sleep", "failed"])]);
        assert_eq!(calls[2]["content"][0]["content"]["text"], "Aborted");
        assert_eq!(kinds(&last), ["plan", "usage_update", "session_info_update"]);
        assert_eq!((&last[1]["used"], &last[1]["cost"]["amount"]), (&json!(7), &json!(1.0)));
        assert_eq!(last[2]["title"], "First line");
    }

    #[test]
    fn a_summary_is_shown_as_the_client_can_show_it() {
        let entries = || {
            vec![
                prompt("a", "hi"),
                json!({"type": "compaction", "id": "b", "summary": "S", "firstKeptEntryId": "a", "tokensBefore": 9}),
            ]
        };
        let (updates, _) = shown(entries(), "b", json!({"session": {"compaction": {}}}));
        assert_eq!(kinds(&updates), ["user_message_chunk", "compaction_update"]);
        assert_eq!((&updates[1]["status"], &updates[1]["summary"][0]["text"]), (&json!("completed"), &json!("S")));
        let (updates, _) = shown(entries(), "b", json!({}));
        assert_eq!(kinds(&updates), ["user_message_chunk", "agent_message_chunk"]);
        let (updates, last) = shown(Vec::new(), "gone", json!({}));
        assert!(updates.is_empty() && last.is_empty());
    }
}
