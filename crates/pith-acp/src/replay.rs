//! A stored conversation as updates: what an editor would show had it watched.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, SessionInfoUpdate, SessionUpdate, TextContent,
    ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use pith_protocol::todos::TodoPhase;
use pith_protocol::{AssistantMessage, BashExecution, Block, CompactionSummary, Content, Message, ToolResultMessage};
use serde_json::json;

use crate::Client;
use crate::call::{self, Finished, Shown};
use crate::looks::Looks;
use crate::place::Place;
use crate::plan::plan;
use crate::terminal;
use crate::time::iso;
use crate::underway::Underway;
use crate::updates::{Meter, context_tokens, phases_of, title_of, usage, user_blocks};

/// The `customType` of a stored todo reminder, which is shown although it is not for display: it is what the model was
/// told in the user's place.
const REMINDER: &str = "todo-reminder";

/// Makes updates of stored messages.
pub struct Replay<'a> {
    pub place: &'a dyn Place,
    pub client: &'a Client,
    pub looks: Looks,
    /// What is not stored yet.
    pub underway: Underway,
}

/// A message and the id of its entry.
pub type Stored<I> = (I, Message);

/// Cuts a conversation before each answer, so that the calls of an answer stand together with their results.
pub fn turns<I>(messages: impl Iterator<Item = Stored<I>>) -> impl Iterator<Item = Vec<Stored<I>>> {
    let mut messages = messages.peekable();
    std::iter::from_fn(move || {
        let mut turn = vec![messages.next()?];
        turn.extend(std::iter::from_fn(|| messages.next_if(|(_, message)| message.as_assistant().is_none())));
        Some(turn)
    })
}

impl Replay<'_> {
    /// The updates of a turn.
    pub fn updates<I: AsRef<str>>(&mut self, turn: Vec<Stored<I>>) -> Vec<SessionUpdate> {
        let mut results = HashMap::new();
        let mut shown = Vec::new();
        for (id, message) in turn {
            match message {
                Message::ToolResult(result) => _ = results.insert(result.tool_call_id.clone(), result),
                message => shown.push((id, message)),
            }
        }
        shown.into_iter().flat_map(|(id, message)| self.message(id.as_ref(), message, &results)).collect()
    }

    fn message(&mut self, id: &str, message: Message, results: &Results) -> Vec<SessionUpdate> {
        match message {
            Message::User(message) => user(id, &message.content),
            Message::Assistant(answer) => self.answer(id, answer, results),
            Message::BashExecution(command) => self.shell_command(id, &command),
            Message::Custom(custom) if custom.display || custom.custom_type == REMINDER => user(id, &custom.content),
            Message::CompactionSummary(summary) => vec![self.compaction(id, summary)],
            _ => Vec::new(),
        }
    }

    fn answer(&mut self, id: &str, answer: AssistantMessage, results: &Results) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        for block in answer.content {
            match block {
                Block::Text(text) if !text.text.is_empty() => {
                    let text = ContentBlock::Text(TextContent::new(text.text));
                    updates.push(SessionUpdate::AgentMessageChunk(chunk(id, text)));
                }
                Block::Thinking(thought) if !thought.thinking.is_empty() => {
                    let text = ContentBlock::Text(TextContent::new(thought.thinking));
                    updates.push(SessionUpdate::AgentThoughtChunk(chunk(id, text)));
                }
                Block::ToolCall(call) => updates.extend(self.call(&call, results)),
                _ => {}
            }
        }
        updates
    }

    /// Returns the updates about the message and the calls that are under way and not stored yet.
    pub fn rest(self) -> Vec<SessionUpdate> {
        let Underway { calls, message } = self.underway;
        message.into_iter().chain(calls.into_iter().flat_map(|(_, updates)| updates)).collect()
    }

    /// A call with its end, or as it is now. One that neither ended nor is under way has failed.
    fn call(&mut self, call: &pith_protocol::ToolCall, results: &Results) -> Vec<SessionUpdate> {
        let Shown { title, kind, locations, .. } = call::shown(&call.name, &call.arguments, self.place, &self.looks);
        let replayed = ToolCall::new(call.id.clone(), title)
            .name(call.name.clone())
            .kind(kind)
            .raw_input(serde_json::Value::Object(call.arguments.clone()));
        let Some(result) = results.get(call.id.as_str()) else {
            if let Some(updates) = self.underway.take_call(&call.id) {
                return updates;
            }
            let failed = replayed.locations(locations).status(ToolCallStatus::Failed).content(call::aborted());
            return vec![SessionUpdate::ToolCall(failed)];
        };
        let Finished { content, raw_output, locations: changed } = call::finished(
            &call.name,
            &call.arguments,
            &result.content,
            result.details.as_ref(),
            result.is_error,
            self.place,
        );
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let ended = replayed.locations(changed.unwrap_or(locations)).status(status).raw_output(raw_output);
        if call.name != "bash" {
            return vec![SessionUpdate::ToolCall(ended.content(content))];
        }
        let text = call::text_of(&result.content);
        let signal = call::signal_of(result.details.as_ref());
        self.command(ended, content, &text, call::exit_code(&text, result.is_error), signal)
    }

    /// A command that has ended, with its output where the client shows it.
    fn command(
        &self,
        call: ToolCall,
        content: Vec<ToolCallContent>,
        output: &str,
        exit_code: Option<i32>,
        signal: Option<&str>,
    ) -> Vec<SessionUpdate> {
        if !self.client.shows_terminal_output() {
            return vec![SessionUpdate::ToolCall(call.content(content))];
        }
        let id = call.tool_call_id.0.clone();
        let exit = ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new());
        let exit = exit.meta(terminal::exit(&id, exit_code, signal));
        let call = call.content(terminal::content(&id)).meta(terminal::info(&id, self.place.cwd()));
        let output = (!output.is_empty()).then(|| terminal::output(&id, output));
        [SessionUpdate::ToolCall(call)].into_iter().chain(output).chain([SessionUpdate::ToolCallUpdate(exit)]).collect()
    }

    /// A command that the user ran beside the model.
    fn shell_command(&self, id: &str, command: &BashExecution) -> Vec<SessionUpdate> {
        let failed = command.cancelled || command.exit_code.is_some_and(|code| code != 0);
        let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let title = command.command.lines().next().unwrap_or_default().to_owned();
        let call = ToolCall::new(id.to_owned(), title)
            .kind(ToolKind::Execute)
            .status(status)
            .raw_input(json!({"command": command.command}))
            .raw_output(json!({"exitCode": command.exit_code, "truncated": command.truncated}));
        self.command(call, call::fenced(&command.output), &command.output, command.exit_code, None)
    }

    fn compaction(&self, id: &str, compaction: CompactionSummary) -> SessionUpdate {
        if self.client.shows_compactions() {
            let update = CompactionUpdate::new(id.to_owned(), CompactionStatus::Completed);
            let summary = ContentBlock::Text(TextContent::new(compaction.summary));
            return SessionUpdate::CompactionUpdate(update.summary(vec![summary]));
        }
        let text = format!("_The conversation was summarised here ({} tokens before)._", compaction.tokens_before);
        SessionUpdate::AgentMessageChunk(chunk(id, ContentBlock::Text(TextContent::new(text))))
    }
}

/// Results by the ids of their calls.
type Results = HashMap<String, ToolResultMessage>;

/// Totals of a conversation.
#[derive(Debug, Default)]
pub struct Totals {
    /// US dollars.
    pub cost: f64,
    /// Tokens in the context after the last answer.
    used: Option<u64>,
    phases: Option<Vec<TodoPhase>>,
    /// The title that the first prompt makes.
    title: Option<String>,
    /// When the user said something last.
    updated: Option<String>,
}

impl Totals {
    /// Takes the next message into account.
    pub fn add(&mut self, message: &Message) {
        match message {
            Message::Assistant(answer) => {
                self.cost += answer.usage.cost.total;
                self.used = context_tokens(answer).or(self.used);
            }
            Message::User(message) => {
                self.title.get_or_insert_with(|| title_of(&message.content.text()));
                self.updated = iso(message.timestamp);
            }
            Message::ToolResult(result) if result.tool_name == "todo_write" && !result.is_error => {
                let phases = result.details.as_ref().and_then(phases_of);
                self.phases = phases.or(self.phases.take());
            }
            _ => {}
        }
    }

    /// When the user said something last.
    pub fn updated(&self) -> Option<String> {
        self.updated.clone()
    }

    /// Whether the conversation is enough to name the session.
    pub fn has_title(&self) -> bool {
        self.title.is_some()
    }

    /// The updates about plan, context and title. `window` is that of the model in use, `name` that of the session.
    pub fn updates(self, window: u64, name: Option<String>) -> Vec<SessionUpdate> {
        let meter = Meter { window, cost: self.cost };
        let mut updates = Vec::new();
        updates.extend(self.phases.map(|phases| SessionUpdate::Plan(plan(&phases))));
        updates.extend(self.used.and_then(|used| usage(meter, used)));
        if let Some(title) = name.or(self.title) {
            let info = SessionInfoUpdate::new().title(title).updated_at(self.updated);
            updates.push(SessionUpdate::SessionInfoUpdate(info));
        }
        updates
    }
}

fn user(id: &str, content: &Content) -> Vec<SessionUpdate> {
    let blocks = user_blocks(content).into_iter();
    blocks.map(|block| SessionUpdate::UserMessageChunk(chunk(id, block))).collect()
}

fn chunk(id: &str, content: ContentBlock) -> ContentChunk {
    ContentChunk::new(content).message_id(agent_client_protocol_schema::v1::MessageId::new(id))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::place::Directory;

    /// Shows messages; returns their updates and those about all of them.
    fn shown(messages: &[(&str, Value)], capabilities: Value) -> (Vec<Value>, Vec<Value>) {
        let introduction = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let client = Client::of(serde_json::from_value(introduction).expect("an introduction"));
        let underway = Underway::default();
        let mut replay = Replay { place: &Directory("/w".into()), client: &client, looks: Looks::default(), underway };
        let read = |(id, message): &(&str, Value)| {
            ((*id).to_owned(), serde_json::from_value::<Message>(message.clone()).expect("a message"))
        };
        let (mut updates, mut totals) = (Vec::new(), Totals::default());
        for turn in turns(messages.iter().map(read)) {
            turn.iter().for_each(|(_, message)| totals.add(message));
            updates.extend(replay.updates(turn));
        }
        let values = |updates: Vec<SessionUpdate>| updates.iter().map(|update| json!(update)).collect();
        (values(updates), values(totals.updates(1000, None)))
    }

    fn prompt(text: &str) -> Value {
        json!({"role": "user", "content": text, "timestamp": 1_763_000_000_000_i64})
    }

    fn answer(content: Value) -> Value {
        let usage = json!({"input": 5, "output": 2, "totalTokens": 7, "cost": {"total": 0.5}});
        json!({"role": "assistant", "content": content, "usage": usage, "timestamp": 2})
    }

    fn call(id: &str, tool: &str, arguments: Value) -> Value {
        json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments})
    }

    fn result(call: &str, tool: &str, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        json!({"role": "toolResult", "toolCallId": call, "toolName": tool, "content": content, "isError": false})
    }

    fn kinds(updates: &[Value]) -> Vec<&str> {
        updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
    }

    #[test]
    fn messages_are_shown_in_their_order_and_then_their_totals() {
        let task = json!({"id": "t1", "content": "first", "status": "pending"});
        let mut planned = result("t", "todo_write", "");
        planned["details"] = json!({"phases": [{"id": "p1", "name": "P", "tasks": [task]}]});
        let custom = |text: &str, display: bool| json!({"role": "custom", "content": text, "display": display});
        let messages = [
            ("a", prompt("First line\nsecond")),
            (
                "b",
                answer(json!([
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": ""},
                    {"type": "text", "text": "see"},
                    call("t", "todo_write", json!({})),
                ])),
            ),
            ("c", planned),
            ("d", custom("shown", true)),
            ("e", custom("hidden", false)),
            ("f", json!({"role": "branchSummary", "summary": "left"})),
            ("g", json!({"role": "bashExecution", "command": "make\nmake", "output": "no", "exitCode": 2})),
            ("h", answer(json!([call("u", "bash", json!({"command": "sleep"}))]))),
        ];
        let (updates, last) = shown(&messages, json!({}));
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
    fn a_command_of_the_user_is_shown_in_a_terminal_where_there_are_some() {
        let command = json!({"role": "bashExecution", "command": "make", "output": "no\n", "exitCode": 2,
            "cancelled": false, "truncated": false});
        let (updates, _) = shown(&[("g", command)], json!({"_meta": {"terminal_output": true}}));
        assert_eq!(kinds(&updates), ["tool_call", "tool_call_update", "tool_call_update"]);
        assert_eq!(updates[0]["content"], json!([{"type": "terminal", "terminalId": "g"}]));
        let about: Vec<_> = updates.iter().map(|update| &update["_meta"]).collect();
        let expected = [
            json!({"terminal_info": {"terminal_id": "g", "cwd": "/w"}}),
            json!({"terminal_output": {"terminal_id": "g", "data": "no\n"}}),
            json!({"terminal_exit": {"terminal_id": "g", "exit_code": 2, "signal": null}}),
        ];
        assert_eq!(about, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_call_is_shown_with_the_result_of_its_own_turn() {
        let listing = || answer(json!([call("0", "ls", json!({})), call("1", "ls", json!({}))]));
        let messages = [
            ("a", listing()),
            ("b", result("1", "ls", "first")),
            ("c", prompt("go on")),
            ("d", result("0", "ls", "late")),
            ("e", listing()),
            ("f", result("0", "ls", "second")),
        ];
        let (updates, _) = shown(&messages, json!({}));
        let calls = updates.iter().filter(|update| update["toolCallId"].is_string());
        let texts: Vec<_> = calls.map(|call| call["content"][0]["content"]["text"].clone()).collect();
        assert_eq!(texts, ["late", "first", "second", "Aborted"]);
    }

    #[test]
    fn a_summary_is_shown_as_the_client_can_show_it() {
        let summary = json!({"role": "compactionSummary", "summary": "S", "tokensBefore": 9});
        let messages = [("a", prompt("hi")), ("b", summary)];
        let (updates, _) = shown(&messages, json!({"session": {"compaction": {}}}));
        assert_eq!(kinds(&updates), ["user_message_chunk", "compaction_update"]);
        assert_eq!((&updates[1]["status"], &updates[1]["summary"][0]["text"]), (&json!("completed"), &json!("S")));
        let (updates, _) = shown(&messages, json!({}));
        assert_eq!(kinds(&updates), ["user_message_chunk", "agent_message_chunk"]);
        let (updates, last) = shown(&[], json!({}));
        assert!(updates.is_empty() && last.is_empty());
    }
}
