//! One pith process, as a host sees it.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pith_protocol::Call;
use pith_protocol::answers::{Accept, Client, Disposition, Greeting, PromptDisposition};
use pith_protocol::commands::{Abort, Hello, Prompt, Steer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::connection::{Request, encode};
use crate::events::end;
use crate::{Builder, CommandFailed, Error, Events, Exited, Told};

/// How long an ending pith is left alone before it is terminated.
const GRACE: Duration = Duration::from_secs(10);

/// One pith process. All methods take `&self`; share it in an `Arc`.
///
/// Dropping it ends pith as [`Pith::close`] does, in the background. Where the runtime ends first, pith is terminated
/// and waited for.
#[derive(Debug)]
pub struct Pith {
    /// To the connection; closed by dropping, which ends pith.
    requests: mpsc::UnboundedSender<Request>,
    /// How pith has ended.
    ended: watch::Receiver<Option<Exited>>,
    pid: Option<u32>,
    n_commands: AtomicU64,
}

impl Pith {
    /// Returns what says how to start pith.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(
        requests: mpsc::UnboundedSender<Request>,
        ended: watch::Receiver<Option<Exited>>,
        pid: Option<u32>,
    ) -> Self {
        Pith { requests, ended, pid, n_commands: AtomicU64::new(0) }
    }

    /// Returns the process id.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Sends a command and waits for its answer.
    pub async fn call<C: Call>(&self, command: C) -> Result<C::Answer, Error> {
        self.submit(C::NAME, &command).await
    }

    /// Sends any command, also one this version of the client does not know, and waits for its data.
    pub async fn ask(&self, kind: &str, fields: Map<String, Value>) -> Result<Value, Error> {
        #[derive(Serialize)]
        struct Command<'a> {
            r#type: &'a str,
            #[serde(flatten)]
            fields: Map<String, Value>,
        }
        self.submit(kind, &Command { r#type: kind, fields }).await
    }

    async fn submit<T: DeserializeOwned>(&self, kind: &str, command: &impl Serialize) -> Result<T, Error> {
        #[derive(Serialize)]
        struct Line<'a, C> {
            id: &'a str,
            #[serde(flatten)]
            command: &'a C,
        }
        let id = format!("rs-{}", self.n_commands.fetch_add(1, Ordering::Relaxed) + 1);
        let line = encode(&Line { id: &id, command });
        let (answer, answered) = oneshot::channel();
        // Where nobody takes it any more the channel of the answer is dropped too.
        self.requests.send(Request::Ask { id, line, answer }).ok();
        let Ok(answer) = answered.await else { return Err(self.exited().await.into()) };
        if !answer.is_success() {
            let (error, code) = answer.failure();
            return Err(CommandFailed { command: kind.to_owned(), error, code }.into());
        }
        let data = answer.data.as_deref().map_or("null", |data| data.get());
        serde_json::from_str(data).map_err(|error| Error::Unreadable {
            command: kind.to_owned(),
            data: serde_json::from_str(data).unwrap_or_default(),
            why: error.to_string(),
        })
    }

    /// Says who the host is and what it accepts; answers what pith can do. Peers that do not know the command refuse it.
    pub async fn hello(&self, client: Client, accept: Accept) -> Result<Greeting, Error> {
        self.call(Hello { client: Some(client), accept: Some(accept) }).await
    }

    /// Starts a run, or joins one as `streaming_behavior` says.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<PromptDisposition, Error> {
        self.call(prompt.into()).await
    }

    /// Gives the model something to consider before its next answer.
    pub async fn steer(&self, message: impl Into<Steer>) -> Result<PromptDisposition, Error> {
        self.call(message.into()).await
    }

    /// Stops the run; returns when it has stopped.
    pub async fn abort(&self) -> Result<(), Error> {
        self.call(Abort {}).await
    }

    /// Sends a prompt and returns what is told up to `agent_settled`: nothing for a text that an extension has dealt
    /// with itself (disposition `handled`).
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Run, Error> {
        let events = self.listen();
        let is_handled = self.prompt(prompt).await?.disposition == Disposition::Handled;
        Ok(Run { events, is_over: is_handled })
    }

    /// Subscribes to everything pith says from now on that answers no command.
    pub fn listen(&self) -> Events {
        let (listener, told) = mpsc::unbounded_channel();
        // Without a connection the listener is dropped, which ends the subscription.
        self.requests.send(Request::Listen(listener)).ok();
        Events::new(told, self.ended.clone())
    }

    /// Waits for the end of pith, without causing it.
    pub async fn exited(&self) -> Exited {
        end(self.ended.clone()).await
    }

    /// Ends pith: closes its stdin and waits; a pith that does not end within ten seconds is terminated, then killed.
    /// Returns its exit status. What pith has started ends with it.
    pub async fn close(&self) -> Option<ExitStatus> {
        self.close_within(GRACE).await
    }

    /// As [`Pith::close`], with another grace period.
    pub async fn close_within(&self, grace: Duration) -> Option<ExitStatus> {
        self.requests.send(Request::Close(grace)).ok();
        self.exited().await.status
    }
}

impl Drop for Pith {
    fn drop(&mut self) {
        self.requests.send(Request::Close(GRACE)).ok();
    }
}

/// The frames of one prompt.
#[derive(Debug)]
pub struct Run {
    events: Events,
    is_over: bool,
}

impl Run {
    /// Returns the next frame; `None` after `agent_settled`. Fails if pith ends before.
    pub async fn next(&mut self) -> Result<Option<Told>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let told = self.events.find(Some).await?;
        self.is_over = told.kind() == "agent_settled";
        Ok(Some(told))
    }

    /// Waits for the end and returns the text of the last answer.
    pub async fn text(mut self) -> Result<String, Error> {
        use pith_protocol::{Block, Event, Message};
        let mut text = String::new();
        while let Some(told) = self.next().await? {
            let Told::Event(Event::MessageEnd { message }) = told else { continue };
            if let Message::Assistant(answer) = message.into_owned() {
                text = answer.content.iter().filter_map(Block::as_text).collect();
            }
        }
        Ok(text)
    }
}
