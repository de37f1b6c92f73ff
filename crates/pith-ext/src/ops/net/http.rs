//! HTTP servers, on hyper: each request becomes an operation that reads its body and writes the response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::Place;
use super::link::{Ends, Order, Outlet};
use super::listen::{Listener, Server, Stream};
use super::socket;

/// Requests that wait for JavaScript; further ones wait in their connections.
const QUEUE: usize = 16;

/// The head of a response.
pub(super) struct ResponseHead(Response<()>);

#[derive(Deserialize)]
struct WrittenHead {
    status: u16,
    headers: Vec<(String, String)>,
}

/// Reads the head of a response that JavaScript wrote.
pub(super) fn response(text: &str) -> Result<ResponseHead, String> {
    let head: WrittenHead = crate::json::parse(text)?;
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(head.status).map_err(|_| format!("Invalid status code: {}", head.status))?;
    for (name, value) in head.headers {
        let key = HeaderName::try_from(&name).map_err(|_| format!("Invalid header name: {name}"))?;
        // Node sends what fits into one byte per character.
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
        let value = value.ok_or_else(|| format!("Invalid character in header content [\"{name}\"]"))?;
        response.headers_mut().append(key, value);
    }
    Ok(ResponseHead(response))
}

/// A response's body: what JavaScript writes, piece by piece. Without an end the connection is cut.
struct Outgoing {
    pieces: mpsc::Receiver<Piece>,
    is_whole: bool,
}

enum Piece {
    Data(Vec<u8>),
    End,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_whole {
            return Poll::Ready(None);
        }
        self.pieces.poll_recv(context).map(|piece| match piece {
            Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes.into()))),
            Some(Piece::End) => {
                self.is_whole = true;
                None
            }
            None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.is_whole
    }
}

/// A request and the way to its response. Dropping it closes the connection.
struct Exchange {
    request: Request<Incoming>,
    upgrade: OnUpgrade,
    respond: oneshot::Sender<Response<Outgoing>>,
    /// Who is at both ends of the connection.
    facts: Arc<Value>,
}

/// Runs a server until it is closed; its operation ends when its connections have.
pub(super) async fn listen(place: Place, mut slots: UnboundedReceiver<Ends>, server: Server) {
    let Server { outlet, stop, room } = server;
    let Some(listener) = Listener::bind(&place, &outlet).await else { return outlet.settle() };
    let (queue, mut waiting) = mpsc::channel(QUEUE);
    // Nothing is sent: it closes when the last connection has dropped its side.
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let accepting = accept(listener, queue, room.clone(), stop.clone(), open);
    let serving = async {
        while let Some(slot) = slots.recv().await {
            let Some(exchange) = waiting.recv().await else { break };
            tokio::spawn(serve(exchange, slot, room.clone()));
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ((), ()) = async { tokio::join!(accepting, serving) } => {}
    }
    all_closed.recv().await;
    outlet.settle();
}

async fn accept(
    listener: Listener,
    queue: mpsc::Sender<Exchange>,
    room: Arc<Semaphore>,
    stop: CancellationToken,
    open: mpsc::Sender<Infallible>,
) {
    while let Ok(permit) = room.clone().acquire_owned().await {
        let stream = listener.accept().await;
        let facts = Arc::new(stream.facts());
        let (queue, stop, open) = (queue.clone(), stop.clone(), open.clone());
        match stream {
            Stream::Tcp(stream) => drop(tokio::spawn(converse(stream, facts, queue, stop, (permit, open)))),
            Stream::Unix(stream) => drop(tokio::spawn(converse(stream, facts, queue, stop, (permit, open)))),
        }
    }
}

/// Serves one connection. After the server was closed it ends with the request it is in.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    facts: Arc<Value>,
    queue: mpsc::Sender<Exchange>,
    stop: CancellationToken,
    _held: (OwnedSemaphorePermit, mpsc::Sender<Infallible>),
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (queue, facts) = (queue.clone(), facts.clone());
        async move {
            let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
            let upgrade = hyper::upgrade::on(&mut request);
            let (respond, answer) = oneshot::channel();
            queue.send(Exchange { request, upgrade, respond, facts }).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())
        }
    });
    let mut server = http1::Builder::new();
    let connection = server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is seen by those who use it.
        _ = connection.as_mut() => {}
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// How the exchange ended.
enum Answered {
    Done,
    /// From here on it is a socket.
    Upgraded,
}

async fn serve(exchange: Exchange, ends: Ends, room: Arc<Semaphore>) {
    let Ends { mut reads, mut writes, cancel, outlet } = ends;
    let Exchange { request, upgrade, respond, facts } = exchange;
    let (head, body) = request.into_parts();
    let headers: Vec<(&str, String)> =
        head.headers.iter().map(|(name, value)| (name.as_str(), latin1(value))).collect();
    outlet.say(&json!({
        "event": "request",
        "method": head.method.as_str(),
        "url": head.uri.to_string(),
        "version": if head.version == hyper::Version::HTTP_10 { "1.0" } else { "1.1" },
        "headers": headers,
        "local": facts["local"],
        "remote": facts["remote"],
    }));
    let answered = tokio::select! {
        biased;
        () = cancel.cancelled() => Answered::Done,
        answered = async {
            let reading = read(body, &mut reads, &outlet);
            let writing = write(respond, head.method == Method::HEAD, &mut writes, &outlet);
            tokio::pin!(reading, writing);
            tokio::select! {
                answered = &mut writing => answered,
                () = &mut reading => writing.await,
            }
        } => answered,
    };
    match (answered, room.try_acquire_owned()) {
        (Answered::Upgraded, Ok(permit)) => {
            if let Ok(upgraded) = upgrade.await {
                outlet.say(&json!({ "event": "upgraded" }));
                let ends = Ends { reads, writes, cancel, outlet };
                return socket::serve(TokioIo::new(upgraded), ends, permit).await;
            }
            outlet.settle();
        }
        _ => outlet.settle(),
    }
}

/// Headers are bytes; Node reads each as one character.
fn latin1(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|&byte| char::from(byte)).collect()
}

async fn read(mut body: Incoming, wanted: &mut UnboundedReceiver<()>, outlet: &Outlet) {
    while wanted.recv().await.is_some() {
        loop {
            match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                Some(Ok(frame)) => {
                    // Trailers say nothing that JavaScript asks for.
                    let Ok(data) = frame.into_data() else { continue };
                    outlet.deliver(data.to_vec());
                    break;
                }
                Some(Err(_)) => return outlet.say(&json!({ "event": "aborted" })),
                None => return outlet.say(&json!({ "event": "end" })),
            }
        }
    }
}

/// Writes the response; returns when it is written, or when nobody is there to read it.
async fn write(
    respond: oneshot::Sender<Response<Outgoing>>,
    is_head: bool,
    orders: &mut UnboundedReceiver<Order>,
    outlet: &Outlet,
) -> Answered {
    let mut respond = respond;
    let (pieces, body) = mpsc::channel(1);
    let head = loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Respond(ResponseHead(head))) => break head,
                Some(Order::Read | Order::Write(_) | Order::End | Order::Send(_)) => {}
                None => return Answered::Done,
            },
            () = respond.closed() => {
                outlet.say(&json!({ "event": "aborted" }));
                return Answered::Done;
            }
        }
    };
    let status = head.status();
    let is_upgrade = status == StatusCode::SWITCHING_PROTOCOLS;
    // Such a response has no body: nobody takes the pieces.
    let is_bare = is_head || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    let body = Outgoing { pieces: body, is_whole: is_upgrade };
    // Fails if the client has gone: the first piece notices.
    let _ = respond.send(head.map(|()| body));
    if is_upgrade {
        return Answered::Upgraded;
    }
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            () = pieces.closed(), if !is_bare => {
                outlet.say(&json!({ "event": "aborted" }));
                return Answered::Done;
            }
        };
        match order {
            Some(Order::Write(bytes)) => {
                if !is_bare && pieces.send(Piece::Data(bytes)).await.is_err() {
                    outlet.say(&json!({ "event": "aborted" }));
                    return Answered::Done;
                }
                outlet.say(&json!({ "event": "written" }));
            }
            Some(Order::End) => {
                if !is_bare {
                    // A client that has gone does not miss it.
                    let _ = pieces.send(Piece::End).await;
                }
                outlet.say(&json!({ "event": "shut" }));
                return Answered::Done;
            }
            Some(Order::Read | Order::Respond(_) | Order::Send(_)) => {}
            None => return Answered::Done,
        }
    }
}
