//! The driver's end of a session: commands in, answers and endings out.

use pith_protocol::inbound::decode;
use pith_protocol::{Inbound, Response};
use serde_json::Value;
use tokio::sync::mpsc;

/// What a driver has to know of a session.
#[derive(Debug)]
pub enum Notice {
    /// A command was answered.
    Answer { id: u64, result: Result<Value, String> },
    /// Nothing happens any more without a new command.
    Settled(Settled),
}

/// How an activity ended.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// Text of the last answer.
    pub text: String,
    /// Why the last answer is none.
    pub failure: Option<String>,
}

/// Sends commands and waits for what becomes of them.
pub struct Client {
    /// To the session; closing it ends the session.
    lines: mpsc::Sender<Inbound>,
    /// From the outbox; closed when the session has ended.
    notices: mpsc::UnboundedReceiver<Notice>,
    n_sent: u64,
}

impl Client {
    pub fn new(lines: mpsc::Sender<Inbound>, notices: mpsc::UnboundedReceiver<Notice>) -> Self {
        Client { lines, notices, n_sent: 0 }
    }

    /// Sends a command, an object as a host would write it. Returns its id.
    pub async fn send(&mut self, mut command: Value) -> u64 {
        self.n_sent += 1;
        command["id"] = self.n_sent.into();
        let line = decode(command.to_string().as_bytes()).expect("an object is no blank line");
        // A session that has ended tells so by closing the notices.
        let _ = self.lines.send(line).await;
        self.n_sent
    }

    /// The next notice; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }

    /// Sends a command and waits for its answer. Endings in between are of no interest to the caller.
    pub async fn call(&mut self, command: Value) -> Result<Value, String> {
        let sent = self.send(command).await;
        while let Some(notice) = self.next().await {
            match notice {
                Notice::Answer { id, result } if id == sent => return result,
                Notice::Answer { .. } | Notice::Settled(_) => {}
            }
        }
        Err("the session has ended".to_owned())
    }
}

/// The notice of a response.
pub fn answered(response: &Response<'_>) -> Option<Notice> {
    let id = response.id?.get().parse().ok()?;
    let data = || response.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let result = match response.success {
        true => Ok(data()),
        false => Err(response.error.unwrap_or("failed").to_owned()),
    };
    Some(Notice::Answer { id, result })
}
