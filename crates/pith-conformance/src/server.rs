//! A scripted model on a loopback port, in four wire formats.
//!
//! It answers from a [`Script`], records every request and lets a test wait for one, for the end of an answer, or hold
//! an answer half way. Nothing in it is random.

mod connection;
mod http;
mod log;
mod play;
mod script;
mod wire;

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use log::{Outcome, Request};
pub use script::{After, Block, Fault, Script, Turn, TurnUsage};
pub use wire::Api;

use crate::timeout;
use connection::Connection;
use log::Log;
use play::ScriptPlayer;

/// A running model server; dropping it closes every connection.
pub struct ModelServer {
    address: SocketAddr,
    play: Arc<Mutex<ScriptPlayer>>,
    log: Arc<Log>,
    /// Set before the last connection, which wakes the accepting thread.
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts on a port the system selects.
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let play = Arc::new(Mutex::new(ScriptPlayer::new(script)));
        let log = Arc::new(Log::default());
        let stopping = Arc::new(AtomicBool::new(false));
        let acceptor = {
            let (play, log, stopping) = (Arc::clone(&play), Arc::clone(&log), Arc::clone(&stopping));
            thread::spawn(move || accept(&listener, &play, &log, &stopping))
        };
        ModelServer { address, play, log, stopping, acceptor: Some(acceptor) }
    }

    /// Returns the URL for clients, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an answer after those of the script.
    pub fn push(&self, turn: Turn) {
        self.play.lock().expect("choosing does not panic").add(turn);
    }

    /// Returns the model requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.log.requests()
    }

    /// Returns requests that were no model calls, which were answered with 404.
    pub fn other_requests(&self) -> Vec<Request> {
        self.log.others()
    }

    /// Waits for the request with that index (from 0).
    #[track_caller]
    pub fn wait_request(&self, index: usize) -> Request {
        expect(self.log.wait_request(index, timeout()))
    }

    /// Waits for the end of the answer to that request.
    #[track_caller]
    pub fn wait_outcome(&self, index: usize) -> Outcome {
        expect(self.log.wait_outcome(index, timeout()))
    }

    /// Waits until the answer to that request is held at its `hold_after`.
    #[track_caller]
    pub fn wait_held(&self, index: usize) {
        expect(self.log.wait_held(index, timeout()));
    }

    /// As [`ModelServer::wait_request`], for callers that report what is missing.
    pub fn try_wait_request(&self, index: usize, patience: Duration) -> Result<Request, String> {
        self.log.wait_request(index, patience)
    }

    /// As [`ModelServer::wait_held`], for callers that report what is missing.
    pub fn try_wait_held(&self, index: usize, patience: Duration) -> Result<(), String> {
        self.log.wait_held(index, patience)
    }

    /// Lets the answer to that request continue past its `hold_after`.
    pub fn release(&self, index: usize) {
        self.log.release(index);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which checks the flag first.
        TcpStream::connect(self.address).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

/// A test that waits in vain has failed.
#[track_caller]
fn expect<T>(waited: Result<T, String>) -> T {
    waited.unwrap_or_else(|problem| panic!("{problem}"))
}

fn accept(listener: &TcpListener, play: &Arc<Mutex<ScriptPlayer>>, log: &Arc<Log>, stopping: &AtomicBool) {
    let mut clients: Vec<(Weak<TcpStream>, JoinHandle<()>)> = Vec::new();
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            break;
        }
        clients.retain(|(_, thread)| !thread.is_finished());
        let Ok(stream) = stream.map(Arc::new) else { continue };
        let handle = Arc::downgrade(&stream);
        let (play, connection) = (Arc::clone(play), Connection::new(stream, Arc::clone(log)));
        // Errors are clients that left; the log has them already.
        clients.push((handle, thread::spawn(move || connection.serve(&play).unwrap_or_default())));
    }
    for (stream, thread) in clients {
        if let Some(stream) = stream.upgrade() {
            stream.shutdown(Shutdown::Both).ok();
        }
        thread.join().ok();
    }
}

#[cfg(test)]
mod tests;
