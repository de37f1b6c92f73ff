//! Where frames go. The session says what happened; what that looks like on
//! the wire is the implementor's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::{AssistantEvent, AssistantMessage, Event, Id, Response, StreamUpdates};
use tokio::sync::Notify;

/// Takes frames in the order they are handed over. Never blocks.
pub trait Outbox: Send {
    /// The answer to a command.
    fn respond(&mut self, response: &Response<'_>);

    /// The answer to an object that names no command.
    fn respond_unknown(&mut self, id: &Id, name: &str);

    /// Any event but `message_update`.
    fn event(&mut self, event: &Event<'_>);

    /// A call of a host tool, or its withdrawal. Without a host nobody registers such tools.
    fn host_tool(&mut self, _frame: &HostToolFrame) {}

    /// A question or a display change of an extension. Where nobody can answer, nobody is asked.
    fn ui_request(&mut self, _request: &UiRequest) {}

    /// Opens an answer: `message_start`, then `stream` until its `MessageEnd`.
    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage);

    /// A piece of the open answer.
    fn stream(&mut self, event: &AssistantEvent);

    /// Tells when the host has fallen behind.
    fn room(&self) -> Room;
}

/// Whether there is room for more frames. The writer opens and closes it; runs wait for it.
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

    /// Called by the writer when it is below the bound again.
    pub fn open(&self) {
        if self.0.is_full.swap(false, Ordering::AcqRel) {
            self.0.freed.notify_waiters();
        }
    }
}
