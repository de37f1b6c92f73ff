//! Requests of pith to the editor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_acp::wire::{append_notification, append_request};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing::debug;

use crate::transport::writer::FrameQueue;

/// The result of a request, or the error that the editor answered with.
pub type Answered = Result<Value, Value>;

/// The requests that the editor has not answered yet. Sent by dialogs and by tools, which run on other threads;
/// answered by the agent.
pub struct Requests {
    queue: Arc<FrameQueue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_sent: u64,
    waiting: HashMap<String, oneshot::Sender<Answered>>,
}

impl State {
    /// Ids of a kind of their own are never mistaken for those of the editor.
    fn next_id(&mut self) -> String {
        self.n_sent += 1;
        format!("p{}", self.n_sent)
    }
}

impl Requests {
    pub fn new(queue: Arc<FrameQueue>) -> Self {
        Requests { queue, state: Mutex::default() }
    }

    /// Sends a request and waits for its answer. Dropped before that, the request is withdrawn.
    pub async fn ask<P: Serialize>(&self, method: &str, params: &P) -> Answered {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut state = self.lock();
            let id = state.next_id();
            state.waiting.insert(id.clone(), answer);
            id
        };
        let _withdrawal = Withdrawal { requests: self, id: &id };
        self.queue.push(|out| append_request(out, &id, method, params));
        answered.await.unwrap_or(Err(Value::Null))
    }

    /// Sends a request whose answer changes nothing.
    pub fn post<P: Serialize>(&self, method: &str, params: &P) {
        let id = self.lock().next_id();
        self.queue.push(|out| append_request(out, &id, method, params));
    }

    /// Tells the editor something that it does not answer.
    pub fn notify<P: Serialize>(&self, method: &str, params: &P) {
        self.queue.push(|out| append_notification(out, method, params));
    }

    /// Takes an answer. One to an id that is not waited for is ignored.
    pub fn answer(&self, id: &Value, result: Answered) {
        let waiting = id.as_str().and_then(|id| self.lock().waiting.remove(id));
        match waiting {
            Some(answer) => _ = answer.send(result),
            None => debug!(target: "pith::acp", %id, "an answer to nothing that is waited for"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws a request that nobody waits for any more, unless it was answered.
struct Withdrawal<'r> {
    requests: &'r Requests,
    id: &'r str,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let withdrawn = self.requests.lock().waiting.remove(self.id);
        if withdrawn.is_some() {
            self.requests.notify("$/cancel_request", &json!({"requestId": self.id}));
        }
    }
}
