//! The modes for people and scripts: a single answer (`-p`, `--mode json`) or a chat.
//!
//! Each is a client of the same session that serves hosts: commands go in as lines, frames come back through an outbox.

mod answer_schema;
mod ask;
mod attach;
mod chat;
mod client;
mod confirm;
mod follow;
mod markdown;
mod one_shot;
mod output_file;
pub mod questions;
mod screen;
mod screen_outbox;
mod secret;
mod styled;
mod terminal;
pub mod tool_line;

pub use chat::{chat, tour};
pub use confirm::confirm;
pub use one_shot::{json, print};
pub use secret::{read_line, read_secret};

use pith_protocol::Inbound;
use pith_session::{Session, SessionExit, SessionParts};
use pith_tools::process::SHUTDOWN_GRACE;
use tokio::sync::mpsc;

use crate::lifecycle::Ending;
use client::{Client, Notice};

/// How many lines a client may be ahead of the session.
const BACKLOG: usize = 16;

/// Runs a session and its client until both have ended.
async fn drive<R>(
    parts: SessionParts,
    notices: mpsc::UnboundedReceiver<Notice>,
    ending: &Ending,
    driver: impl AsyncFnOnce(&mut Client) -> R,
) -> R {
    let (lines, inbox) = mpsc::channel(BACKLOG);
    let conversation = async {
        // Dropping the client closes the inbox, which ends the session.
        let mut client = Client::new(lines, notices);
        driver(&mut client).await
    };
    let (result, ()) = tokio::join!(conversation, serve(parts, inbox, ending));
    result
}

/// Serves a session until its inbox is closed, or something ends it.
async fn serve(parts: SessionParts, inbox: mpsc::Receiver<Inbound>, ending: &Ending) {
    tokio::spawn(ending.clone().limit_when_stopped());
    let session = Session::new(parts);
    let SessionExit { workbench, exit_status } = session.serve(inbox, ending.stop.clone()).await;
    ending.end_with(exit_status);
    ending.limit();
    workbench.jobs.shutdown_all(SHUTDOWN_GRACE).await;
}
