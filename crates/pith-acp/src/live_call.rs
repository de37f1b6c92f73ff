//! A tool call that is under way: what the editor has been told of it.

use std::path::Path;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use pith_protocol::ToolResult;
use serde_json::{Map, Value};

use crate::call::{self, Finished, Shown};
use crate::diff;
use crate::looks::Looks;
use crate::terminal;

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
    /// What a file holds that `write` is about to replace; `None` for a new file.
    replaced: Option<String>,
    display: Display,
}

/// News of a call that runs.
pub(crate) enum Progress {
    /// Its state, which replaces what was shown.
    State(Box<SessionUpdate>),
    /// What the command has added to its terminal.
    Output(String),
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
            replaced: None,
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

    /// The terminal that the client makes for its output, if that is where it goes.
    fn terminal(&self, cwd: &Path) -> Option<(Vec<ToolCallContent>, Meta)> {
        let is_fed = matches!(self.display, Display::FedTerminal(_));
        is_fed.then(|| (terminal::content(&self.id), terminal::info(&self.id, cwd)))
    }

    /// Called for each piece of the arguments: a long call is announced before it is complete.
    pub fn grow(&mut self, now: Instant, cwd: &Path, looks: &Looks) -> Option<SessionUpdate> {
        if self.is_announced || now.duration_since(self.since) < ANNOUNCED_AFTER {
            return None;
        }
        self.is_announced = true;
        let kind = call::kind(&self.tool, looks);
        let call = ToolCall::new(self.id.clone(), self.tool.clone()).name(self.tool.clone()).kind(kind);
        // Clients make the terminal when the call appears, not later.
        let (content, info) = self.terminal(cwd).unzip();
        Some(SessionUpdate::ToolCall(call.content(content.unwrap_or_default()).meta(info)))
    }

    /// Called when the arguments are complete.
    pub fn complete(&mut self, arguments: &Map<String, Value>, cwd: &Path, looks: &Looks) -> SessionUpdate {
        self.arguments = arguments.clone();
        if self.tool == "write" {
            let current = call::path_of(arguments, cwd).and_then(|path| diff::current(&path));
            // The call may have run already, if nobody has to approve it.
            self.replaced = current.filter(|text| arguments.get("content").is_none_or(|content| content != text));
        }
        let Shown { title, kind, locations, content } = self.shown(cwd, looks);
        let raw_input = Value::Object(arguments.clone());
        if self.is_announced {
            let fields = ToolCallUpdateFields::new()
                .title(title)
                .raw_input(raw_input)
                .locations((!locations.is_empty()).then_some(locations))
                .content((!content.is_empty()).then_some(content));
            return self.update(fields);
        }
        self.is_announced = true;
        let (content, info) = self.terminal(cwd).map_or((content, None), |(content, info)| (content, Some(info)));
        let call = ToolCall::new(self.id.clone(), title)
            .name(self.tool.clone())
            .kind(kind)
            .locations(locations)
            .content(content)
            .raw_input(raw_input)
            .meta(info);
        SessionUpdate::ToolCall(call)
    }

    /// What is shown of it by its arguments, and by what it is about to replace.
    fn shown(&self, cwd: &Path, looks: &Looks) -> Shown {
        let shown = call::shown(&self.tool, &self.arguments, cwd, looks);
        let content = self.overwriting(cwd).unwrap_or(shown.content);
        Shown { content, ..shown }
    }

    /// The change of a file that was there before the call.
    fn overwriting(&self, cwd: &Path) -> Option<Vec<ToolCallContent>> {
        let (old, path) = (self.replaced.as_deref()?, call::path_of(&self.arguments, cwd)?);
        let new = self.arguments.get("content")?.as_str()?;
        Some(diff::change(&path, Some(old), new))
    }

    /// Returns the call as it was announced.
    pub fn told(&self, cwd: &Path, looks: &Looks) -> ToolCallUpdate {
        let Shown { title, kind, locations, content } = self.shown(cwd, looks);
        // Clients put this in the place of what they show.
        let content = self.terminal(cwd).map_or(content, |(terminal, _)| terminal);
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
    pub fn progress(&mut self, result: &ToolResult<'_>) -> Option<Progress> {
        if let Some(terminal) = call::terminal_of(result.details.as_deref()) {
            self.display = Display::OwnTerminal;
            let fields = ToolCallUpdateFields::new().content(terminal::content(terminal));
            return Some(Progress::State(Box::new(self.update(fields))));
        }
        let text = call::text_of(&result.content);
        match self.display {
            Display::Content => {}
            Display::FedTerminal(_) => return self.new_output(&text).map(Progress::Output),
            Display::OwnTerminal => return None,
        }
        let content = if self.tool == "bash" { call::fenced(&text) } else { call::contents(&result.content) };
        if content.is_empty() {
            return None;
        }
        Some(Progress::State(Box::new(self.update(ToolCallUpdateFields::new().content(content)))))
    }

    /// Called when the tool has ended.
    pub fn end(mut self, result: &ToolResult<'_>, is_error: bool, cwd: &Path) -> Vec<SessionUpdate> {
        let details = result.details.as_deref();
        let Finished { content, raw_output, locations } =
            call::finished(&self.tool, &self.arguments, &result.content, details, is_error, cwd);
        let content = self.overwriting(cwd).filter(|_| !is_error).unwrap_or(content);
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new().status(status).raw_output(raw_output).locations(locations);
        match self.display {
            Display::Content => return vec![self.update(fields.content(content))],
            // It stays where it is shown.
            Display::OwnTerminal => return vec![self.update(fields)],
            Display::FedTerminal(_) => {}
        }
        let text = call::text_of(&result.content);
        let rest = self.new_output(&text).map(|data| terminal::output(&self.id, &data));
        let exit = terminal::exit(&self.id, call::exit_code(&text, is_error), call::signal_of(details));
        let end = ToolCallUpdate::new(self.id.clone(), fields).meta(exit);
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_whose_arguments_take_long_is_announced_without_them() {
        let (start, cwd, looks) = (Instant::now(), Path::new("/w"), Looks::default());
        let mut call = LiveCall::new("c", "bash", 0, true, start);
        assert!(call.grow(start + ANNOUNCED_AFTER - Duration::from_millis(1), cwd, &looks).is_none());
        let early = json!(call.grow(start + ANNOUNCED_AFTER, cwd, &looks));
        assert_eq!((&early["sessionUpdate"], &early["title"]), (&json!("tool_call"), &json!("bash")));
        assert!(early.get("rawInput").is_none(), "{early}");
        assert_eq!(early["content"], json!([{"type": "terminal", "terminalId": "c"}]));
        assert_eq!(early["_meta"]["terminal_info"], json!({"terminal_id": "c", "cwd": "/w"}));
        assert!(call.grow(start + 2 * ANNOUNCED_AFTER, cwd, &looks).is_none(), "once");
        let arguments = json!({"command": "make"});
        let complete = json!(call.complete(arguments.as_object().expect("an object"), cwd, &looks));
        let expected =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "make", "rawInput": arguments});
        assert_eq!(complete, expected);
    }

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
