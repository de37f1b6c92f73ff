//! Encodes frames in the dialect of the host and adds them to the writer's queue.

use std::borrow::Cow;
use std::sync::Arc;

use pith_protocol::events::Ready;
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{
    AssistantEvent, AssistantMessage, CommandError, ErrorCode, Event, Id, LiveMessage, Message, Response,
    StreamUpdates, json,
};
use pith_session::{Outbox, Room};
use serde::Serialize;
use tracing::debug;

use crate::dialect::{Dialect, Shown, UiOptions};
use crate::transport::writer::FrameQueue;

/// The session's outbox in rpc mode.
pub struct WireOutbox {
    queue: Arc<FrameQueue>,
    dialect: &'static Dialect,
    ui_options: UiOptions,
}

impl WireOutbox {
    /// Opens the stream, with a `ready` frame if the dialect has one.
    pub fn new(queue: Arc<FrameQueue>, dialect: &'static Dialect, ui_options: UiOptions) -> Self {
        let outbox = WireOutbox { queue, dialect, ui_options };
        if dialect.has_greeting {
            outbox.line(&Ready { version: env!("CARGO_PKG_VERSION").into(), server: "pith".into() });
        }
        outbox
    }

    /// Creates an outbox for a stream without a `ready` frame.
    pub fn without_greeting(queue: Arc<FrameQueue>, dialect: &'static Dialect) -> Self {
        WireOutbox { queue, dialect, ui_options: UiOptions::default() }
    }

    fn line<T: Serialize>(&self, frame: &T) {
        self.queue.push(|out| json::append(out, frame));
    }
}

impl Outbox for WireOutbox {
    fn respond(&mut self, response: &Response<'_>) {
        debug!(target: "pith::command", name = &*response.command, success = response.success, "answered");
        self.line(response);
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        let error = CommandError::new(ErrorCode::UnknownCommand, format!("Unknown command: {name}"));
        let mut response = Response::failure(id.raw(), name, &error);
        if !self.dialect.echoes_unknown_id {
            response.request_id = response.id.take();
        }
        self.line(&response);
    }

    fn event(&mut self, event: &Event<'_>) {
        match (self.dialect.show(event), event) {
            (Shown::Hidden, _) => {}
            (Shown::Renamed(renamed), _) => self.line(&*renamed),
            (Shown::AsIs, Event::ToolExecutionUpdate { tool_call_id, .. }) => {
                self.queue.push_tool_update(tool_call_id, |out| json::append(out, event));
            }
            (Shown::AsIs, Event::ToolExecutionEnd { tool_call_id, .. }) => {
                self.queue.push_tool_end(tool_call_id, |out| json::append(out, event));
            }
            (Shown::AsIs, event) => self.line(event),
        }
    }

    fn host_tool(&mut self, frame: &HostToolFrame) {
        self.line(frame);
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        self.line(frame);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        if self.dialect.shows_request(&request.method, self.ui_options) {
            self.line(request);
        }
    }

    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage) {
        let message = Message::Assistant(start.clone());
        self.queue.open_answer(LiveMessage::new(mode, start), |out| {
            let at = out.len();
            json::append(out, &Event::MessageStart { message: Cow::Borrowed(&message) });
            if mode == StreamUpdates::Delta {
                mark_pending(out, at);
            }
        });
    }

    fn stream(&mut self, event: &AssistantEvent) {
        self.queue.push_stream(event);
    }

    fn room(&self) -> Room {
        self.queue.room()
    }
}

/// Marks an unfinished answer: hosts that read deltas know its stop reason as `pending`.
fn mark_pending(out: &mut Vec<u8>, from: usize) {
    const PLACEHOLDER: &[u8] = b"\"stopReason\":\"stop\"";
    if let Some(at) = out[from..].windows(PLACEHOLDER.len()).position(|window| window == PLACEHOLDER) {
        let range = from + at..from + at + PLACEHOLDER.len();
        out.splice(range, b"\"stopReason\":\"pending\"".iter().copied());
    }
}
