//! Where frames go. The session reports what happened; the implementor decides what that looks like on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pith_agent::Toolset;
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{AssistantEvent, AssistantMessage, Event, Id, Response, StreamUpdates};
use tokio::sync::Notify;

/// Takes frames in the order they are handed over. Never blocks.
pub trait Outbox: Send {
    /// Sends the answer to a command.
    fn respond(&mut self, response: &Response<'_>);

    /// Answers an object that names no known command.
    fn respond_unknown(&mut self, id: &Id, name: &str);

    /// Sends any event but `message_update`.
    fn event(&mut self, event: &Event<'_>);

    /// Names the entry that the message announced next will have in the session file. Does nothing where hosts learn
    /// ids otherwise.
    fn entry(&mut self, _id: &str) {}

    /// Called when the stored conversation was handed to somebody in this process who shows it: what is told from now on
    /// is not in it. Does nothing where nobody asks for it.
    fn conversation_read(&mut self) {}

    /// Takes the tools that the model has from now on. Does nothing where hosts know tools by their names only.
    fn tools(&mut self, _tools: &Arc<Toolset>) {}

    /// Called when model, thinking level, approval mode or a switch may be another, whoever has changed it. Does nothing
    /// where hosts ask for them.
    fn options_changed(&mut self) {}

    /// Called when there may be other slash commands though the host has done nothing. Does nothing where hosts ask for
    /// them.
    fn commands_changed(&mut self) {}

    /// Sends a call of a host tool, or its cancellation. Does nothing where no host can register tools.
    fn host_tool(&mut self, _frame: &HostToolFrame) {}

    /// Sends a question whether a tool call may run, or withdraws it. Does nothing where no host accepts them.
    fn permission(&mut self, _frame: &PermissionFrame) {}

    /// Sends a question or a display change of an extension. Does nothing where there is no host to answer.
    fn ui_request(&mut self, _request: &UiRequest) {}

    /// Tells that a page which a dialog asked the user to open has done its work. Does nothing where hosts have no word
    /// for that.
    fn page_done(&mut self, _id: &str) {}

    /// Starts an answer of the model: sends `message_start`; pieces follow through `stream` until the `MessageEnd`
    /// event.
    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage);

    /// Sends a piece of the answer that `open_answer` started.
    fn stream(&mut self, event: &AssistantEvent);

    /// Whether changes of MCP servers are told without having been asked for.
    fn follows_servers(&self) -> bool {
        false
    }

    /// Returns the signal that tells runs to wait while the host has fallen behind.
    fn room(&self) -> Room;
}

/// Whether there is room for more frames. The outbox closes it, the writer opens it, runs wait for it.
#[derive(Clone, Default)]
pub struct Room(Arc<RoomState>);

#[derive(Default)]
struct RoomState {
    is_full: AtomicBool,
    freed: Notify,
}

impl Room {
    /// Waits until the host has caught up.
    pub async fn wait(&self) {
        while self.0.is_full.load(Ordering::Acquire) {
            let freed = self.0.freed.notified();
            if !self.0.is_full.load(Ordering::Acquire) {
                return;
            }
            freed.await;
        }
    }

    /// Called by the outbox when its bound is passed.
    pub fn close(&self) {
        self.0.is_full.store(true, Ordering::Release);
    }

    /// Called by the writer when the queue is below the bound again.
    pub fn open(&self) {
        if self.0.is_full.swap(false, Ordering::AcqRel) {
            self.0.freed.notify_waiters();
        }
    }
}
