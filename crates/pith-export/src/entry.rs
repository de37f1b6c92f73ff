//! One entry as a section of the page.

use std::io;

use pith_protocol::{AssistantMessage, Block, CustomMessage, Message, StopReason, ToolCall, ToolResultMessage};
use pith_store::{EntryReader, EntryTree, Kind, Role, StoredEntry};
use serde_json::{Map, Value};

use crate::blocks::{any_block, content, json};
use crate::card::{Card, host_command, lone_call};
use crate::html::{Html, anchor};
use crate::markdown::markdown;
use crate::outline::{Outline, Row};
use crate::words;

/// Writes entries in any order, reading each when its turn comes.
pub(crate) struct Entries<'t> {
    tree: &'t EntryTree,
    outline: &'t Outline<'t>,
    reader: EntryReader<'t>,
    /// Goes back to the message a result belongs to without disturbing the other reader.
    callers: EntryReader<'t>,
    /// The calls of the last such message; results of one batch follow each other.
    last_caller: Option<(usize, Vec<ToolCall>)>,
}

/// An entry with everything its section shows around the content.
struct Section<'a> {
    position: usize,
    row: &'a Row<'a>,
    anchor: String,
    label: Option<&'a str>,
}

impl<'t> Entries<'t> {
    pub fn new(tree: &'t EntryTree, outline: &'t Outline<'t>) -> Self {
        Entries { tree, outline, reader: tree.reader(), callers: tree.reader(), last_caller: None }
    }

    /// Writes the entry at a position. Fails only if the page cannot be written.
    pub fn write(&mut self, html: &mut Html<'_>, position: usize) -> io::Result<()> {
        let row = &self.outline.rows[position];
        let label = self.tree.label(row.entry.id).map(|label| &*label.text);
        let section = Section { position, row, anchor: anchor(row.entry.id), label };
        let stored = match self.reader.read(position) {
            Ok(stored) => stored,
            Err(error) => return section.unreadable(html, &error),
        };
        match stored.message() {
            Ok(Some(Message::ToolResult(result))) => {
                let call = row.answers.and_then(|answers| self.call(answers));
                section.tool_result(html, call.as_ref(), &result)
            }
            Ok(Some(message)) => section.message(html, &message, self.outline),
            Ok(None) => section.setting(html, &stored),
            Err(error) => section.unreadable(html, &error),
        }
    }

    fn call(&mut self, (position, n_call): (usize, usize)) -> Option<ToolCall> {
        if self.last_caller.as_ref().is_none_or(|(last, _)| *last != position) {
            let message = self.callers.read(position).ok()?.message().ok()??;
            let calls = message.as_assistant()?.tool_calls().cloned().collect();
            self.last_caller = Some((position, calls));
        }
        let (_, calls) = self.last_caller.as_ref()?;
        calls.get(n_call).cloned()
    }
}

impl Section<'_> {
    fn message(&self, html: &mut Html<'_>, message: &Message, outline: &Outline<'_>) -> io::Result<()> {
        match message {
            Message::User(message) => {
                self.open(html, "user")?;
                self.header(html, "You", "")?;
                content(html, &message.content)?;
            }
            Message::Assistant(message) => self.answer(html, message, outline)?,
            Message::BashExecution(run) => {
                self.open(html, "tool host")?;
                host_command(html, run, |html| self.marks(html))?;
            }
            Message::Custom(message) => self.custom(html, message)?,
            Message::CompactionSummary(message) => {
                let before = format!("{} tokens before", words::short(message.tokens_before));
                self.summary(html, "Context compacted", &before, &message.summary)?;
            }
            Message::BranchSummary(message) => {
                self.summary(html, "Summary of a branch that was left", "", &message.summary)?
            }
            Message::ToolResult(result) => return self.tool_result(html, None, result),
            Message::Other(object) => return self.minor(html, "Message ", message.role(), object),
        }
        html.markup("</section>\n")
    }

    fn answer(&self, html: &mut Html<'_>, message: &AssistantMessage, outline: &Outline<'_>) -> io::Result<()> {
        let has_text = message.content.iter().any(|block| !matches!(block, Block::ToolCall(_)));
        let is_bare = !has_text && !message.failed();
        self.open(html, if is_bare { "assistant bare" } else { "assistant" })?;
        let usage = &message.usage;
        let spent = match (usage.context_tokens(), usage.cost.total) {
            (0, _) => String::new(),
            (_, cost) => format!(
                "{} in · {} out · {}",
                words::short(usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)),
                words::short(usage.output),
                words::dollars(cost)
            ),
        };
        let who = if message.model.is_empty() { "Assistant" } else { &message.model };
        self.header(html, who, &spent)?;
        let mut n_calls = 0;
        for block in &message.content {
            match block {
                Block::Text(block) => markdown(html, &block.text)?,
                Block::ToolCall(call) => {
                    let is_answered = outline.is_answered(self.position, n_calls);
                    // On the only branch the card of the result always stands for it.
                    if !is_answered || outline.has_branches {
                        html.markup("<div class=call data-call=\"")?;
                        html.number(self.position)?;
                        html.markup(".")?;
                        html.number(n_calls)?;
                        html.markup(if is_answered { "\" hidden>" } else { "\">" })?;
                        lone_call(html, call)?;
                        html.markup("</div>")?;
                    }
                    n_calls += 1;
                }
                other => any_block(html, other)?,
            }
        }
        match (message.stop_reason, &message.error_message) {
            (StopReason::Aborted, None) => html.markup("<p class=fault>Aborted</p>"),
            (StopReason::Error, None) => html.markup("<p class=fault>The request failed.</p>"),
            (StopReason::Error | StopReason::Aborted, Some(error)) => html.element("<p class=fault>", error, "</p>"),
            (StopReason::Length, _) => html.markup("<p class=note>Cut off by the output limit.</p>"),
            (StopReason::Stop | StopReason::ToolUse, _) => Ok(()),
        }
    }

    fn tool_result(&self, html: &mut Html<'_>, call: Option<&ToolCall>, result: &ToolResultMessage) -> io::Result<()> {
        self.open_with(html, if result.is_error { "tool failed" } else { "tool" }, |html| match self.row.answers {
            Some((position, n_call)) => {
                html.markup(" data-result=\"")?;
                html.number(position)?;
                html.markup(".")?;
                html.number(n_call)?;
                html.markup("\"")
            }
            None => Ok(()),
        })?;
        Card { call, result }.write(html, |html| self.marks(html))?;
        html.markup("</section>\n")
    }

    fn custom(&self, html: &mut Html<'_>, message: &CustomMessage) -> io::Result<()> {
        self.open(html, if message.display { "custom" } else { "custom minor" })?;
        self.header(html, &message.custom_type, "")?;
        content(html, &message.content)
    }

    fn summary(&self, html: &mut Html<'_>, title: &'static str, note: &str, summary: &str) -> io::Result<()> {
        self.open(html, "summary")?;
        html.markup("<details><summary><b>")?;
        html.markup(title)?;
        html.element("</b> <span class=note>", note, "</span>")?;
        self.marks(html)?;
        html.markup("</summary>")?;
        markdown(html, summary)?;
        html.markup("</details>")
    }

    /// Writes an entry that is no part of the conversation.
    fn setting(&self, html: &mut Html<'_>, stored: &StoredEntry<'_>) -> io::Result<()> {
        let members = match stored.members() {
            Ok(members) => members,
            Err(error) => return self.unreadable(html, &error),
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        match stored.outline.kind {
            Kind::ModelChange => {
                let model = format!("{}/{}", text("provider"), text("modelId"));
                self.change(html, "Model ", &model)
            }
            Kind::ThinkingLevelChange => self.change(html, "Thinking ", text("thinkingLevel")),
            Kind::Message(Role::System) => self.system(html, &members),
            Kind::SessionInfo => self.minor(html, "Name ", text("name"), &members),
            Kind::Label => self.minor(html, "Label ", text("label"), &members),
            Kind::Custom => self.minor(html, "Data of ", text("customType"), &members),
            Kind::ContextEdit => self.minor(html, "Context edit of ", text("targetId"), &members),
            Kind::Usage => self.minor(html, "Usage ", text("kind"), &members),
            Kind::BranchSummary => self.minor(html, "Left branch ", text("fromId"), &members),
            Kind::Message(_) | Kind::Compaction | Kind::CustomMessage | Kind::Other => {
                self.minor(html, "Entry ", text("type"), &members)
            }
        }
    }

    fn change(&self, html: &mut Html<'_>, what: &'static str, value: &str) -> io::Result<()> {
        self.open(html, "change")?;
        html.markup("<p>")?;
        html.markup(what)?;
        html.element("<b>", value, "</b>")?;
        self.marks(html)?;
        html.markup("</p></section>\n")
    }

    /// Writes the prompt that another program stored in the conversation.
    fn system(&self, html: &mut Html<'_>, members: &Map<String, Value>) -> io::Result<()> {
        self.open(html, "summary")?;
        html.markup("<details><summary><b>System prompt</b>")?;
        self.marks(html)?;
        html.markup("</summary>")?;
        match members.get("message").and_then(|message| message.get("content")) {
            Some(Value::String(text)) => html.element("<pre class=text>", text, "</pre>")?,
            Some(other) => json(html, other)?,
            None => {}
        }
        html.markup("</details></section>\n")
    }

    /// Writes an entry that is shown only on request: bookkeeping, or a kind that this version does not know.
    fn minor(
        &self,
        html: &mut Html<'_>,
        what: &'static str,
        value: &str,
        members: &Map<String, Value>,
    ) -> io::Result<()> {
        self.open(html, "minor")?;
        html.markup("<details><summary>")?;
        html.markup(what)?;
        html.element("<b>", value, "</b>")?;
        self.marks(html)?;
        html.markup("</summary>")?;
        json(html, members)?;
        html.markup("</details></section>\n")
    }

    fn unreadable(&self, html: &mut Html<'_>, error: &io::Error) -> io::Result<()> {
        self.open(html, "broken")?;
        html.element("<p class=fault>This entry cannot be read: ", &error.to_string(), "</p></section>\n")
    }

    fn open(&self, html: &mut Html<'_>, class: &'static str) -> io::Result<()> {
        self.open_with(html, class, |_| Ok(()))
    }

    fn open_with(
        &self,
        html: &mut Html<'_>,
        class: &'static str,
        attributes: impl FnOnce(&mut Html<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        html.markup("<section class=\"entry ")?;
        html.markup(class)?;
        html.markup("\"")?;
        html.attribute("id", &self.anchor)?;
        html.markup(" data-n=")?;
        html.number(self.position)?;
        attributes(html)?;
        html.markup(">")
    }

    fn header(&self, html: &mut Html<'_>, who: &str, note: &str) -> io::Result<()> {
        html.element("<header><h2>", who, "</h2>")?;
        html.element("<span class=note>", note, "</span>")?;
        self.marks(html)?;
        html.markup("</header>")
    }

    /// Writes the label and the link to the entry, which is its time.
    fn marks(&self, html: &mut Html<'_>) -> io::Result<()> {
        if let Some(label) = self.label {
            html.element("<mark>", label, "</mark>")?;
        }
        html.markup("<a class=time")?;
        html.attribute("href", &format!("#{}", self.anchor))?;
        html.attribute("title", &words::iso(self.row.entry.timestamp))?;
        html.element(">", &words::clock(self.row.entry.timestamp), "</a>")
    }
}
