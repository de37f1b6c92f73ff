//! What the interface is told: frames of the session, keys, signals, and what others write to stderr.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use pith_protocol::host::{UiMethod, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{
    AssistantEvent, AssistantMessage, Block, CommandError, ErrorCode, Event, Id, ImageBlock, Message, Response,
    StreamUpdates,
};
use pith_session::{Outbox, Room};
use serde_json::{Map, Value};

use super::approval::Asked;
use crate::modes::client::{Failure, Notice, answered};
use crate::modes::follow::settled;

/// The interface may be this many bytes behind before a run waits for it.
const MAX_BEHIND: usize = 64 << 10;

/// Progress of a tool call is shown in a few lines; more is not passed on.
const MAX_PROGRESS: usize = 4 << 10;

/// A longer piece of an answer is passed on in several: no key waits until all of it is shown.
const MAX_DELTA: usize = 8 << 10;

/// Something the interface reacts to.
pub enum Happening {
    Frame(Frame),
    /// A key or pasted text waits in the channel of the keyboard.
    Typed,
    /// A line of a terminal that has no keys; `None` at its end.
    Line(Option<String>),
    Resized,
    /// An interrupt of a terminal that has no keys.
    Interrupted,
    /// The process goes on after it was stopped.
    Continued,
    /// A line that something else in the process wrote to stderr.
    Printed(String),
    /// The session has ended.
    Ended,
}

/// A frame of the session, reduced to what is shown.
#[derive(Debug)]
pub enum Frame {
    Answer {
        id: u64,
        result: Result<Value, String>,
    },
    WorkStarted,
    TurnStarted,
    Thinking(String),
    Text(String),
    /// The model has begun to write a call of this tool.
    Calling(String),
    /// A message of the user, or of an extension that speaks to the user, joined the conversation.
    Said {
        text: String,
        pictures: Vec<ImageBlock>,
        is_user: bool,
    },
    /// An answer of the model is complete.
    Answered(Option<Failure>),
    ToolStarted {
        id: String,
        name: String,
        arguments: Map<String, Value>,
    },
    /// The last lines of a running call.
    ToolProgress {
        id: String,
        tail: String,
    },
    ToolEnded {
        id: String,
        text: String,
        difference: Option<String>,
        pictures: Vec<ImageBlock>,
        is_error: bool,
    },
    /// A shell command of the user has written more.
    ShellOutput(String),
    Queue {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    Retrying {
        attempt: u32,
        max_attempts: u32,
        delay: Duration,
        error: String,
    },
    RetryOver,
    Compacting,
    Compacted {
        error: Option<String>,
        tokens_before: Option<u64>,
    },
    Note(String),
    /// Model, level or name may have changed.
    StateChanged,
    Settled {
        aborted: bool,
    },
    Ui(UiRequest),
    /// Whether a tool call may run.
    Asked(Box<Asked>),
    /// The question with this id is withdrawn.
    AskedNoMore(String),
}

impl Frame {
    /// The bytes that wait while the interface is busy.
    fn weight(&self) -> usize {
        match self {
            Frame::Thinking(text) | Frame::Text(text) | Frame::ShellOutput(text) => text.len(),
            Frame::ToolProgress { tail, .. } => tail.len(),
            Frame::ToolEnded { text, .. } => text.len(),
            _ => 0,
        }
    }
}

/// How far the interface is behind. The outbox adds, the interface takes away.
#[derive(Clone, Default)]
pub struct Backlog {
    n_bytes: Arc<AtomicUsize>,
    room: Room,
}

impl Backlog {
    fn add(&self, n_bytes: usize) {
        if self.n_bytes.fetch_add(n_bytes, Ordering::AcqRel) + n_bytes > MAX_BEHIND {
            self.room.close();
        }
    }

    /// Called when a frame has been taken in.
    pub fn done(&self, frame: &Frame) {
        let n_bytes = frame.weight();
        if self.n_bytes.fetch_sub(n_bytes, Ordering::AcqRel) - n_bytes <= MAX_BEHIND {
            self.room.open();
        }
    }
}

/// The outbox of the chat.
pub struct ChatOutbox {
    /// To the interface; ignored if it is gone.
    happenings: Sender<Happening>,
    backlog: Backlog,
}

impl ChatOutbox {
    pub fn new(happenings: Sender<Happening>, backlog: Backlog) -> Self {
        ChatOutbox { happenings, backlog }
    }

    fn send(&self, frame: Frame) {
        self.backlog.add(frame.weight());
        let _ = self.happenings.send(Happening::Frame(frame));
    }
}

impl Drop for ChatOutbox {
    fn drop(&mut self) {
        let _ = self.happenings.send(Happening::Ended);
    }
}

impl Outbox for ChatOutbox {
    fn respond(&mut self, response: &Response<'_>) {
        if let Some(Notice::Answer { id, result }) = answered(response) {
            self.send(Frame::Answer { id, result });
        }
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        let error = CommandError::new(ErrorCode::UnknownCommand, format!("Unknown command: {name}"));
        self.respond(&Response::failure(id.raw(), name, &error));
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(frame) = frame_of(event) {
            self.send(frame);
        }
    }

    fn ui_request(&mut self, request: &UiRequest) {
        self.send(Frame::Ui(request.clone()));
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        self.send(asked(frame));
    }

    fn open_answer(&mut self, _mode: StreamUpdates, _start: &AssistantMessage) {}

    fn stream(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::TextDelta { delta, .. } => {
                pieces(delta, MAX_DELTA).for_each(|piece| self.send(Frame::Text(piece.to_owned())));
            }
            AssistantEvent::ThinkingDelta { delta, .. } => {
                pieces(delta, MAX_DELTA).for_each(|piece| self.send(Frame::Thinking(piece.to_owned())));
            }
            AssistantEvent::ToolCallStart { name, .. } => self.send(Frame::Calling(name.clone())),
            _ => {}
        }
    }

    fn room(&self) -> Room {
        self.backlog.room.clone()
    }
}

fn asked(frame: &PermissionFrame) -> Frame {
    match frame {
        PermissionFrame::PermissionRequest { id, tool_call_id, tool_name, arguments, cwd, reason, options, .. } => {
            Frame::Asked(Box::new(Asked {
                id: id.clone(),
                tool_call_id: tool_call_id.clone(),
                tool: tool_name.clone(),
                arguments: arguments.clone(),
                cwd: cwd.clone(),
                reason: reason.clone(),
                options: options.clone(),
            }))
        }
        PermissionFrame::PermissionCancelled { id } => Frame::AskedNoMore(id.clone()),
    }
}

/// Returns what an event shows; `None` if nothing.
fn frame_of(event: &Event<'_>) -> Option<Frame> {
    Some(match event {
        Event::AgentStart => Frame::WorkStarted,
        Event::TurnStart => Frame::TurnStarted,
        Event::MessageEnd { message } => return said(message),
        Event::ToolExecutionStart { tool_call_id, tool_name, args } => Frame::ToolStarted {
            id: tool_call_id.to_string(),
            name: tool_name.to_string(),
            arguments: args.clone().into_owned(),
        },
        Event::ToolExecutionUpdate { tool_call_id, partial_result, .. } => {
            let text = text_of(&partial_result.content);
            Frame::ToolProgress { id: tool_call_id.to_string(), tail: tail(&text, MAX_PROGRESS).to_owned() }
        }
        Event::ToolExecutionEnd { tool_call_id, result, is_error, .. } => Frame::ToolEnded {
            id: tool_call_id.to_string(),
            text: text_of(&result.content),
            difference: result
                .details
                .as_ref()
                .and_then(|details| details.get("diff"))
                .and_then(Value::as_str)
                .map(str::to_owned),
            pictures: pictures_of(&result.content),
            is_error: *is_error,
        },
        Event::BashExecutionUpdate { delta, .. } => Frame::ShellOutput(delta.to_string()),
        Event::QueueUpdate { steering, follow_up } => Frame::Queue {
            steering: steering.iter().map(ToString::to_string).collect(),
            follow_up: follow_up.iter().map(ToString::to_string).collect(),
        },
        Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message }
        | Event::SummarizationRetryScheduled { attempt, max_attempts, delay_ms, error_message } => Frame::Retrying {
            attempt: *attempt,
            max_attempts: *max_attempts,
            delay: Duration::from_millis(*delay_ms),
            error: error_message.to_string(),
        },
        Event::AutoRetryEnd { .. } | Event::SummarizationRetryFinished => Frame::RetryOver,
        Event::CompactionStart { .. } => Frame::Compacting,
        Event::CompactionEnd { error_message, result, .. } => Frame::Compacted {
            error: error_message.as_ref().map(ToString::to_string),
            tokens_before: result.as_ref().map(|result| result.tokens_before),
        },
        Event::ThinkingLevelChanged { .. } | Event::SessionInfoChanged { .. } => Frame::StateChanged,
        // Extensions that could not be loaded were reported before.
        Event::ExtensionError { event, .. } if event == "load" => return None,
        Event::ExtensionError { extension_path, error, .. } => Frame::Note(format!("{extension_path}: {error}")),
        Event::RetryFallbackApplied { from, to, .. } => Frame::Note(format!("{from} does not answer, now {to}")),
        Event::TtsrTriggered { rules } => {
            let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
            Frame::Note(format!("stopped by the rule {}", names.join(", ")))
        }
        Event::AgentSettled { aborted, .. } => Frame::Settled { aborted: *aborted },
        _ => return None,
    })
}

fn said(message: &Message) -> Option<Frame> {
    match message {
        Message::Assistant(answer) => Some(Frame::Answered(settled(answer).failure)),
        Message::User(message) => {
            let pictures = match &message.content {
                pith_protocol::Content::Text(_) => Vec::new(),
                pith_protocol::Content::Blocks(blocks) => pictures_of(blocks),
            };
            Some(Frame::Said { text: message.content.text(), pictures, is_user: true })
        }
        Message::Custom(message) if message.display => {
            Some(Frame::Said { text: message.content.text(), pictures: Vec::new(), is_user: false })
        }
        _ => None,
    }
}

fn pictures_of(blocks: &[Block]) -> Vec<ImageBlock> {
    let one = |block: &Block| match block {
        Block::Image(picture) => Some(picture.clone()),
        _ => None,
    };
    blocks.iter().filter_map(one).collect()
}

/// The text of a result.
fn text_of(blocks: &[Block]) -> String {
    let one = |block: &Block| match block {
        Block::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(one).collect::<Vec<_>>().join("\n")
}

/// Splits a text into pieces of at most so many bytes.
fn pieces(mut text: &str, max: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(max));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the end of a text, at most so many bytes.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// Whether a request is a question that somebody has to answer.
pub fn is_question(method: &UiMethod) -> bool {
    matches!(
        method,
        UiMethod::Select { .. } | UiMethod::Confirm { .. } | UiMethod::Input { .. } | UiMethod::Editor { .. }
    )
}
