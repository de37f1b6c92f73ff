//! What the engine thread is told.

use std::sync::mpsc;

/// One message to the engine thread. Each enters the engine at most once.
#[derive(Debug)]
pub enum ToEngine {
    /// Runs a method of the JavaScript side; the answer goes to the waiting call `id`.
    Call { id: u64, method: &'static str, args: String },
    /// An observation of which only the newest matters; the text waits in the shared slot `key`.
    Update { key: String },
    /// Fires the abort signal of a call.
    Abort { id: u64 },
    /// Ends an operation that extension code waits for.
    Settle { op: u64, outcome: Result<Payload, String> },
    /// One more piece of an operation that goes on.
    Push { op: u64, payload: Payload },
    /// Leave the loop.
    Stop,
}

/// Data on its way into the engine.
#[derive(Debug)]
pub enum Payload {
    Nothing,
    /// Parsed on arrival.
    Json(String),
    /// Becomes a `Uint8Array`.
    Bytes(Vec<u8>),
}

impl Payload {
    /// A serializable value.
    pub fn json(value: &impl serde::Serialize) -> Payload {
        Payload::Json(serde_json::to_string(value).expect("plain data serializes"))
    }
}

/// The sending side. Helpers and the session hold clones; a closed inbox means the thread is gone.
pub type Inbox = mpsc::Sender<ToEngine>;
