//! A tool call that is under way: what the editor has been told of it.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use pith_protocol::ToolResult;
use serde_json::{Map, Value};

use crate::call::{self, Finished, Shown};
use crate::diff;
use crate::looks::Looks;
use crate::place::{Current, Place};
use crate::terminal;

/// A call between its start in the model's answer and its end.
pub(crate) struct LiveCall {
    id: String,
    tool: String,
    stage: Stage,
    /// Complete arguments; empty while they stream.
    arguments: Map<String, Value>,
    is_refused: bool,
    /// What is in the file that `write` is about to replace.
    replaced: Current,
    display: Display,
}

/// How far a call has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Its arguments stream, and the editor does not know it.
    Streaming,
    /// Its arguments stream, and the editor knows it without them.
    Announced,
    /// Its arguments are complete, and the editor knows them.
    Complete,
    /// The tool runs.
    Running,
}

/// What a running call reports.
pub(crate) enum Progress {
    /// Its state, which replaces what was shown.
    State(Box<SessionUpdate>),
    /// What the command has added to its terminal.
    Output(String),
}

/// Where the client shows the output of a call.
enum Display {
    /// In the content of the call; this is what was shown last.
    Content(Vec<ToolCallContent>),
    /// In a terminal that updates feed; it has got this much.
    FedTerminal(String),
    /// In the terminal of that id, in which the client runs the command.
    OwnTerminal(String),
}

impl LiveCall {
    pub fn new(id: &str, tool: &str, has_terminal: bool) -> Self {
        LiveCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            stage: Stage::Streaming,
            arguments: Map::new(),
            is_refused: false,
            replaced: Current::Unknown,
            display: if has_terminal && tool == "bash" {
                Display::FedTerminal(String::new())
            } else {
                Display::Content(Vec::new())
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
    fn terminal(&self, place: &dyn Place) -> Option<(Vec<ToolCallContent>, Meta)> {
        let is_fed = matches!(self.display, Display::FedTerminal(_));
        is_fed.then(|| (terminal::content(&self.id), terminal::info(&self.id, place.cwd())))
    }

    /// Called when the arguments take long: the call is announced before it is complete.
    pub fn announce(&mut self, place: &dyn Place, looks: &Looks) -> Option<SessionUpdate> {
        if self.stage > Stage::Streaming {
            return None;
        }
        self.stage = Stage::Announced;
        let kind = call::kind(&self.tool, looks);
        let call = ToolCall::new(self.id.clone(), self.tool.clone()).name(self.tool.clone()).kind(kind);
        // Clients make the terminal when the call appears, not later.
        let (content, info) = self.terminal(place).unzip();
        Some(SessionUpdate::ToolCall(call.content(content.unwrap_or_default()).meta(info)))
    }

    /// Called when the arguments are complete, before the tool runs. `earlier` are calls that have not ended.
    pub fn complete(
        &mut self,
        arguments: &Map<String, Value>,
        earlier: &[LiveCall],
        place: &dyn Place,
        looks: &Looks,
    ) -> SessionUpdate {
        self.arguments = arguments.clone();
        self.read_replaced(earlier, place);
        let Shown { title, kind, locations, content } = self.shown(place, looks);
        let raw_input = Value::Object(arguments.clone());
        if std::mem::replace(&mut self.stage, Stage::Complete) > Stage::Streaming {
            let fields = ToolCallUpdateFields::new()
                .title(title)
                .raw_input(raw_input)
                .locations((!locations.is_empty()).then_some(locations))
                .content((!content.is_empty()).then_some(content));
            return self.update(fields);
        }
        let (content, info) = self.terminal(place).map_or((content, None), |(content, info)| (content, Some(info)));
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
    fn shown(&self, place: &dyn Place, looks: &Looks) -> Shown {
        let shown = call::shown(&self.tool, &self.arguments, place, looks);
        let content = self.overwriting(place).unwrap_or(shown.content);
        Shown { content, ..shown }
    }

    /// The change of a file that was there before the call.
    fn overwriting(&self, place: &dyn Place) -> Option<Vec<ToolCallContent>> {
        let Current::Text(old) = &self.replaced else { return None };
        let (path, new) = self.written(place)?;
        Some(diff::change(&path, Some(old), new))
    }

    /// The file that the call replaces as a whole, and its new text.
    fn written(&self, place: &dyn Place) -> Option<(PathBuf, &str)> {
        let text = self.arguments.get("content").filter(|_| self.tool == "write")?.as_str()?;
        Some((call::path_of(&self.arguments, place)?, text))
    }

    /// Takes what is in the file that the call replaces: what an earlier call writes, or what is there now.
    fn read_replaced(&mut self, earlier: &[LiveCall], place: &dyn Place) {
        let Some((path, _)) = self.written(place) else { return };
        let earlier = earlier.iter().rev().filter(|call| !call.is_refused);
        let written = earlier.filter_map(|call| call.written(place)).find(|(other, _)| *other == path);
        self.replaced = written.map_or_else(|| place.current(&path), |(_, text)| Current::Text(text.to_owned()));
    }

    /// Returns the call as it was announced, for a question before the tool runs. The file that it replaces is read once
    /// more: an earlier call may have been refused, and somebody may have changed it.
    pub fn told(&mut self, earlier: &[LiveCall], place: &dyn Place, looks: &Looks) -> ToolCallUpdate {
        self.read_replaced(earlier, place);
        let Shown { title, kind, locations, content } = self.shown(place, looks);
        // Clients put this in the place of what they show.
        let content = self.terminal(place).map_or(content, |(terminal, _)| terminal);
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

    /// Returns the call as it is now, for an editor that has not heard of it; `None` if nobody was told of it yet.
    pub fn replayed(&self, place: &dyn Place, looks: &Looks) -> Option<Vec<SessionUpdate>> {
        let status = match self.stage {
            Stage::Streaming => return None,
            Stage::Announced | Stage::Complete => ToolCallStatus::Pending,
            Stage::Running => ToolCallStatus::InProgress,
        };
        let Shown { title, kind, locations, content } = self.shown(place, looks);
        let call = ToolCall::new(self.id.clone(), title).name(self.tool.clone()).kind(kind).status(status);
        let call = call.locations(locations);
        let call =
            if self.stage >= Stage::Complete { call.raw_input(Value::Object(self.arguments.clone())) } else { call };
        let updates = match &self.display {
            Display::Content(last) => {
                let content = if last.is_empty() { content } else { last.clone() };
                vec![SessionUpdate::ToolCall(call.content(content))]
            }
            Display::FedTerminal(output) => {
                let call = call.content(terminal::content(&self.id)).meta(terminal::info(&self.id, place.cwd()));
                let output = (!output.is_empty()).then(|| terminal::output(&self.id, output));
                [SessionUpdate::ToolCall(call)].into_iter().chain(output).collect()
            }
            Display::OwnTerminal(terminal) => vec![SessionUpdate::ToolCall(call.content(terminal::content(terminal)))],
        };
        Some(updates)
    }

    /// Called when somebody has refused the call.
    pub fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Called when the tool starts.
    pub fn start(&mut self) -> SessionUpdate {
        self.stage = Stage::Running;
        self.update(ToolCallUpdateFields::new().status(ToolCallStatus::InProgress))
    }

    /// Called with what is known of the result so far; `None` if there is nothing new to show.
    pub fn progress(&mut self, result: &ToolResult<'_>) -> Option<Progress> {
        if let Some(terminal) = call::terminal_of(result.details.as_deref()) {
            self.display = Display::OwnTerminal(terminal.to_owned());
            let fields = ToolCallUpdateFields::new().content(terminal::content(terminal));
            return Some(Progress::State(Box::new(self.update(fields))));
        }
        let text = call::text_of(&result.content);
        let content = if self.tool == "bash" { call::fenced(&text) } else { call::contents(&result.content) };
        match &mut self.display {
            Display::Content(_) if content.is_empty() => return None,
            Display::Content(last) => last.clone_from(&content),
            Display::FedTerminal(_) => return self.new_output(&text).map(Progress::Output),
            Display::OwnTerminal(_) => return None,
        }
        Some(Progress::State(Box::new(self.update(ToolCallUpdateFields::new().content(content)))))
    }

    /// Called when the tool has ended.
    pub fn end(mut self, result: &ToolResult<'_>, is_error: bool, place: &dyn Place) -> Vec<SessionUpdate> {
        let details = result.details.as_deref();
        let Finished { content, raw_output, locations } =
            call::finished(&self.tool, &self.arguments, &result.content, details, is_error, place);
        let content = self.overwriting(place).filter(|_| !is_error).unwrap_or(content);
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new().status(status).raw_output(raw_output).locations(locations);
        match &self.display {
            Display::Content(_) => return vec![self.update(fields.content(content))],
            // Said again, because the report that named it may have been left out for a client that reads slowly.
            Display::OwnTerminal(terminal) => return vec![self.update(fields.content(terminal::content(terminal)))],
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
        (self.stage > Stage::Streaming).then(|| self.update(fields))
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
    use crate::place::Directory;

    #[test]
    fn a_call_whose_arguments_take_long_is_announced_without_them() {
        let (place, looks) = (&Directory("/w".into()), Looks::default());
        let mut call = LiveCall::new("c", "bash", true);
        assert!(call.replayed(place, &looks).is_none());
        let early = json!(call.announce(place, &looks));
        assert_eq!((&early["sessionUpdate"], &early["title"]), (&json!("tool_call"), &json!("bash")));
        assert!(early.get("rawInput").is_none(), "{early}");
        assert_eq!(early["content"], json!([{"type": "terminal", "terminalId": "c"}]));
        assert_eq!(early["_meta"]["terminal_info"], json!({"terminal_id": "c", "cwd": "/w"}));
        assert!(call.announce(place, &looks).is_none(), "once");
        let arguments = json!({"command": "make"});
        let complete = json!(call.complete(arguments.as_object().expect("an object"), &[], place, &looks));
        let expected =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "make", "rawInput": arguments});
        assert_eq!(complete, expected);
    }

    #[test]
    fn a_terminal_gets_only_what_is_new() {
        let mut call = LiveCall::new("c", "bash", true);
        let mut check = |text: &str, expected: Option<&str>| assert_eq!(call.new_output(text).as_deref(), expected);
        check("one\n", Some("one\n"));
        check("one\ntwo\n", Some("two\n"));
        check("one\ntwo\n", None);
        check("two\nthree\n", Some("three\n"));
        check("nine\n", Some("\n[…]\nnine\n"));
    }
}
