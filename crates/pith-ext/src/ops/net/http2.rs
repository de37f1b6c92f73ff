//! HTTP/2 clients, on h2: a task for each session, and one for each of its streams.

use std::future::poll_fn;
use std::sync::Arc;

use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, SendStream};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Place;
use super::link::{Ends, Order, Outlet};
use super::socket::connect_tcp;
use super::tls;
use crate::engine::inbox::Inbox;

/// The header block of a response that is accepted at most.
const MAX_HEADERS: u32 = 256 << 10;

/// Whom to connect to, and how.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    host: String,
    port: u16,
    is_secure: bool,
    /// The name the certificate must have.
    name: String,
    /// Certificates to trust instead of the system's, as PEM.
    ca: Option<String>,
}

/// A request that JavaScript wrote.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenRequest {
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
    /// Whether it has no body.
    is_whole: bool,
}

/// The head of a request, and whether it is the whole of it.
pub(super) struct RequestHead {
    request: Request<()>,
    is_whole: bool,
}

/// Reads the head of a request.
pub(super) fn request(text: &str) -> Result<RequestHead, String> {
    let written: WrittenRequest = crate::json::parse(text)?;
    let mut request = Request::new(());
    *request.method_mut() = Method::try_from(written.method.as_str()).map_err(|_| "Invalid method".to_owned())?;
    *request.uri_mut() = Uri::try_from(&written.uri).map_err(|_| format!("Invalid URL: {}", written.uri))?;
    *request.version_mut() = hyper::Version::HTTP_2;
    for (name, value) in written.headers {
        let key = HeaderName::try_from(&name).map_err(|_| format!("Invalid header name: {name}"))?;
        let value = HeaderValue::try_from(&value).map_err(|_| format!("Invalid value of header {name}"))?;
        request.headers_mut().append(key, value);
    }
    Ok(RequestHead { request, is_whole: written.is_whole })
}

/// What JavaScript wants of a session.
pub(super) enum Wish {
    Request(Box<RequestHead>, Ends),
    Ping,
}

/// The engine's side of a session. Dropping it ends the session.
pub(super) struct Session {
    wishes: UnboundedSender<Wish>,
    _cancel: DropGuard,
}

impl Session {
    /// Passes a wish on; returns false if the session has ended.
    pub fn wish(&self, wish: Wish) -> bool {
        self.wishes.send(wish).is_ok()
    }
}

/// The task's side of a session.
pub(super) struct SessionEnds {
    wishes: UnboundedReceiver<Wish>,
    cancel: CancellationToken,
    outlet: Outlet,
}

/// Makes both sides of session `op`.
pub(super) fn pair(op: u64, inbox: Inbox) -> (Session, SessionEnds) {
    let (wishes, wanted) = mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let ends = SessionEnds { wishes: wanted, cancel: cancel.clone(), outlet: Outlet::new(op, inbox) };
    (Session { wishes, _cancel: cancel.drop_guard() }, ends)
}

/// Opens a session and serves it until one side ends it.
pub(super) async fn connect(target: Target, ends: SessionEnds, room: Arc<Semaphore>) {
    let SessionEnds { wishes, cancel, outlet } = ends;
    match room.try_acquire_owned() {
        Ok(_permit) => {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = async {
                    let place = Place { path: None, host: Some(target.host.clone()), port: target.port };
                    let Some(stream) = connect_tcp(&place, &outlet).await else { return };
                    if !target.is_secure {
                        return converse(stream, wishes, &outlet).await;
                    }
                    match tls::secure(stream, &target.name, target.ca.as_deref(), b"h2").await {
                        Ok(stream) => converse(stream, wishes, &outlet).await,
                        Err(why) => outlet.say(&failure("ERR_HTTP2_ERROR", &why)),
                    }
                } => {}
            }
        }
        Err(_) => {
            let error = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
            outlet.fail(&error, "connect", json!({}));
        }
    }
    outlet.settle();
}

fn failure(code: &str, why: &str) -> Value {
    json!({ "event": "error", "message": why, "facts": { "code": code } })
}

/// What h2 says about a session or a stream, as Node names it.
fn failure_of(error: &h2::Error, code: &str) -> Value {
    let mut failure = failure(code, &error.to_string());
    failure["reason"] = json!(error.reason().map(u32::from));
    failure
}

async fn converse<S>(stream: S, mut wishes: UnboundedReceiver<Wish>, outlet: &Outlet)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = h2::client::Builder::new();
    let builder = builder.enable_push(false).max_header_list_size(MAX_HEADERS);
    let (client, mut connection) = match builder.handshake::<_, Bytes>(stream).await {
        Ok(session) => session,
        Err(error) => return outlet.say(&failure_of(&error, "ERR_HTTP2_SESSION_ERROR")),
    };
    let mut pings = connection.ping_pong().expect("a new connection has not given it away");
    let mut is_pinging = false;
    outlet.say(&json!({ "event": "open" }));
    // Streams end with the session.
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    outlet.say(&failure_of(&error, "ERR_HTTP2_SESSION_ERROR"));
                }
                return;
            }
            pong = poll_fn(|context| pings.poll_pong(context)), if is_pinging => {
                is_pinging = false;
                outlet.say(&json!({ "event": if pong.is_ok() { "pong" } else { "noPong" } }));
            }
            Some(_) = streams.join_next() => {}
            wish = wishes.recv() => match wish {
                Some(Wish::Request(head, ends)) => drop(streams.spawn(serve(client.clone(), *head, ends))),
                Some(Wish::Ping) => {
                    is_pinging = pings.send_ping(Ping::opaque()).is_ok();
                    if !is_pinging {
                        outlet.say(&json!({ "event": "noPong" }));
                    }
                }
                None => return,
            },
        }
    }
}

/// Serves one stream until both sides have ended it, or until JavaScript drops it, which resets it.
async fn serve(client: SendRequest<Bytes>, head: RequestHead, ends: Ends) {
    let Ends { mut reads, mut writes, cancel, outlet } = ends;
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        result = async {
            let (response, mut body) = client.ready().await?.send_request(head.request, head.is_whole)?;
            outlet.say(&json!({ "event": "open", "id": body.stream_id().as_u32() }));
            let writing = async {
                if head.is_whole { Ok(()) } else { write(&mut body, &mut writes, &outlet).await }
            };
            tokio::try_join!(writing, read(response, &mut reads, &outlet))
        } => {
            if let Err(error) = result {
                outlet.say(&failure_of(&error, "ERR_HTTP2_STREAM_ERROR"));
            }
        }
    }
    outlet.settle();
}

async fn write(
    body: &mut SendStream<Bytes>,
    orders: &mut UnboundedReceiver<Order>,
    outlet: &Outlet,
) -> Result<(), h2::Error> {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Write(bytes) => {
                let mut rest = Bytes::from(bytes);
                while !rest.is_empty() {
                    body.reserve_capacity(rest.len());
                    // Nothing: the stream is closed, which the reading side hears with its reason.
                    let Some(room) = poll_fn(|context| body.poll_capacity(context)).await else { return Ok(()) };
                    let piece = rest.split_to(room?.min(rest.len()));
                    body.send_data(piece, false)?;
                }
                outlet.say(&json!({ "event": "written" }));
            }
            Order::End => {
                body.send_data(Bytes::new(), true)?;
                outlet.say(&json!({ "event": "shut" }));
                break;
            }
            Order::Read | Order::Respond(_) | Order::Send(_) => {}
        }
    }
    Ok(())
}

async fn read(response: ResponseFuture, wanted: &mut UnboundedReceiver<()>, outlet: &Outlet) -> Result<(), h2::Error> {
    let (head, mut body) = response.await?.into_parts();
    outlet.say(&json!({ "event": "response", "status": head.status.as_u16(), "headers": shown(&head.headers) }));
    while wanted.recv().await.is_some() {
        loop {
            match body.data().await.transpose()? {
                // An empty frame is no piece.
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => {
                    body.flow_control().release_capacity(bytes.len())?;
                    outlet.deliver(bytes.to_vec());
                    break;
                }
                None => {
                    if let Some(trailers) = body.trailers().await? {
                        outlet.say(&json!({ "event": "trailers", "headers": shown(&trailers) }));
                    }
                    outlet.say(&json!({ "event": "end" }));
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Headers as pairs. They are bytes; Node reads each as one character.
fn shown(headers: &HeaderMap) -> Vec<(&str, String)> {
    let text = |value: &HeaderValue| value.as_bytes().iter().map(|&byte| char::from(byte)).collect();
    headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect()
}
