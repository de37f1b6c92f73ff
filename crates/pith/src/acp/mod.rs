//! `--mode acp`: serves editors that speak the Agent Client Protocol.
//!
//! ```text
//! stdin ─ reader ─► Agent ─┬─ Conversation A ─► session A ─► AcpOutbox A ─┐
//!                          ├─ Conversation B ─► session B ─► AcpOutbox B ─┼─► frame queue ─ writer ─ stdout
//!                          └─ answers of its own ─────────────────────────┘
//! ```
//!
//! The sessions themselves belong to the [`crate::hub`]; what frames and updates look like is in `pith-acp`.

mod agent;
mod bridge;
mod channel;
mod conversation;
mod dialogs;
mod host_tools;
mod launch;
mod lifecycle;
mod options;
mod outbox;
mod own;
mod own_events;
mod place;
mod requests;
mod responder;
mod saved;
mod servers;
mod sign_in;
mod slash;
mod terminals;
mod turn;
mod turns;

use std::rc::Rc;

use pith_acp::wire::{self, Incoming};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::cli::Cli;
use crate::lifecycle::Ending;
use crate::program::Program;
use crate::rpc::{self, MAX_LINE};
use crate::transport::writer::FrameQueue;
use crate::transport::{Line, finish, reader, take_stdout};
use crate::warn;
use agent::Agent;
use launch::Launch;

/// Serves the editor until it disconnects, and returns the exit code.
pub fn serve(cli: Cli, program: &Program) -> anyhow::Result<u8> {
    let dialect = rpc::dialect(&cli, program)?;
    let max_line = cli.max_line_bytes.unwrap_or(MAX_LINE);
    let launch = Launch::new(cli, dialect)?;
    // From here on only frames reach the editor.
    let stdout = take_stdout()?;
    let ending = Ending::default();
    let on_broken = {
        let ending = ending.clone();
        move || {
            warn("pith: the editor has closed stdout");
            ending.host_gone();
        }
    };
    let (queue, writer) = FrameQueue::start(stdout, on_broken)?;
    let inbox = reader::start_decoding(max_line, queue.backpressure(), move |line| match line {
        Line::Whole(bytes) => wire::decode(bytes),
        Line::TooLong => Some(wire::too_long(max_line)),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let agent = Rc::new(Agent::new(launch, queue.clone()));
    // Lives until the process ends: what is left in it then is not worth ending in order.
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        ending.watch_signals();
        tokio::spawn(ending.clone().limit_when_stopped());
        converse(&agent, inbox, &ending).await;
        agent.answer_last(&ending.stop).await;
        ending.limit();
        agent.shut_down().await;
    });
    queue.close();
    finish(writer);
    agent.end();
    // Blocked threads (stdin) end with the process.
    std::process::exit(ending.code());
}

/// Takes frames until the editor closes stdin, or something ends the process.
async fn converse(agent: &Rc<Agent>, mut inbox: mpsc::Receiver<Incoming>, ending: &Ending) {
    loop {
        let incoming = tokio::select! {
            biased;
            () = ending.stop.cancelled() => return,
            incoming = inbox.recv() => incoming,
        };
        match incoming {
            Some(incoming) => agent.handle(incoming),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, MutexGuard};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use serde_json::Value;

    use super::*;

    /// Frames as an editor would read them.
    #[derive(Clone, Default)]
    pub struct Frames(Arc<Mutex<Vec<u8>>>);

    impl Frames {
        /// A queue that writes here.
        pub fn queue(&self) -> (Arc<FrameQueue>, JoinHandle<()>) {
            FrameQueue::start(self.clone(), || panic!("nothing breaks")).expect("a thread")
        }

        /// Keeps the queue from writing, as an editor that does not read.
        pub fn stall(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().expect("no panic")
        }

        /// Waits for a frame, while other tasks go on.
        pub async fn wait(&self, wanted: impl Fn(&Value) -> bool) {
            while !self.read().iter().any(&wanted) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }

        /// Ends the queue and returns everything.
        pub fn written(&self, queue: &FrameQueue, writer: JoinHandle<()>) -> Vec<Value> {
            queue.close();
            finish(writer);
            self.read()
        }

        fn read(&self) -> Vec<Value> {
            let bytes = self.0.lock().expect("no panic");
            let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
            whole.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
        }
    }

    impl Write for Frames {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
