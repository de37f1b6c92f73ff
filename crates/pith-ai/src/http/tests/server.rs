//! A server that does as told, and a client that asks it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pith_agent::ModelClient;
use pith_protocol::{AssistantEvent, AssistantMessage, ErrorKind, LlmCall, Model, StopReason};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::client::{ClientOptions, Providers};
use crate::credentials::{CredentialSource, Credentials};
use crate::http::Timeouts;
use crate::testing::{call, user};

/// One thing the server does with a connection.
#[derive(Clone)]
pub(super) enum Act {
    Send(String),
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Waits for a permit of the test.
    Await(Arc<Semaphore>),
    /// Cuts the connection the rude way.
    Reset,
    Close,
    /// Waits until the client has gone and reports it.
    AwaitClose,
}

pub(super) struct Server {
    pub(super) base_url: String,
    /// Bodies of the requests, in order.
    pub(super) requests: Arc<Mutex<Vec<Value>>>,
    /// Heads of the requests, in order and in lower case.
    heads: Arc<Mutex<Vec<String>>>,
    /// One message per connection the client has closed.
    pub(super) closed: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// How many requests have come.
    pub(super) fn n_requests(&self) -> usize {
        self.requests.lock().expect("no panics").len()
    }

    /// The head of request number `at`, counted from zero, in lower case.
    pub(super) fn head(&self, at: usize) -> String {
        self.heads.lock().expect("no panics")[at].clone()
    }
}

/// Starts a server whose answer to a request is made from its number and body.
pub(super) async fn serve(answer: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let (report, closed) = mpsc::unbounded_channel();
    let server = Server { base_url, requests: Arc::default(), heads: Arc::default(), closed };
    let (answer, requests, heads) = (Arc::new(answer), server.requests.clone(), server.heads.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, report) = (answer.clone(), report.clone());
            let (requests, heads) = (requests.clone(), heads.clone());
            tokio::spawn(async move { connection(stream, &*answer, &requests, &heads, &report).await });
        }
    });
    server
}

async fn connection(
    mut stream: TcpStream,
    answer: &(impl Fn(usize, &Value) -> Vec<Act> + ?Sized),
    seen: &Mutex<Vec<Value>>,
    heads: &Mutex<Vec<String>>,
    report: &mpsc::UnboundedSender<()>,
) {
    while let Some((head, body)) = read_request(&mut stream).await {
        heads.lock().expect("no panics").push(head);
        let acts = {
            let mut seen = seen.lock().expect("no panics");
            seen.push(body.clone());
            answer(seen.len(), &body)
        };
        for act in acts {
            match act {
                Act::Send(text) => drop(stream.write_all(text.as_bytes()).await),
                Act::Bytes(bytes) => drop(stream.write_all(&bytes).await),
                Act::Pause(pause) => tokio::time::sleep(pause).await,
                Act::Await(gate) => gate.acquire().await.expect("the test is open").forget(),
                Act::Reset => {
                    stream.set_zero_linger().expect("a socket option");
                    return;
                }
                Act::Close => return,
                Act::AwaitClose => {
                    while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
                    let _ = report.send(());
                    return;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

pub(super) fn whole(status: &str, headers: &str, body: &str) -> Vec<Act> {
    vec![Act::Send(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))]
}

pub(super) fn event_stream(body: &str) -> Vec<Act> {
    whole("200 OK", "content-type: text/event-stream\r\n", body)
}

/// The head of a stream whose end is not announced.
pub(super) fn open_stream() -> Act {
    Act::Send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".into())
}

pub(super) fn chunk(text: &str) -> Act {
    Act::Send(format!("{:x}\r\n{text}\r\n", text.len()))
}

pub(super) struct Key(pub &'static str);

impl CredentialSource for Key {
    fn credentials<'a>(&'a self, _: &'a Model) -> BoxFuture<'a, Result<Credentials, String>> {
        Box::pin(async { Ok(Credentials { api_key: Some(self.0.into()), ..Credentials::default() }) })
    }
}

pub(super) fn providers(options: ClientOptions) -> Providers {
    Providers::new(Arc::new(Key("sk-secret-123456")), options)
}

pub(super) fn question(server: &Server, api: &str) -> LlmCall {
    let model = Model {
        id: "m".into(),
        api: api.into(),
        provider: "p".into(),
        base_url: server.base_url.clone(),
        context_window: 100_000,
        max_tokens: 1000,
        ..Model::default()
    };
    call(model, vec![user("hi")])
}

pub(super) async fn end(mut events: mpsc::Receiver<AssistantEvent>) -> AssistantMessage {
    loop {
        match events.recv().await.expect("an end") {
            AssistantEvent::End(message) => return *message,
            _ => continue,
        }
    }
}

/// The answer of a server that treats every request alike.
pub(super) async fn ask(options: ClientOptions, answer: Vec<Act>) -> AssistantMessage {
    let server = serve(move |_, _| answer.clone()).await;
    let call = question(&server, "anthropic-messages");
    end(providers(options).stream(call, CancellationToken::new())).await
}

pub(super) fn failure(message: &AssistantMessage) -> (ErrorKind, &str) {
    assert_eq!(message.stop_reason, StopReason::Error);
    (message.error.as_ref().expect("a failure").kind, message.error_message.as_deref().expect("a text"))
}

pub(super) fn timeouts(change: impl FnOnce(&mut Timeouts)) -> ClientOptions {
    let mut options = ClientOptions::default();
    change(&mut options.timeouts);
    options
}
