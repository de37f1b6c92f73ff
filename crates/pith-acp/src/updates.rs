//! Turns what a live session tells into updates for the editor.

use std::path::PathBuf;
use std::time::Instant;

use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, MessageId, Notice, NoticeSeverity,
    SessionInfoUpdate, SessionUpdate, TextContent, ToolCallUpdate, UsageUpdate,
};
use pith_protocol::todos::TodoPhase;
use pith_protocol::{AssistantEvent, AssistantMessage, Block, Content, Event, Message, ToolResult};
use serde_json::Value;

use crate::call::content_block;
use crate::live_call::{LiveCall, Progress};
use crate::looks::Looks;
use crate::notices;
use crate::piece::Piece;
use crate::plan::plan;
use crate::time::iso;
use crate::{Client, outcome::Outcome};

/// How much of a prompt may become the title of its session.
const MAX_TITLE: usize = 80;

/// What a session has told its editor so far, as far as later updates depend on it.
pub struct Translator {
    cwd: PathBuf,
    client: Client,
    looks: Looks,
    /// The entry that the message being told will have in the session file.
    entry: Option<MessageId>,
    calls: Vec<LiveCall>,
    /// Inputs of the editor that have not appeared as messages yet. The editor shows those itself.
    n_own_inputs: usize,
    meter: Meter,
    has_title: bool,
    n_compactions: u32,
    /// Whether the user's prompt may be a command that is being carried out.
    is_commanded: bool,
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
            cwd,
            client,
            looks: Looks::default(),
            entry: None,
            calls: Vec::new(),
            n_own_inputs: 0,
            meter: Meter::default(),
            has_title: false,
            n_compactions: 0,
            is_commanded: false,
            outcome: Outcome::default(),
        }
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

    /// Called when the session has accepted an input of the editor.
    pub fn expect_input(&mut self) {
        self.n_own_inputs += 1;
    }

    /// Names the entry of the message that follows.
    pub fn entry(&mut self, id: &str) {
        self.entry = Some(MessageId::new(id));
    }

    /// Returns what the editor has been told of a call that is under way, for a question about it.
    pub fn live_call(&self, id: &str) -> Option<ToolCallUpdate> {
        self.calls.iter().find(|call| call.is(id)).map(|call| call.told(&self.cwd, &self.looks))
    }

    /// Takes a piece of an answer.
    pub fn stream(&mut self, event: &AssistantEvent, sink: &mut impl Sink) {
        match event {
            AssistantEvent::TextDelta { delta, .. } => sink.text(Piece::Message(self.entry.clone()), delta),
            AssistantEvent::ThinkingDelta { delta, .. } => sink.text(Piece::Thought(self.entry.clone()), delta),
            AssistantEvent::ToolCallStart { index, id, name } => {
                let has_terminal = self.client.shows_terminal_output();
                self.calls.push(LiveCall::new(id, name, *index, has_terminal, Instant::now()));
            }
            AssistantEvent::ToolCallDelta { index, .. } => {
                let call = self.calls.iter_mut().rfind(|call| call.index == *index);
                if let Some(update) = call.and_then(|call| call.grow(Instant::now(), &self.cwd, &self.looks)) {
                    sink.update(update);
                }
            }
            AssistantEvent::ToolCallEnd { index, call } => {
                let at = self.calls.iter().rposition(|live| live.is(&call.id));
                let at = at.unwrap_or_else(|| self.adopt(&call.id, &call.name, *index));
                sink.update(self.calls[at].complete(&call.arguments, &self.cwd, &self.looks));
            }
            AssistantEvent::Start(_)
            | AssistantEvent::Meta { .. }
            | AssistantEvent::TextStart { .. }
            | AssistantEvent::TextEnd { .. }
            | AssistantEvent::ThinkingStart { .. }
            | AssistantEvent::ThinkingEnd { .. }
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
                    let at = self.adopt(tool_call_id, tool_name, usize::MAX);
                    sink.update(self.calls[at].complete(args, &self.cwd, &self.looks));
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
                sink.update(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title)));
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

    /// Passes on what an extension tells the user. Where the client shows no notices, what a command says is its answer.
    pub fn notify(&self, severity: NoticeSeverity, text: &str, sink: &mut impl Sink) {
        if self.is_commanded && !self.client.shows_notices() {
            let block = ContentBlock::Text(TextContent::new(format!("{text}\n")));
            return sink.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)));
        }
        self.say(severity, text, None, sink);
    }

    /// Tells the user something beside the conversation.
    pub fn say(&self, severity: NoticeSeverity, title: &str, description: Option<String>, sink: &mut impl Sink) {
        if self.client.shows_notices() && !title.is_empty() {
            return sink.update(SessionUpdate::Notice(Notice::new(severity, title).description(description)));
        }
        sink.log(&description.map_or_else(|| title.to_owned(), |text| format!("{title}: {text}")));
    }

    fn chunk(&self, content: ContentBlock) -> ContentChunk {
        ContentChunk::new(content).message_id(self.entry.clone())
    }

    /// Takes a call whose start was not streamed.
    fn adopt(&mut self, id: &str, tool: &str, index: usize) -> usize {
        self.calls.push(LiveCall::new(id, tool, index, self.client.shows_terminal_output(), Instant::now()));
        self.calls.len() - 1
    }

    fn message_start(&mut self, message: &Message, sink: &mut impl Sink) {
        if matches!(message, Message::User(_)) {
            self.outcome.note_prompt(self.entry.as_ref().map(|id| id.0.to_string()));
        }
        match message {
            Message::User(_) if self.n_own_inputs > 0 => self.n_own_inputs -= 1,
            Message::User(user) => self.show_user(&user.content, sink),
            Message::Custom(custom) if custom.display => self.show_user(&custom.content, sink),
            _ => {}
        }
    }

    fn show_user(&self, content: &Content, sink: &mut impl Sink) {
        for block in user_blocks(content) {
            sink.update(SessionUpdate::UserMessageChunk(self.chunk(block)));
        }
    }

    fn message_end(&mut self, message: &Message, sink: &mut impl Sink) {
        match message {
            Message::Assistant(answer) => self.answer_end(answer, sink),
            Message::User(user) => {
                let mut info = SessionInfoUpdate::new().updated_at(iso(user.timestamp));
                if !std::mem::replace(&mut self.has_title, true) {
                    info = info.title(title_of(&user.content.text()));
                }
                sink.update(SessionUpdate::SessionInfoUpdate(info));
            }
            _ => {}
        }
        self.entry = None;
    }

    fn answer_end(&mut self, answer: &AssistantMessage, sink: &mut impl Sink) {
        self.outcome.note(answer);
        if answer.failed() {
            self.abort_calls(sink);
        }
        self.meter.cost += answer.usage.cost.total;
        if let Some(update) = usage(self.meter, answer.usage.context_tokens()) {
            sink.update(update);
        }
    }

    fn call_end(&mut self, id: &str, tool: &str, result: &ToolResult<'_>, is_error: bool, sink: &mut impl Sink) {
        let Some(at) = self.calls.iter().position(|call| call.is(id)) else { return };
        sink.progress_ended(id);
        for update in self.calls.remove(at).end(result, is_error, &self.cwd) {
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

    fn compaction(&mut self, event: &Event<'_>, sink: &mut impl Sink) {
        let update = match event {
            Event::CompactionEnd { result, aborted, error_message, .. } => {
                let id = format!("compaction-{}", self.n_compactions);
                match (result, error_message) {
                    (Some(result), _) => CompactionUpdate::new(id, CompactionStatus::Completed)
                        .summary(vec![ContentBlock::Text(TextContent::new(result.summary.clone()))]),
                    (None, _) if *aborted => CompactionUpdate::new(id, CompactionStatus::Cancelled),
                    (None, error) => CompactionUpdate::new(id, CompactionStatus::Failed)
                        .error(error.as_deref().unwrap_or("the summary was not written").to_owned()),
                }
            }
            _ => {
                self.n_compactions += 1;
                CompactionUpdate::new(format!("compaction-{}", self.n_compactions), CompactionStatus::InProgress)
            }
        };
        if matches!(event, Event::CompactionEnd { .. }) {
            sink.tell(Notable::Compacted);
        }
        if self.client.shows_compactions() {
            sink.update(SessionUpdate::CompactionUpdate(update));
        } else if let Event::CompactionEnd { error_message: Some(error), .. } = event {
            sink.log(&format!("the conversation was not summarised: {error}"));
        }
    }

    fn notice(&mut self, event: &Event<'_>, sink: &mut impl Sink) {
        if let Some((severity, title, description)) = notices::of(event) {
            if !self.client.shows_notices() {
                sink.tell(Notable::Unshown(format!("{title}: {description}")));
            }
            self.say(severity, &title, Some(description), sink);
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

    #[test]
    fn a_title_is_the_first_line_of_the_prompt() {
        assert_eq!(title_of("\n  Make it \nnow"), "Make it");
        assert_eq!(title_of(" \n"), "Untitled");
        assert_eq!(title_of(&"é".repeat(200)).chars().count(), MAX_TITLE);
    }
}
