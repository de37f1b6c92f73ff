//! Frames of the modes that have no wire: what a host would have been sent goes past the tap of a writer, and nowhere
//! else.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use pith_agent::Toolset;
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{AssistantEvent, AssistantMessage, Event, Id, Response, StreamUpdates};
use pith_session::{Outbox, Room};

use crate::dialect::Dialect;
use crate::outbox::WireOutbox;
use crate::transport::finish;
use crate::transport::writer::FrameQueue;

/// Lets the debug file see what an outbox gets; the outbox itself if there is no file.
pub fn watched(shown: Box<dyn Outbox>, dialect: &'static Dialect) -> io::Result<Box<dyn Outbox>> {
    if !super::is_on() {
        return Ok(shown);
    }
    let (queue, writer) = FrameQueue::start(io::sink(), || {})?;
    let wire = WireOutbox::without_greeting(queue.clone(), dialect);
    Ok(Box::new(Watched { shown, wire, queue, writer: Some(writer) }))
}

struct Watched {
    shown: Box<dyn Outbox>,
    wire: WireOutbox,
    queue: Arc<FrameQueue>,
    /// Taken when dropped.
    writer: Option<JoinHandle<()>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.queue.close();
        self.writer.take().into_iter().for_each(finish);
    }
}

impl Outbox for Watched {
    fn respond(&mut self, response: &Response<'_>) {
        self.wire.respond(response);
        self.shown.respond(response);
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        self.wire.respond_unknown(id, name);
        self.shown.respond_unknown(id, name);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.wire.event(event);
        self.shown.event(event);
    }

    fn entry(&mut self, id: &str) {
        self.shown.entry(id);
    }

    fn conversation_read(&mut self) {
        self.shown.conversation_read();
    }

    fn tools(&mut self, tools: &Arc<Toolset>) {
        self.shown.tools(tools);
    }

    fn options_changed(&mut self) {
        self.shown.options_changed();
    }

    fn commands_changed(&mut self) {
        self.shown.commands_changed();
    }

    fn host_tool(&mut self, frame: &HostToolFrame) {
        self.wire.host_tool(frame);
        self.shown.host_tool(frame);
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        self.wire.permission(frame);
        self.shown.permission(frame);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        self.wire.ui_request(request);
        self.shown.ui_request(request);
    }

    fn page_done(&mut self, id: &str) {
        self.shown.page_done(id);
    }

    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage) {
        self.wire.open_answer(mode, start);
        self.shown.open_answer(mode, start);
    }

    fn stream(&mut self, event: &AssistantEvent) {
        self.wire.stream(event);
        self.shown.stream(event);
    }

    fn follows_servers(&self) -> bool {
        self.shown.follows_servers()
    }

    fn room(&self) -> Room {
        self.shown.room()
    }
}
