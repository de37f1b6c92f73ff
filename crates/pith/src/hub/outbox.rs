//! The outbox of a seat: answers go to whoever asked, everything to the outbox of whoever serves the clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pith_agent::Toolset;
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{AssistantEvent, AssistantMessage, CommandError, ErrorCode, Event, Id, Response, StreamUpdates};
use pith_session::{Outbox, Room};

use super::answers::Answers;

/// Wraps the outbox of a session.
pub struct SeatOutbox<O> {
    inner: O,
    answers: Arc<Answers>,
    /// How many sessions of the process work; this one is counted while `is_working`.
    n_working: Arc<AtomicUsize>,
    is_working: bool,
}

impl<O> SeatOutbox<O> {
    pub fn new(inner: O, answers: Arc<Answers>, n_working: Arc<AtomicUsize>) -> Self {
        SeatOutbox { inner, answers, n_working, is_working: false }
    }

    fn set_working(&mut self, is_working: bool) {
        match (std::mem::replace(&mut self.is_working, is_working), is_working) {
            (false, true) => _ = self.n_working.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.n_working.fetch_sub(1, Ordering::Relaxed),
            (false, false) | (true, true) => {}
        }
    }
}

impl<O: Outbox> Outbox for SeatOutbox<O> {
    fn respond(&mut self, response: &Response<'_>) {
        self.inner.respond(response);
        self.answers.take(response);
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        let error = CommandError::new(ErrorCode::UnknownCommand, format!("Unknown command: {name}"));
        self.respond(&Response::failure(id.raw(), name, &error));
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentStart => self.set_working(true),
            Event::AgentSettled { .. } => self.set_working(false),
            _ => {}
        }
        self.inner.event(event);
    }

    fn entry(&mut self, id: &str) {
        self.inner.entry(id);
    }

    fn conversation_read(&mut self) {
        self.inner.conversation_read();
    }

    fn tools(&mut self, tools: &Arc<Toolset>) {
        self.inner.tools(tools);
    }

    fn options_changed(&mut self) {
        self.inner.options_changed();
    }

    fn commands_changed(&mut self) {
        self.inner.commands_changed();
    }

    fn host_tool(&mut self, frame: &HostToolFrame) {
        self.inner.host_tool(frame);
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        self.inner.permission(frame);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        self.inner.ui_request(request);
    }

    fn page_done(&mut self, id: &str) {
        self.inner.page_done(id);
    }

    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage) {
        self.inner.open_answer(mode, start);
    }

    fn stream(&mut self, event: &AssistantEvent) {
        self.inner.stream(event);
    }

    fn follows_servers(&self) -> bool {
        self.inner.follows_servers()
    }

    fn room(&self) -> Room {
        self.inner.room()
    }
}

impl<O> Drop for SeatOutbox<O> {
    fn drop(&mut self) {
        self.set_working(false);
        self.answers.close();
    }
}
