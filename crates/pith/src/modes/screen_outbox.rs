//! Shows a session's frames on the screen.

use pith_ai::explain;
use pith_protocol::host::{UiMethod, UiRequest};
use pith_protocol::{
    AssistantEvent, AssistantMessage, Block, CommandError, ErrorCode, Event, Id, Response, StreamUpdates,
};
use pith_session::{Outbox, Room};

use super::follow::Follower;
use super::screen::{Screen, Show};
use super::tool_line::{describe, first_line};
use crate::warn;

/// The outbox of print mode.
pub struct ScreenOutbox {
    screen: Screen,
    follower: Follower,
    /// Why the last answer failed, in words for people.
    failure: Option<String>,
    /// Where warnings go: the screen shows its notes on terminals only.
    warns_on_pipe: bool,
}

impl ScreenOutbox {
    pub fn new(screen: Screen, follower: Follower) -> Self {
        ScreenOutbox { screen, follower, failure: None, warns_on_pipe: false }
    }

    /// Writes warnings to stderr although it is no terminal.
    pub fn warning_on_pipe(self) -> Self {
        ScreenOutbox { warns_on_pipe: true, ..self }
    }

    fn warn(&self, text: String) {
        if self.warns_on_pipe { warn(&format!("pith: {text}")) } else { self.note(text) }
    }

    fn note(&self, text: String) {
        self.screen.show(Show::Note(text));
    }
}

impl Outbox for ScreenOutbox {
    fn respond(&mut self, response: &Response<'_>) {
        self.follower.respond(response);
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        let error = CommandError::new(ErrorCode::UnknownCommand, format!("Unknown command: {name}"));
        self.follower.respond(&Response::failure(id.raw(), name, &error));
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::TurnStart => self.screen.show(Show::Asking),
            Event::MessageEnd { message } => {
                if let Some(answer) = message.as_assistant() {
                    let text = answer.error_message.as_deref();
                    self.failure = text.map(|text| explain(&answer.provider, text, answer.error.as_ref()));
                    self.screen.show(Show::Answered(Box::new(answer.usage.clone())));
                }
            }
            Event::ToolExecutionStart { tool_call_id, tool_name, args } => {
                self.screen.show(Show::ToolStart { id: tool_call_id.to_string(), line: describe(tool_name, args) });
            }
            Event::ToolExecutionEnd { tool_call_id, result, is_error, .. } => {
                let text = || result.content.iter().filter_map(Block::as_text).collect::<String>();
                let problem = is_error.then(|| first_line(&text()));
                self.screen.show(Show::ToolEnd { id: tool_call_id.to_string(), problem });
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let seconds = delay_ms.div_ceil(1000);
                let why = self.failure.take().unwrap_or_else(|| first_line(error_message));
                self.warn(format!("trying again in {seconds}s ({attempt}/{max_attempts}): {why}"));
            }
            Event::CompactionStart { .. } => self.note("summarising the conversation".to_owned()),
            Event::CompactionEnd { error_message: Some(error), .. } => self.note(format!("not summarised: {error}")),
            // Extensions that could not be loaded were reported on stderr.
            Event::ExtensionError { event, .. } if event == "load" => {}
            Event::ExtensionError { extension_path, error, .. } => self.note(format!("{extension_path}: {error}")),
            Event::AgentSettled { .. } => self.screen.show(Show::Idle),
            _ => {}
        }
        self.follower.event(event);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        // Nobody is there to answer; what is said is shown.
        if let UiMethod::Notify { message, notify_type } = &request.method {
            self.screen.show(Show::Say(match notify_type.as_deref() {
                Some("error") => format!("✗ {message}"),
                Some("warning") => format!("! {message}"),
                _ => message.clone(),
            }));
        }
    }

    fn open_answer(&mut self, _mode: StreamUpdates, _start: &AssistantMessage) {}

    fn stream(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::TextDelta { delta, .. } => self.screen.show(Show::Text(delta.clone())),
            AssistantEvent::ThinkingStart { .. } => self.screen.show(Show::Thinking),
            AssistantEvent::ToolCallStart { name, .. } => self.screen.show(Show::Calling(name.clone())),
            _ => {}
        }
    }

    fn room(&self) -> Room {
        // A terminal is faster than any model, and a screenful is small.
        Room::default()
    }
}
