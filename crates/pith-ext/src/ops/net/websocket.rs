//! Clients of WebSocket, on tokio-websockets.

use std::sync::Arc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_websockets::{ClientBuilder, CloseCode, Error, Limits, Message, WebSocketStream};

use super::Place;
use super::link::{Ends, Order, Outlet};
use super::socket::connect_tcp;
use super::tls;

/// The longest message that is accepted.
const MAX_MESSAGE: usize = 64 << 20;

/// Whom to connect to, and what to say first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    url: String,
    host: String,
    port: u16,
    is_secure: bool,
    headers: Vec<(String, String)>,
}

/// What JavaScript sends.
pub(super) enum Frame {
    Text(String),
    Binary(Vec<u8>),
    Close(Option<u16>, String),
}

/// Opens a connection and serves it until one side has closed it.
pub(super) async fn connect(target: Target, ends: Ends, room: Arc<Semaphore>) {
    let Ends { reads, writes, cancel, outlet } = ends;
    let Ok(_permit) = room.try_acquire_owned() else {
        let error = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        outlet.fail(&error, "connect", json!({}));
        return outlet.settle();
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = async {
            let place = Place { path: None, host: Some(target.host.clone()), port: target.port };
            let Some(stream) = connect_tcp(&place, &outlet).await else { return };
            if !target.is_secure {
                return open(&target, stream, reads, writes, &outlet).await;
            }
            match tls::secure(stream, &target.host, None, b"http/1.1").await {
                Ok(stream) => open(&target, stream, reads, writes, &outlet).await,
                Err(why) => outlet.say(&failure(&why)),
            }
        } => {}
    }
    outlet.settle();
}

fn failure(why: &str) -> Value {
    json!({ "event": "error", "message": why, "facts": {} })
}

async fn open<S>(
    target: &Target,
    stream: S,
    reads: UnboundedReceiver<()>,
    writes: UnboundedReceiver<Order>,
    outlet: &Outlet,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match shake_hands(target, stream).await {
        Ok((socket, response)) => {
            let protocol = response.headers().get("sec-websocket-protocol").and_then(|value| value.to_str().ok());
            outlet.say(&json!({ "event": "open", "protocol": protocol }));
            let (sink, messages) = socket.split();
            let (closing, closed) = unbounded_channel();
            tokio::select! {
                () = read(messages, reads, &closing, outlet) => {}
                () = write(sink, writes, closed, outlet) => {}
            }
        }
        Err(why) => outlet.say(&failure(&why)),
    }
}

async fn shake_hands<S>(target: &Target, stream: S) -> Result<(WebSocketStream<S>, Response<()>), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let uri: Uri = target.url.parse().map_err(|_| format!("Invalid URL: {}", target.url))?;
    let limits = Limits::default().max_payload_len(Some(MAX_MESSAGE));
    let mut client = ClientBuilder::from_uri(uri).limits(limits);
    for (name, value) in &target.headers {
        let key = HeaderName::try_from(name).map_err(|_| format!("Invalid header name: {name}"))?;
        let value = HeaderValue::try_from(value).map_err(|_| format!("Invalid value of header {name}"))?;
        client = client.add_header(key, value).map_err(|_| format!("The header {name} cannot be set"))?;
    }
    client.connect_on(stream).await.map_err(|error| error.to_string())
}

/// Delivers a message each time JavaScript asks for one.
async fn read<S>(
    mut messages: SplitStream<WebSocketStream<S>>,
    mut wanted: UnboundedReceiver<()>,
    closing: &UnboundedSender<()>,
    outlet: &Outlet,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut close = None;
    while close.is_some() || wanted.recv().await.is_some() {
        loop {
            match messages.next().await {
                Some(Ok(message)) => {
                    if let Some(text) = message.as_text() {
                        outlet.say(&json!({ "event": "text", "text": text }));
                    } else if message.is_binary() {
                        outlet.deliver(message.into_payload().to_vec());
                    } else if let Some((code, reason)) = message.as_close() {
                        close = Some((u16::from(code), reason.to_owned()));
                        // The answer to it is written by the other half.
                        let _ = closing.send(());
                        continue;
                    } else {
                        continue;
                    }
                    break;
                }
                Some(Err(Error::PayloadTooLong { .. })) => {
                    return outlet.say(&failure("Max payload size exceeded"));
                }
                Some(Err(error)) if close.is_none() => return outlet.say(&failure(&error.to_string())),
                Some(Err(_)) | None => {
                    let (code, reason) = close.unwrap_or((1006, String::new()));
                    return outlet.say(&json!({ "event": "closed", "code": code, "reason": reason }));
                }
            }
        }
    }
}

async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut orders: UnboundedReceiver<Order>,
    mut closing: UnboundedReceiver<()>,
    outlet: &Outlet,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            _ = closing.recv() => {
                // Writes the answer to the close of the other side; who reads notices the end.
                let _ = sink.flush().await;
                return std::future::pending().await;
            }
        };
        let message = match order {
            Some(Order::Send(Frame::Text(text))) => Message::text(text),
            Some(Order::Send(Frame::Binary(bytes))) => Message::binary(bytes),
            Some(Order::Send(Frame::Close(code, reason))) => {
                let code = code.and_then(|code| CloseCode::try_from(code).ok());
                Message::close(code, &reason)
            }
            Some(Order::Read | Order::Write(_) | Order::End | Order::Respond(_)) => continue,
            None => return,
        };
        // Who reads notices what has become of the connection.
        if sink.send(message).await.is_err() {
            return std::future::pending().await;
        }
        outlet.say(&json!({ "event": "written" }));
    }
}
