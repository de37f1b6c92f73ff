//! Sends what the SDK has encoded, with the HTTP client and the TLS provider that pith has.
//!
//! The SDK's threads have no runtime, and the one of the sessions must not wait for a collector. So requests run on a
//! thread of their own, with a runtime and connections of its own, that lives as long as the exporter.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use pith_ai::{Clients, Redirect, Timeouts, Web, WebRequest};
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::warn;

/// The longest answer of a collector that is read.
const MAX_ANSWER: usize = 4 << 20;

/// The thread that requests run on. Dropping it ends the thread.
pub(crate) struct Line {
    runtime: Handle,
    web: Web,
    _running: DropGuard,
}

/// The way to a collector for one kind of telemetry.
pub(crate) struct Sender {
    pub line: Arc<Line>,
    pub timeout: Duration,
}

impl Line {
    /// Starts the thread. `proxy` is used where the environment names none.
    pub fn start(proxy: Option<String>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let ended = CancellationToken::new();
        let end = ended.clone();
        std::thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || runtime.block_on(async { end.cancelled().await }))?;
        let web = Web::new(Arc::new(Clients::with_proxy(proxy)), Timeouts::default());
        Ok(Line { runtime: handle, web, _running: ended.drop_guard() })
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// An answer that is still to come, as the trait wants it.
type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Answering<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        let (web, limit) = (self.line.web.clone(), self.timeout);
        let sending = self.line.runtime.spawn(async move {
            let answered = timeout(limit, send(&web, request)).await;
            let answered = answered.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
            match &answered {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => warn!(target: "pith::telemetry", status = answer.status().as_u16(), "refused"),
                Err(why) => warn!(target: "pith::telemetry", why, "not sent"),
            }
            answered
        });
        Box::pin(async move { Ok(sending.await??) })
    }
}

async fn send(web: &Web, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.iter();
    let headers =
        headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect();
    let mut answer = web
        .send(WebRequest {
            method: parts.method.to_string(),
            url: parts.uri.to_string(),
            headers,
            body: Some(body),
            redirect: Redirect::Manual,
        })
        .await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > MAX_ANSWER {
            return Err(format!("the answer is larger than {MAX_ANSWER} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(body.into()).map_err(|error| error.to_string())
}
