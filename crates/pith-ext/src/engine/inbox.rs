//! The messages to the engine thread.

use std::sync::mpsc;

/// A message to the engine thread. Each enters the engine at most once.
#[derive(Debug)]
pub enum ToEngine {
    /// Calls a method of the JavaScript side; the answer goes to the pending call `id`.
    Call { id: u64, method: &'static str, args: String },
    /// Delivers an observation of which only the newest matters; the text is in the shared slot `key`.
    Update { key: String },
    /// Fires the abort signal of a call.
    Abort { id: u64 },
    /// Ends an operation that extension code waits for.
    Settle { op: u64, outcome: Result<Payload, String> },
    /// Delivers one more piece of an operation that goes on.
    Push { op: u64, payload: Payload },
    /// Ends the loop.
    Stop,
}

/// Data for the engine.
#[derive(Debug)]
pub enum Payload {
    Nothing,
    /// Parsed on arrival.
    Json(String),
    /// Becomes a `Uint8Array`.
    Bytes(Vec<u8>),
}

impl Payload {
    /// Serialises a value.
    pub fn json(value: &impl serde::Serialize) -> Payload {
        Payload::Json(serde_json::to_string(value).expect("plain data serializes"))
    }
}

/// The sending side. Helper threads and the session hold clones; it is closed when the thread has ended.
pub type Inbox = mpsc::Sender<ToEngine>;
