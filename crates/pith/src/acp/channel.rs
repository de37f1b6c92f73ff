//! The way from one session to its editor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_acp::acp::{SessionId, SessionNotification, SessionUpdate};
use pith_acp::wire::append_notification;
use pith_session::Room;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::transport::writer::FrameQueue;

/// What waits for the session to be named.
enum Held {
    Update(Box<SessionUpdate>),
    Own(&'static str, Value),
}

/// Sends updates about one session.
pub struct Channel {
    id: SessionId,
    queue: Arc<FrameQueue>,
    /// Updates that wait for the answer that names the session: editors drop those of sessions they do not know.
    held: Mutex<Option<Vec<Held>>>,
    /// Fired when they no longer wait.
    released: CancellationToken,
}

impl Channel {
    /// Creates a channel that holds its updates back until [`Channel::release`].
    pub fn held(id: &str, queue: Arc<FrameQueue>) -> Self {
        Channel {
            id: SessionId::new(id),
            queue,
            held: Mutex::new(Some(Vec::new())),
            released: CancellationToken::new(),
        }
    }

    /// Sends an update, in its turn.
    pub fn update(&self, update: SessionUpdate) {
        match &mut *self.lock() {
            Some(held) => held.push(Held::Update(Box::new(update))),
            None => self.send(update),
        }
    }

    /// Sends a notification of pith's own, in its turn; `params` is an object.
    pub fn own(&self, method: &'static str, mut params: Value) {
        params["sessionId"] = self.id.0.as_ref().into();
        match &mut *self.lock() {
            Some(held) => held.push(Held::Own(method, params)),
            None => self.notify(method, &params),
        }
    }

    /// Sends an update at once: part of what the editor waits for.
    pub fn send(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.id.clone(), update);
        self.notify("session/update", &notification);
    }

    fn notify(&self, method: &str, params: &impl Serialize) {
        self.queue.push(|out| append_notification(out, method, params));
    }

    /// Sends the state of a tool call; a newer one takes the place of one that was not sent yet.
    pub fn progress(&self, call: &str, update: SessionUpdate) {
        if self.lock().is_some() {
            return self.update(update);
        }
        let notification = SessionNotification::new(self.id.clone(), update);
        let key = format!("{}/{call}", self.id);
        self.queue.push_tool_update(&key, |out| append_notification(out, "session/update", &notification));
    }

    /// Called after the session was named: sends what was held back, and from now on everything at once.
    pub fn release(&self) {
        let held = self.lock().take();
        for held in held.into_iter().flatten() {
            match held {
                Held::Update(update) => self.send(*update),
                Held::Own(method, params) => self.notify(method, &params),
            }
        }
        self.released.cancel();
    }

    /// Whether the editor knows the session.
    pub fn is_released(&self) -> bool {
        self.released.is_cancelled()
    }

    /// Waits until the editor knows the session.
    pub async fn released(&self) {
        self.released.cancelled().await;
    }

    /// The signal that tells runs to wait while the editor has fallen behind.
    pub fn room(&self) -> Room {
        self.queue.room()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
