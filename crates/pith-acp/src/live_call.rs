//! A tool call that is under way: what the editor has been told of it.

use std::path::Path;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use pith_protocol::ToolResult;
use serde_json::{Map, Value, json};

use crate::call::{self, Finished, Shown};
use crate::client::meta;
use crate::looks::Looks;

/// How long the arguments of a call may stream before it is announced without them.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(100);

/// A call between its start in the model's answer and its end.
pub(crate) struct LiveCall {
    id: String,
    tool: String,
    /// Which block of the answer it is.
    pub index: usize,
    since: Instant,
    is_announced: bool,
    /// Complete arguments; empty while they stream.
    arguments: Map<String, Value>,
    display: Display,
}

/// Where the client shows the output of a call.
enum Display {
    /// In the content of the call.
    Content,
    /// In a terminal that updates feed; it has got this much.
    FedTerminal(String),
    /// In a terminal in which the client runs the command.
    OwnTerminal,
}

impl LiveCall {
    pub fn new(id: &str, tool: &str, index: usize, has_terminal: bool, now: Instant) -> Self {
        LiveCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            index,
            since: now,
            is_announced: false,
            arguments: Map::new(),
            display: if has_terminal && tool == "bash" {
                Display::FedTerminal(String::new())
            } else {
                Display::Content
            },
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it is the call of that id.
    pub fn is(&self, id: &str) -> bool {
        self.id == id
    }

    /// Whether its output goes to the client's terminal, piece by piece.
    pub fn feeds_terminal(&self) -> bool {
        matches!(self.display, Display::FedTerminal(_))
    }

    /// Called for each piece of the arguments: a long call is announced before it is complete.
    pub fn grow(&mut self, now: Instant, looks: &Looks) -> Option<SessionUpdate> {
        if self.is_announced || now.duration_since(self.since) < ANNOUNCED_AFTER {
            return None;
        }
        self.is_announced = true;
        let kind = call::kind(&self.tool, looks);
        let call = ToolCall::new(self.id.clone(), self.tool.clone()).name(self.tool.clone()).kind(kind);
        Some(SessionUpdate::ToolCall(call))
    }

    /// Called when the arguments are complete.
    pub fn complete(&mut self, arguments: &Map<String, Value>, cwd: &Path, looks: &Looks) -> SessionUpdate {
        self.arguments = arguments.clone();
        let Shown { title, kind, locations, content } = call::shown(&self.tool, arguments, cwd, looks);
        let raw_input = Value::Object(arguments.clone());
        let (content, info) = if self.feeds_terminal() {
            let terminal = ToolCallContent::Terminal(Terminal::new(self.id.clone()));
            (vec![terminal], Some(meta(json!({"terminal_info": {"terminal_id": self.id, "cwd": cwd}}))))
        } else {
            (content, None)
        };
        if self.is_announced {
            let fields = ToolCallUpdateFields::new()
                .title(title)
                .raw_input(raw_input)
                .locations((!locations.is_empty()).then_some(locations))
                .content((!content.is_empty()).then_some(content));
            return SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), fields).meta(info));
        }
        self.is_announced = true;
        let call = ToolCall::new(self.id.clone(), title)
            .name(self.tool.clone())
            .kind(kind)
            .locations(locations)
            .content(content)
            .raw_input(raw_input)
            .meta(info);
        SessionUpdate::ToolCall(call)
    }

    /// Returns the call as it was announced.
    pub fn told(&self, cwd: &Path, looks: &Looks) -> ToolCallUpdate {
        let Shown { title, kind, locations, content } = call::shown(&self.tool, &self.arguments, cwd, looks);
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .name(self.tool.clone())
            .kind(kind)
            .status(ToolCallStatus::Pending)
            .raw_input(Value::Object(self.arguments.clone()))
            .locations((!locations.is_empty()).then_some(locations))
            .content((!content.is_empty()).then_some(content));
        ToolCallUpdate::new(self.id.clone(), fields)
    }

    /// Called when the tool starts.
    pub fn start(&self) -> SessionUpdate {
        self.update(ToolCallUpdateFields::new().status(ToolCallStatus::InProgress))
    }

    /// Called with what is known of the result so far; `None` if there is nothing new to show.
    pub fn progress(&mut self, result: &ToolResult<'_>) -> Option<SessionUpdate> {
        if let Some(terminal) = call::terminal_of(result.details.as_deref()) {
            self.display = Display::OwnTerminal;
            let terminal = ToolCallContent::Terminal(Terminal::new(terminal.to_owned()));
            return Some(self.update(ToolCallUpdateFields::new().content(vec![terminal])));
        }
        let text = call::text_of(&result.content);
        match self.display {
            Display::Content => {}
            Display::FedTerminal(_) => return self.new_output(&text).map(|data| self.terminal_output(&data)),
            Display::OwnTerminal => return None,
        }
        let content = if self.tool == "bash" { call::fenced(&text) } else { call::contents(&result.content) };
        (!content.is_empty()).then(|| self.update(ToolCallUpdateFields::new().content(content)))
    }

    /// Called when the tool has ended.
    pub fn end(mut self, result: &ToolResult<'_>, is_error: bool, cwd: &Path) -> Vec<SessionUpdate> {
        let details = result.details.as_deref();
        let Finished { content, raw_output, locations } =
            call::finished(&self.tool, &self.arguments, &result.content, details, is_error, cwd);
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new().status(status).raw_output(raw_output).locations(locations);
        match self.display {
            Display::Content => return vec![self.update(fields.content(content))],
            // It stays where it is shown.
            Display::OwnTerminal => return vec![self.update(fields)],
            Display::FedTerminal(_) => {}
        }
        let text = call::text_of(&result.content);
        let rest = self.new_output(&text).map(|data| self.terminal_output(&data));
        let exit_code = call::exit_code(&text, is_error);
        let exit = json!({"terminal_exit": {"terminal_id": self.id, "exit_code": exit_code, "signal": null}});
        let end = ToolCallUpdate::new(self.id.clone(), fields).meta(meta(exit));
        rest.into_iter().chain([SessionUpdate::ToolCallUpdate(end)]).collect()
    }

    /// Called when the call will not end any more; `None` if the editor does not know it.
    pub fn abort(self) -> Option<SessionUpdate> {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(call::aborted());
        self.is_announced.then(|| self.update(fields))
    }

    fn update(&self, fields: ToolCallUpdateFields) -> SessionUpdate {
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), fields))
    }

    fn terminal_output(&self, data: &str) -> SessionUpdate {
        let output = meta(json!({"terminal_output": {"terminal_id": self.id, "data": data}}));
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), ToolCallUpdateFields::new()).meta(output))
    }

    /// What `text`, the end of all output so far, adds to what the terminal has got.
    fn new_output(&mut self, text: &str) -> Option<String> {
        let Display::FedTerminal(known) = &mut self.display else { return None };
        let new = match text.strip_prefix(known.as_str()) {
            Some(new) => new.to_owned(),
            None => match overlap(known, text) {
                0 => format!("\n[…]\n{text}"),
                shared => text[shared..].to_owned(),
            },
        };
        *known = text.to_owned();
        (!new.is_empty()).then_some(new)
    }
}

/// How many bytes at the end of `known` are the beginning of `text`: the report shows only the end of the output.
fn overlap(known: &str, text: &str) -> usize {
    let longest = known.len().min(text.len());
    let is_shared = |&length: &usize| {
        text.is_char_boundary(length) && known.as_bytes()[known.len() - length..] == text.as_bytes()[..length]
    };
    (1..=longest).rev().find(is_shared).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_only_what_is_new() {
        let mut call = LiveCall::new("c", "bash", 0, true, Instant::now());
        let mut check = |text: &str, expected: Option<&str>| assert_eq!(call.new_output(text).as_deref(), expected);
        check("one\n", Some("one\n"));
        check("one\ntwo\n", Some("two\n"));
        check("one\ntwo\n", None);
        check("two\nthree\n", Some("three\n"));
        check("nine\n", Some("\n[…]\nnine\n"));
    }
}
