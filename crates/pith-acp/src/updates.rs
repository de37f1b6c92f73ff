//! Turns what a live session tells into updates for the editor.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, Cost, MessageId, SessionInfoUpdate, SessionUpdate, TextContent, ToolCallUpdate, UsageUpdate,
};
use pith_protocol::todos::TodoPhase;
use pith_protocol::{AssistantEvent, AssistantMessage, Block, Content, Event, Message, ToolResult};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::call::content_block;
use crate::live_call::{LiveCall, Progress};
use crate::looks::Looks;
use crate::piece::Piece;
use crate::place::{Directory, Place};
use crate::plan::plan;
use crate::time::iso;
use crate::underway::{Partial, Underway};
use crate::{Client, outcome::Outcome};

/// How much of a prompt may become the title of its session.
const MAX_TITLE: usize = 80;

/// What a session has told its editor so far, as far as later updates depend on it.
pub struct Translator {
    place: Arc<dyn Place>,
    pub(crate) client: Client,
    looks: Looks,
    /// The entry that the message being told will have in the session file.
    entry: Option<MessageId>,
    calls: Vec<LiveCall>,
    /// The message that is being told.
    partial: Partial,
    /// Inputs of the editor that have not appeared as messages yet. The editor shows those itself.
    n_own_inputs: usize,
    meter: Meter,
    has_title: bool,
    /// When the user said something last.
    updated: Option<String>,
    /// The id of the last compaction.
    pub(crate) compaction: String,
    /// Whether the user's prompt may be a command that is being carried out.
    pub(crate) is_commanded: bool,
    outcome: Outcome,
}

/// How full the context is and what the session has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Meter {
    /// Tokens the model can take; 0 if unknown.
    pub window: u64,
    /// US dollars so far.
    pub cost: f64,
}

/// Something the adapter must look at: an update cannot say it alone.
#[derive(Debug)]
pub enum Notable {
    /// A run has begun.
    Started,
    /// All work has ended.
    Settled(Box<Outcome>),
    /// A summary was written, or given up.
    Compacted,
    /// Finished todos were removed.
    TodosCleared,
    /// There may be other slash commands.
    CommandsChanged,
    /// The client shows no notices, and there was one.
    Unshown(String),
}

/// Takes what a translator makes of an event.
pub trait Sink {
    /// Sends an update.
    fn update(&mut self, update: SessionUpdate);
    /// Sends text that continues what was sent before; pieces that wait may be merged.
    fn text(&mut self, piece: Piece, text: &str);
    /// Sends the state of a running tool call, which replaces earlier ones.
    fn progress(&mut self, call: &str, update: SessionUpdate);
    /// Called before the end of a call is sent: no state of it is to be sent any more.
    fn progress_ended(&mut self, call: &str);
    /// Tells the adapter.
    fn tell(&mut self, notable: Notable);
    /// Says something to the user where the client cannot show notices.
    fn log(&mut self, text: &str);
}

impl Translator {
    pub fn new(cwd: PathBuf, client: Client) -> Self {
        Translator {
            place: Arc::new(Directory(cwd)),
            client,
            looks: Looks::default(),
            entry: None,
            calls: Vec::new(),
            partial: Partial::default(),
            n_own_inputs: 0,
            meter: Meter::default(),
            has_title: false,
            updated: None,
            compaction: String::new(),
            is_commanded: false,
            outcome: Outcome::default(),
        }
    }

    /// Takes the files of the session.
    pub fn set_place(&mut self, place: Arc<dyn Place>) {
        self.place = place;
    }

    /// Returns what the session has cost.
    pub fn cost(&self) -> f64 {
        self.meter.cost
    }

    /// Takes what the session has cost before it was heard.
    pub fn set_cost(&mut self, cost: f64) {
        self.meter.cost = cost;
    }

    /// Takes the window of the model in use.
    pub fn set_window(&mut self, window: u64) {
        self.meter.window = window;
    }

    /// Takes how the tools look that there are now.
    pub fn set_looks(&mut self, looks: Looks) {
        self.looks = looks;
    }

    /// Returns how the tools look.
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Called when the session has a title already.
    pub fn set_titled(&mut self) {
        self.has_title = true;
    }

    /// Takes when the user said something last.
    pub fn set_updated(&mut self, updated: Option<String>) {
        self.updated = updated;
    }

    /// Called when the session has accepted an input of the editor.
    pub fn expect_input(&mut self) {
        self.n_own_inputs += 1;
    }

    /// Called when inputs were taken out of the queue: they will not appear as messages.
    pub fn forget_inputs(&mut self, n_inputs: usize) {
        self.n_own_inputs = self.n_own_inputs.saturating_sub(n_inputs);
    }

    /// Returns what is under way and not stored yet.
    pub fn underway(&self) -> Underway {
        let shown = |call: &LiveCall| Some((call.id().to_owned(), call.replayed(&*self.place, &self.looks)?));
        Underway { calls: self.calls.iter().filter_map(shown).collect(), message: self.partial.updates() }
    }

    /// Called when the arguments of a call have streamed for a while: shows it before they are complete.
    pub fn announce(&mut self, id: &str, sink: &mut impl Sink) {
        let call = self.calls.iter_mut().find(|call| call.is(id));
        if let Some(update) = call.and_then(|call| call.announce(&*self.place, &self.looks)) {
            sink.update(update);
        }
    }

    /// Names the entry of the message that follows.
    pub fn entry(&mut self, id: &str) {
        self.entry = Some(MessageId::new(id));
    }

    /// Returns what the editor has been told of a call that is under way, for a question about it.
    pub fn live_call(&mut self, id: &str) -> Option<ToolCallUpdate> {
        let at = self.calls.iter().position(|call| call.is(id))?;
        let (earlier, later) = self.calls.split_at_mut(at);
        Some(later[0].told(earlier, &*self.place, &self.looks))
    }

    /// Called when somebody has refused a call: it writes nothing that a later one could replace.
    pub fn refuse(&mut self, id: &str) {
        self.calls.iter_mut().filter(|call| call.is(id)).for_each(LiveCall::refuse);
    }

    /// Takes a piece of an answer.
    pub fn stream(&mut self, event: &AssistantEvent, sink: &mut impl Sink) {
        match event {
            AssistantEvent::TextDelta { delta, .. } => self.text(Piece::Message(self.entry.clone()), delta, sink),
            AssistantEvent::ThinkingDelta { delta, .. } => self.text(Piece::Thought(self.entry.clone()), delta, sink),
            AssistantEvent::ToolCallStart { id, name, .. } => {
                let has_terminal = self.client.shows_terminal_output();
                self.calls.push(LiveCall::new(id, name, has_terminal));
            }
            AssistantEvent::ToolCallEnd { call, .. } => {
                let at = self.calls.iter().rposition(|live| live.is(&call.id));
                let at = at.unwrap_or_else(|| self.adopt(&call.id, &call.name));
                sink.update(self.complete(at, &call.arguments));
            }
            AssistantEvent::Start(_)
            | AssistantEvent::Meta { .. }
            | AssistantEvent::TextStart { .. }
            | AssistantEvent::TextEnd { .. }
            | AssistantEvent::ThinkingStart { .. }
            | AssistantEvent::ThinkingEnd { .. }
            | AssistantEvent::ToolCallDelta { .. }
            | AssistantEvent::End(_) => {}
        }
    }

    /// Takes an event.
    pub fn event(&mut self, event: &Event<'_>, sink: &mut impl Sink) {
        match event {
            Event::AgentStart => sink.tell(Notable::Started),
            Event::AgentSettled { .. } => {
                self.abort_calls(sink);
                self.n_own_inputs = 0;
                sink.tell(Notable::Settled(Box::new(std::mem::take(&mut self.outcome))));
            }
            Event::MessageStart { message } => self.message_start(message, sink),
            Event::MessageEnd { message } => self.message_end(message, sink),
            Event::ToolExecutionStart { tool_call_id, tool_name, args } => {
                let known = self.calls.iter().position(|call| call.is(tool_call_id));
                let at = known.unwrap_or_else(|| {
                    let at = self.adopt(tool_call_id, tool_name);
                    sink.update(self.complete(at, args));
                    at
                });
                sink.update(self.calls[at].start());
            }
            Event::ToolExecutionUpdate { tool_call_id, partial_result, .. } => {
                let Some(call) = self.calls.iter_mut().find(|call| call.is(tool_call_id)) else { return };
                match call.progress(partial_result) {
                    Some(Progress::State(update)) => sink.progress(tool_call_id, *update),
                    Some(Progress::Output(data)) => sink.text(Piece::Terminal(tool_call_id.to_string()), &data),
                    None => {}
                }
            }
            Event::ToolExecutionEnd { tool_call_id, tool_name, result, is_error } => {
                self.call_end(tool_call_id, tool_name, result, *is_error, sink);
            }
            Event::SessionInfoChanged { name } => {
                self.has_title = name.is_some();
                let title = name.as_deref().map(str::to_owned);
                let info = SessionInfoUpdate::new().title(title).updated_at(self.updated.clone());
                sink.update(SessionUpdate::SessionInfoUpdate(info));
            }
            Event::TodoAutoClear => sink.tell(Notable::TodosCleared),
            Event::McpServerUpdate { .. } => {
                // Servers bring prompts.
                sink.tell(Notable::CommandsChanged);
                self.notice(event, sink);
            }
            Event::CompactionStart { .. } | Event::CompactionEnd { .. } => self.compaction(event, sink),
            _ => self.notice(event, sink),
        }
    }

    /// Called when a prompt that may be a command of an extension is sent, and when the session has answered it.
    pub fn set_commanded(&mut self, is_commanded: bool) {
        self.is_commanded = is_commanded;
    }

    /// Takes a call whose start was not streamed.
    fn adopt(&mut self, id: &str, tool: &str) -> usize {
        self.calls.push(LiveCall::new(id, tool, self.client.shows_terminal_output()));
        self.calls.len() - 1
    }

    fn complete(&mut self, at: usize, arguments: &Map<String, Value>) -> SessionUpdate {
        let (earlier, later) = self.calls.split_at_mut(at);
        later[0].complete(arguments, earlier, &*self.place, &self.looks)
    }

    fn message_start(&mut self, message: &Message, sink: &mut impl Sink) {
        if matches!(message, Message::User(_)) {
            self.outcome.note_prompt(self.entry.as_ref().map(|id| id.0.to_string()));
        }
        let blocks = match message {
            Message::User(user) => user_blocks(&user.content),
            Message::Custom(custom) if custom.display => user_blocks(&custom.content),
            Message::Other(message) => reminder(message).map_or_else(Vec::new, |content| user_blocks(&content)),
            _ => return,
        };
        self.partial.set_input(self.entry.as_ref(), blocks);
        if matches!(message, Message::User(_)) && self.n_own_inputs > 0 {
            self.n_own_inputs -= 1;
            return;
        }
        self.partial.updates().into_iter().for_each(|update| sink.update(update));
    }

    fn text(&mut self, piece: Piece, text: &str, sink: &mut impl Sink) {
        self.partial.add(&piece, text);
        sink.text(piece, text);
    }

    fn message_end(&mut self, message: &Message, sink: &mut impl Sink) {
        match message {
            Message::Assistant(answer) => self.answer_end(answer, sink),
            Message::User(user) => {
                self.updated = iso(user.timestamp);
                let mut info = SessionInfoUpdate::new().updated_at(self.updated.clone());
                if !std::mem::replace(&mut self.has_title, true) {
                    info = info.title(title_of(&user.content.text()));
                }
                sink.update(SessionUpdate::SessionInfoUpdate(info));
            }
            _ => {}
        }
        self.entry = None;
        self.partial.clear();
    }

    fn answer_end(&mut self, answer: &AssistantMessage, sink: &mut impl Sink) {
        self.outcome.note(answer);
        if answer.failed() {
            self.abort_calls(sink);
        }
        self.meter.cost += answer.usage.cost.total;
        if let Some(update) = context_tokens(answer).and_then(|used| usage(self.meter, used)) {
            sink.update(update);
        }
    }

    fn call_end(&mut self, id: &str, tool: &str, result: &ToolResult<'_>, is_error: bool, sink: &mut impl Sink) {
        let Some(at) = self.calls.iter().position(|call| call.is(id)) else { return };
        sink.progress_ended(id);
        for update in self.calls.remove(at).end(result, is_error, &*self.place) {
            sink.update(update);
        }
        if tool == "todo_write"
            && !is_error
            && let Some(phases) = result.details.as_deref().and_then(phases_of)
        {
            sink.update(SessionUpdate::Plan(plan(&phases)));
        }
    }

    /// Calls of an answer that was cut off, and of work that has ended, will not be run any more.
    fn abort_calls(&mut self, sink: &mut impl Sink) {
        for call in self.calls.drain(..) {
            sink.progress_ended(call.id());
            call.abort().into_iter().for_each(|update| sink.update(update));
        }
    }
}

/// The blocks of a user's message.
pub(crate) fn user_blocks(content: &Content) -> Vec<ContentBlock> {
    match content {
        Content::Text(text) => vec![ContentBlock::Text(TextContent::new(text.clone()))],
        Content::Blocks(blocks) => blocks.iter().filter(|block| !is_blank(block)).filter_map(content_block).collect(),
    }
}

fn is_blank(block: &Block) -> bool {
    block.as_text().is_some_and(str::is_empty)
}

/// The content of a todo reminder, which hosts get as a message of a role of its own; `None` if it is another message.
fn reminder(message: &Map<String, Value>) -> Option<Content> {
    let content = message.get("content").filter(|_| message.get("role").is_some_and(|role| role == "developer"))?;
    Content::deserialize(content).ok()
}

/// The tokens in the context after an answer; `None` if it failed before the provider counted them.
pub(crate) fn context_tokens(answer: &AssistantMessage) -> Option<u64> {
    let used = answer.usage.context_tokens();
    (used > 0 || !answer.failed()).then_some(used)
}

/// The update about context and cost; `None` while the model's window is unknown.
pub(crate) fn usage(meter: Meter, used: u64) -> Option<SessionUpdate> {
    // A session that has cost nothing has a model without prices.
    let cost = (meter.cost > 0.0).then(|| Cost::new(meter.cost, "USD"));
    (meter.window > 0).then(|| SessionUpdate::UsageUpdate(UsageUpdate::new(used, meter.window).cost(cost)))
}

/// The todo list in the details of a `todo_write` result.
pub(crate) fn phases_of(details: &Value) -> Option<Vec<TodoPhase>> {
    serde_json::from_value(details.get("phases")?.clone()).ok()
}

/// The title of a session without a name: how its first prompt begins.
pub fn title_of(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("Untitled");
    line.chars().take(MAX_TITLE).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cost_is_told_where_there_are_prices() {
        let told = |window: u64, cost: f64| json!(usage(Meter { window, cost }, 7));
        let base = json!({"sessionUpdate": "usage_update", "used": 7, "size": 100});
        let mut priced = base.clone();
        priced["cost"] = json!({"amount": 0.5, "currency": "USD"});
        assert_eq!((told(100, 0.5), told(100, 0.0), told(0, 0.5)), (priced, base, Value::Null));
    }

    /// Keeps what it gets.
    #[derive(Default)]
    struct Told {
        updates: Vec<Value>,
        unshown: Vec<String>,
    }

    impl Sink for Told {
        fn update(&mut self, update: SessionUpdate) {
            self.updates.push(json!(update));
        }

        fn text(&mut self, piece: Piece, text: &str) {
            self.update(piece.update(text));
        }

        fn progress(&mut self, _call: &str, update: SessionUpdate) {
            self.update(update);
        }

        fn progress_ended(&mut self, _call: &str) {}

        fn tell(&mut self, notable: Notable) {
            if let Notable::Unshown(text) = notable {
                self.unshown.push(text);
            }
        }

        fn log(&mut self, _text: &str) {}
    }

    /// Tells a translator of messages; returns the updates.
    fn tell(translator: &mut Translator, messages: &[Value]) -> Vec<Value> {
        let mut told = Told::default();
        for message in messages {
            let message: Message = serde_json::from_value(message.clone()).expect("a message");
            translator.entry("e");
            translator.event(&Event::MessageStart { message: std::borrow::Cow::Borrowed(&message) }, &mut told);
            translator.event(&Event::MessageEnd { message: std::borrow::Cow::Borrowed(&message) }, &mut told);
        }
        told.updates
    }

    fn translator() -> Translator {
        let mut translator = Translator::new("/w".into(), Client::default());
        translator.set_window(100);
        translator
    }

    fn input(text: &str) -> Value {
        json!({"role": "user", "content": text, "timestamp": 1_763_000_000_000_i64})
    }

    #[test]
    fn inputs_that_were_taken_back_do_not_hide_those_of_extensions() {
        let mut translator = translator();
        translator.expect_input();
        translator.expect_input();
        translator.forget_inputs(1);
        let shown = |updates: Vec<Value>| updates.iter().filter(|told| told["content"].is_object()).count();
        assert_eq!(shown(tell(&mut translator, &[input("of the editor")])), 0);
        assert_eq!(shown(tell(&mut translator, &[input("of an extension")])), 1);
    }

    #[test]
    fn a_failed_answer_leaves_the_meter_as_it_is() {
        let answer = |reason: &str, tokens: u64| {
            let usage = json!({"input": tokens, "output": 0, "totalTokens": tokens, "cost": {"total": 0.0}});
            json!({"role": "assistant", "content": [], "usage": usage, "stopReason": reason, "timestamp": 2})
        };
        let used = |message: Value| tell(&mut translator(), &[message]).first().map(|told| told["used"].clone());
        assert_eq!(used(answer("error", 0)), None);
        assert_eq!(used(answer("aborted", 7)), Some(json!(7)));
        assert_eq!(used(answer("stop", 0)), Some(json!(0)));
    }

    #[test]
    fn todo_reminders_are_shown() {
        let reminder = json!({"role": "developer", "content": [{"type": "text", "text": "Go on"}], "timestamp": 1});
        let updates = tell(&mut translator(), &[reminder, json!({"role": "else", "content": "hidden"})]);
        let expected = json!({"sessionUpdate": "user_message_chunk", "messageId": "e",
            "content": {"type": "text", "text": "Go on"}});
        assert_eq!(updates, [expected]);
    }

    #[test]
    fn a_new_name_says_when_the_session_was_used_last() {
        let (mut translator, mut told) = (translator(), Told::default());
        tell(&mut translator, &[input("hi")]);
        translator.event(&Event::SessionInfoChanged { name: Some("N".into()) }, &mut told);
        assert_eq!(told.updates[0]["title"], "N");
        assert!(
            told.updates[0]["updatedAt"].as_str().is_some_and(|time| time.starts_with("2025-11-1")),
            "{:?}",
            told.updates
        );
    }

    #[test]
    fn what_an_extension_says_is_kept_where_there_are_no_notices() {
        let mut told = Told::default();
        translator().notify(agent_client_protocol_schema::v1::NoticeSeverity::Info, "Not trusted", &mut told);
        assert_eq!(told.unshown, ["Not trusted"]);
    }

    #[test]
    fn what_is_under_way_is_shown_to_those_who_come_later() {
        let (mut translator, mut told) = (translator(), Told::default());
        translator.entry("e");
        for delta in ["one ", "two"] {
            translator.stream(&AssistantEvent::TextDelta { index: 0, delta: delta.to_owned() }, &mut told);
        }
        let (id, name) = ("c".to_owned(), "bash".to_owned());
        translator.stream(&AssistantEvent::ToolCallStart { index: 1, id, name }, &mut told);
        assert_eq!(translator.underway().calls().count(), 0, "nobody was told of it");
        translator.announce("c", &mut told);
        let underway = translator.underway();
        assert_eq!(json!(underway.message)[0]["content"]["text"], "one two");
        assert_eq!(underway.calls().collect::<Vec<_>>(), ["c"]);
        assert_eq!(tell(&mut translator, &[input("next")]).len(), 2);
        assert!(translator.underway().message.is_empty());
    }

    #[test]
    fn a_title_is_the_first_line_of_the_prompt() {
        assert_eq!(title_of("\n  Make it \nnow"), "Make it");
        assert_eq!(title_of(" \n"), "Untitled");
        assert_eq!(title_of(&"é".repeat(200)).chars().count(), MAX_TITLE);
    }
}
