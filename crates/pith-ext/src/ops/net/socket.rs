//! One connection: what is read goes to JavaScript, what JavaScript writes goes out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Place;
use super::link::{Ends, Order, Outlet};
use crate::engine::inbox::{Inbox, Payload, ToEngine};

/// The most that is read at once. Memory is used only for what arrives.
const PIECE: usize = 16 << 10;

/// Opens a connection and serves it.
pub(super) async fn connect(place: Place, ends: Ends, room: Arc<Semaphore>) {
    let outlet = ends.outlet.clone();
    let Ok(permit) = room.try_acquire_owned() else {
        let error = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        outlet.fail(&error, "connect", json!({}));
        return outlet.settle();
    };
    let cancel = ends.cancel.clone();
    tokio::select! {
        biased;
        () = cancel.cancelled() => outlet.settle(),
        () = async {
            match &place.path {
                Some(path) => match UnixStream::connect(path).await {
                    Ok(stream) => {
                        outlet.say(&json!({ "event": "open" }));
                        serve(stream, ends, permit).await;
                    }
                    Err(error) => {
                        outlet.fail(&error, "connect", json!({ "address": path }));
                        outlet.settle();
                    }
                },
                None => match connect_tcp(&place, &outlet).await {
                    Some(stream) => {
                        outlet.say(&facts(&stream));
                        serve(stream, ends, permit).await;
                    }
                    None => outlet.settle(),
                },
            }
        } => {}
    }
}

pub(super) async fn connect_tcp(place: &Place, outlet: &Outlet) -> Option<TcpStream> {
    let host = place.host.as_deref().unwrap_or("localhost");
    let addresses: Vec<SocketAddr> = match lookup_host((host, place.port)).await {
        Ok(addresses) => addresses.collect(),
        Err(_) => Vec::new(),
    };
    if addresses.is_empty() {
        outlet.fail_lookup(host);
        return None;
    }
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A connection that is about to fail says so when it is used.
                let _ = stream.set_nodelay(true);
                return Some(stream);
            }
            Err(error) => failure = Some((error, address)),
        }
    }
    if let Some((error, address)) = failure {
        outlet.fail(&error, "connect", json!({ "address": address.ip(), "port": address.port() }));
    }
    None
}

/// What JavaScript is told about a connection that is open.
pub(super) fn facts(stream: &TcpStream) -> Value {
    json!({ "event": "open", "local": stream.local_addr().ok().map(place_of), "remote": stream.peer_addr().ok().map(place_of) })
}

/// An address as Node writes it.
pub(super) fn place_of(address: SocketAddr) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({ "address": address.ip(), "family": family, "port": address.port() })
}

/// Serves an open connection until both directions are closed, or until JavaScript drops it.
pub(super) async fn serve(stream: impl AsyncRead + AsyncWrite, ends: Ends, _permit: OwnedSemaphorePermit) {
    let Ends { reads, writes, cancel, outlet } = ends;
    let (reader, writer) = tokio::io::split(stream);
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        // After an error there is nothing to wait for.
        result = async { tokio::try_join!(read(reader, reads, &outlet), write(writer, writes, &outlet)) } => {
            if let Err((error, syscall)) = result {
                outlet.fail(&error, syscall, json!({}));
            }
        }
    }
    outlet.settle();
}

type Ended = Result<(), (io::Error, &'static str)>;

async fn read(mut from: impl AsyncRead + Unpin, mut wanted: UnboundedReceiver<()>, outlet: &Outlet) -> Ended {
    while wanted.recv().await.is_some() {
        let mut piece = Vec::with_capacity(PIECE);
        let count = from.read_buf(&mut piece).await.map_err(|error| (error, "read"))?;
        if count == 0 {
            outlet.say(&json!({ "event": "end" }));
            break;
        }
        outlet.deliver(piece);
    }
    Ok(())
}

async fn write(mut to: impl AsyncWrite + Unpin, mut orders: UnboundedReceiver<Order>, outlet: &Outlet) -> Ended {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Write(bytes) => {
                to.write_all(&bytes).await.map_err(|error| (error, "write"))?;
                to.flush().await.map_err(|error| (error, "write"))?;
                outlet.say(&json!({ "event": "written" }));
            }
            Order::End => {
                // The other side may be gone already.
                let _ = to.shutdown().await;
                outlet.say(&json!({ "event": "shut" }));
                break;
            }
            Order::Read | Order::Respond(_) | Order::Send(_) => {}
        }
    }
    Ok(())
}

/// Answers `dns.lookup` with every address of a name.
pub(super) async fn lookup(op: u64, name: String, inbox: Inbox) {
    let found = lookup_host((name.as_str(), 0)).await;
    let addresses: Vec<Value> = found.map(|found| found.map(place_of).collect()).unwrap_or_default();
    let _ = inbox.send(ToEngine::Settle { op, outcome: Ok(Payload::json(&addresses)) });
}
