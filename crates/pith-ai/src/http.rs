//! Sends requests and reads streams. The only place that knows sockets.
//!
//! Dropping what this module returns closes the connection: that is how an
//! abort works, and why nothing here needs to be told about one.

mod clients;
mod fault;
mod retry_after;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use pith_protocol::{ErrorKind, Model};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::{sleep, timeout};

use crate::failure::{Fault, is_retryable_kind, kind_of_status};
use crate::wire::{HttpRequest, Wire};

pub use clients::Clients;
pub(crate) use fault::timed_out;
pub use fault::{redact, secrets};
pub(crate) use retry_after::server_delay;

/// Longest part of an error body that is read.
const MAX_BODY: usize = 256 << 10;

/// What a call needs to be let in. Values are secrets: they never enter a message.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    pub api_key: Option<String>,
    /// Send the key as `Authorization: Bearer`, also where the API has a header of its own.
    pub bearer: bool,
    /// Configured headers, which win over ours; no value suppresses one.
    pub headers: Vec<(String, Option<String>)>,
    /// Send `Authorization: Bearer` besides the API's own header.
    pub auth_header: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("has_key", &self.api_key.is_some()).finish_non_exhaustive()
    }
}

/// Finds the credentials of a model, perhaps by running a command.
pub trait CredentialSource: Send + Sync {
    /// The credentials for one call, or why there are none. No key is not an error here: the source knows which
    /// servers want none.
    fn credentials<'a>(
        &'a self,
        model: &'a Model,
    ) -> Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send + 'a>>;
}

/// How long to wait, and how often to try. `None` waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub connect: Duration,
    /// From sending a request to its response headers.
    pub first_byte: Option<Duration>,
    /// Between two pieces of a response; comments count.
    pub idle: Option<Duration>,
    /// From the first byte sent to the last one read.
    pub whole: Option<Duration>,
    /// Further tries of a request that got no usable response.
    pub retries: u32,
    /// Longest wait a server may ask for; zero means any.
    pub max_retry_delay: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(30),
            first_byte: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(300)),
            whole: None,
            retries: 0,
            max_retry_delay: Duration::from_secs(60),
        }
    }
}

/// An accepted request whose body is to be read.
#[derive(Debug)]
pub struct Answer {
    response: reqwest::Response,
}

/// A refused request.
#[derive(Debug)]
pub struct Refusal {
    pub fault: Fault,
    /// Status and body, if the server answered at all.
    pub answer: Option<(u16, String)>,
}

impl Answer {
    /// The media type the server claims.
    pub fn content_type(&self) -> &str {
        self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no content type")
    }

    /// The next bytes, nothing at the end. `on_silence` is called when half the idle limit has passed.
    pub async fn chunk(
        &mut self,
        idle: Option<Duration>,
        mut on_silence: impl FnMut(Duration),
    ) -> Result<Option<Bytes>, Fault> {
        let lost = |error: reqwest::Error| fault::lost(&error);
        let Some(idle) = idle else { return self.response.chunk().await.map_err(lost) };
        let half = idle / 2;
        if let Ok(chunk) = timeout(half, self.response.chunk()).await {
            return chunk.map_err(lost);
        }
        on_silence(half);
        match timeout(idle - half, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(lost),
            Err(_) => Err(fault::silent(idle)),
        }
    }
}

/// Sends a request until a server accepts it or patience ends.
pub async fn send(
    clients: &Clients,
    wire: &dyn Wire,
    model: &Model,
    request: &HttpRequest,
    patience: &Patience,
) -> Result<Answer, Refusal> {
    let mut attempt = 0;
    loop {
        let refusal = match send_once(clients, wire, model, request, patience).await {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        if attempt == patience.retries || !is_retryable_kind(refusal.fault.failure.kind) {
            return Err(refusal);
        }
        let asked = refusal.fault.failure.retry_after_ms.map(Duration::from_millis);
        if asked.is_some_and(|asked| retry_after::is_too_long(asked, patience.max_retry_delay)) {
            return Err(refusal);
        }
        sleep(asked.unwrap_or_else(|| retry_after::back_off(attempt))).await;
        attempt += 1;
    }
}

async fn send_once(
    clients: &Clients,
    wire: &dyn Wire,
    model: &Model,
    request: &HttpRequest,
    patience: &Patience,
) -> Result<Answer, Refusal> {
    let unanswered = |fault| Refusal { fault, answer: None };
    let headers = header_map(request).map_err(unanswered)?;
    let client = clients.get(&request.url, patience.connect).map_err(unanswered)?;
    let sending = client.post(&request.url).headers(headers).body(request.body.clone()).send();
    let response = match patience.first_byte {
        Some(limit) => timeout(limit, sending).await.map_err(|_| unanswered(fault::silent(limit)))?,
        None => sending.await,
    };
    let response = response.map_err(|error| unanswered(fault::unreachable(&request.url, &error)))?;
    if response.status().is_success() {
        return Ok(Answer { response });
    }
    Err(refusal(wire, model, response, patience).await)
}

/// Turns an error answer into a fault with everything a caller can act on.
async fn refusal(wire: &dyn Wire, model: &Model, response: reqwest::Response, patience: &Patience) -> Refusal {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = error_body(response, patience.idle).await;
    let mut kind = kind_of_status(&model.provider, status, &body);
    match header(&headers, "x-should-retry") {
        Some("true") if !is_retryable_kind(kind) => kind = ErrorKind::Overloaded,
        Some("false") if is_retryable_kind(kind) => kind = ErrorKind::InvalidRequest,
        _ => {}
    }
    let mut fault = Fault::new(kind, wire.error_text(model, status, &body));
    fault.failure.status = Some(status);
    fault.failure.request_id =
        header(&headers, "request-id").or_else(|| header(&headers, "x-request-id")).map(str::to_owned);
    if let Some(asked) = retry_after::server_delay(|name| header(&headers, name)) {
        fault.failure.retry_after_ms = Some(asked.as_millis() as u64);
        if is_retryable_kind(kind) && retry_after::is_too_long(asked, patience.max_retry_delay) {
            let (asked, max) = (asked.as_secs_f64().ceil(), patience.max_retry_delay.as_secs());
            fault.text = format!("Server requested {asked}s retry delay (max: {max}s). {}", fault.text);
        }
    }
    Refusal { fault, answer: Some((status, body)) }
}

/// The body of an error answer, as far as it is worth reading.
async fn error_body(mut response: reqwest::Response, idle: Option<Duration>) -> String {
    let mut body = Vec::new();
    let limit = idle.unwrap_or(Duration::from_secs(30)).min(Duration::from_secs(30));
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= MAX_BODY {
                break;
            }
        }
    };
    // A body that does not end is quoted as far as it came.
    let _ = timeout(limit, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn header_map(request: &HttpRequest) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::new();
    for (name, value) in request.headers.iter() {
        let bad = |what: &str| Fault::new(ErrorKind::InvalidRequest, format!("Header {name}: {what} cannot be sent"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("this name"))?;
        // The value may be a secret and is not shown.
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("its value"))?;
        value.set_sensitive(is_secret_name(name));
        map.insert(key, value);
    }
    Ok(map)
}

/// Whether a header of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
