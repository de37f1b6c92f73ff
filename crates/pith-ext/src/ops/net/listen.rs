//! Servers: where they listen, and who gets the next connection.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Place;
use super::link::{Ends, Outlet};
use super::socket;
use crate::engine::inbox::Inbox;

/// How long to wait when the system has no more files for a connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The engine's side of a server. Dropping it stops listening; connections that are open stay.
pub(super) struct Listening {
    slots: UnboundedSender<Ends>,
    _stop: DropGuard,
}

impl Listening {
    /// Waits for the next connection on behalf of an operation.
    pub fn accept(&self, slot: Ends) {
        // A server that has failed has said so.
        let _ = self.slots.send(slot);
    }
}

/// The task's side of a server.
pub(super) struct Server {
    pub outlet: Outlet,
    pub stop: CancellationToken,
    pub room: Arc<Semaphore>,
}

/// Makes both sides of a server.
pub(super) fn pair(op: u64, slots: UnboundedSender<Ends>, inbox: Inbox, room: Arc<Semaphore>) -> (Listening, Server) {
    let stop = CancellationToken::new();
    let server = Server { outlet: Outlet::new(op, inbox), stop: stop.clone(), room };
    (Listening { slots, _stop: stop.drop_guard() }, server)
}

/// A place that accepts connections.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// The file is removed when the listener is dropped.
    Unix(UnixListener, #[expect(dead_code, reason = "dropping it is its use")] SocketFile),
}

pub(super) struct SocketFile(String);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
}

/// An accepted connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// What JavaScript is told about it.
    pub fn facts(&self) -> Value {
        match self {
            Stream::Tcp(stream) => socket::facts(stream),
            Stream::Unix(_) => json!({ "event": "open" }),
        }
    }
}

impl Listener {
    /// Starts to listen and says so, or why not. Without a host that is the loopback address: a server is seen by the
    /// network only if the extension says so.
    pub async fn bind(place: &Place, outlet: &Outlet) -> Option<Listener> {
        if let Some(path) = &place.path {
            match UnixListener::bind(path) {
                Ok(listener) => {
                    outlet.say(&json!({ "event": "listening", "address": path }));
                    return Some(Listener::Unix(listener, SocketFile(path.clone())));
                }
                Err(error) => outlet.fail(&error, "listen", json!({ "address": path })),
            }
            return None;
        }
        let host = place.host.as_deref().unwrap_or("127.0.0.1");
        match TcpListener::bind((host, place.port)).await {
            Ok(listener) => {
                let address = listener.local_addr().ok().map(socket::place_of);
                outlet.say(&json!({ "event": "listening", "address": address }));
                Some(Listener::Tcp(listener))
            }
            // A name that does not lead to an address has no number.
            Err(error) if error.raw_os_error().is_none() => {
                outlet.fail_lookup(host);
                None
            }
            Err(error) => {
                outlet.fail(&error, "listen", json!({ "address": host, "port": place.port }));
                None
            }
        }
    }

    /// Waits for the next connection. One that is gone before it was accepted is no error of the server.
    pub async fn accept(&self) -> Stream {
        loop {
            let accepted: io::Result<Stream> = match self {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
                Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            };
            match accepted {
                Ok(stream) => {
                    if let Stream::Tcp(stream) = &stream {
                        // A connection that is about to fail says so when it is used.
                        let _ = stream.set_nodelay(true);
                    }
                    return stream;
                }
                Err(_) => tokio::time::sleep(EXHAUSTED).await,
            }
        }
    }
}

/// Runs a server of sockets until it is closed.
pub(super) async fn run(place: Place, mut slots: UnboundedReceiver<Ends>, server: Server) {
    let Server { outlet, stop, room } = server;
    if let Some(listener) = Listener::bind(&place, &outlet).await {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = async {
                while let Some(slot) = slots.recv().await {
                    let Ok(permit) = room.clone().acquire_owned().await else { break };
                    let stream = listener.accept().await;
                    slot.outlet.say(&stream.facts());
                    match stream {
                        Stream::Tcp(stream) => drop(tokio::spawn(socket::serve(stream, slot, permit))),
                        Stream::Unix(stream) => drop(tokio::spawn(socket::serve(stream, slot, permit))),
                    }
                }
            } => {}
        }
    }
    outlet.settle();
}
