//! Sends requests and reads streams. The only place that knows sockets.
//!
//! Dropping what this module returns closes the connection: that is how an
//! abort works, and why nothing here needs to be told about one.

mod answer;
mod clients;
mod connection_error;
mod connections;
mod fault;
mod fetch;
mod record;
mod redirect;
mod retry_after;
mod traced;
mod web;

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::{ErrorKind, Model};
use pith_secrets::{Secrets, is_secret_name};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::failure::{Fault, is_final, is_retryable_kind, kind_of_status};
use crate::wire::{HttpRequest, Wire};

pub use answer::{Answer, Refusal};
pub use clients::Clients;
pub(crate) use fault::timed_out;
pub use fault::{secrets, without_scheme};
pub use fetch::fetch_json;
pub use record::Tape;
pub use web::{Redirect, Web, WebRequest, WebResponse};

use answer::{Body, wait};
use connection_error::ConnectionError;
use record::{Counter, Recorded, Recording};
use redirect::Target;
pub(crate) use retry_after::server_delay;

/// Kept connections that may turn out to be dead before a request is given up.
const MAX_DEAD_CONNECTIONS: usize = 8;

/// Longest part of an error body that is read.
const MAX_BODY: usize = 256 << 10;

/// How long to wait, and how often to try. `None` waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
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
    /// Bytes of an answer that are read, after decompression. Far beyond what models say: a small body can
    /// decompress to any size.
    pub max_answer: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(30),
            first_byte: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(300)),
            whole: None,
            retries: 0,
            max_retry_delay: Duration::from_secs(60),
            max_answer: 256 << 20,
        }
    }
}

/// A request that asks a model, and what is needed while it is on its way.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Reads a refusal of the server.
    pub wire: &'a dyn Wire,
    pub model: &'a Model,
    pub request: &'a HttpRequest,
    /// What must not follow a redirect to another server.
    pub secrets: &'a [String],
    /// What must not be recorded.
    pub known_secrets: &'a Arc<Secrets>,
    /// Called when half the time for a response has passed.
    pub on_silence: &'a (dyn Fn(Duration) + Sync),
}

/// Everything needed to send requests of one process.
#[derive(Debug, Default)]
pub struct Sender {
    pub clients: Arc<Clients>,
    pub timeouts: Timeouts,
    pub tape: Tape,
    counter: Counter,
}

impl Sender {
    /// Makes a sender that has connected to nothing yet.
    pub fn new(clients: impl Into<Arc<Clients>>, timeouts: Timeouts, tape: Tape) -> Self {
        Sender { clients: clients.into(), timeouts, tape, counter: Counter::default() }
    }

    /// Sends a request until a server accepts it or the retries are used up.
    pub async fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, Refusal> {
        if let Tape::Replay(directory) = &self.tape {
            return self.replayed(outgoing, record::replay(directory, &self.counter)?);
        }
        let mut attempt = 0;
        loop {
            let refusal = match self.send_once(outgoing).await {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusal,
            };
            let failure = &refusal.fault.failure;
            if attempt == self.timeouts.retries || is_final(failure) || !is_retryable_kind(failure.kind) {
                return Err(refusal);
            }
            let asked = refusal.fault.failure.retry_after_ms.map(Duration::from_millis);
            if asked.is_some_and(|asked| retry_after::is_too_long(asked, self.timeouts.max_retry_delay)) {
                return Err(refusal);
            }
            let delay = asked.unwrap_or_else(|| retry_after::back_off(attempt));
            attempt += 1;
            warn!(target: "pith::model", kind = ?failure.kind, status = failure.status, attempt, ?delay, "another try");
            sleep(delay).await;
        }
    }

    async fn send_once(&self, outgoing: Outgoing<'_>) -> Result<Answer, Refusal> {
        let Outgoing { request, secrets, .. } = outgoing;
        let url = Url::parse(&request.url).map_err(|error| fault::bad_url(&request.url, &error.to_string()))?;
        let mut target = Target::new(Method::POST, url, header_map(request.headers.iter())?, secrets);
        let mut n_dead = 0;
        let start = Instant::now();
        let response = loop {
            let client = self.clients.get(target.url.as_str(), self.timeouts.connect)?;
            let n_connections = self.clients.n_connections();
            traced::request(&target.method, &target.url, &target.headers);
            let sending =
                client.post(target.url.clone()).headers(target.headers.clone()).body(request.body.clone()).send();
            let response = wait(self.timeouts.first_byte, outgoing.on_silence, sending).await?;
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    // A connection kept from before may have been closed while this request was on its way. Nothing
                    // has come back, so it is sent once more, until it has had a connection of its own.
                    let is_kept = self.clients.n_connections() == n_connections;
                    if is_kept
                        && n_dead < MAX_DEAD_CONNECTIONS
                        && ConnectionError::of(&error) == ConnectionError::NoAnswer
                    {
                        n_dead += 1;
                        debug!(target: "pith::model", "a kept connection was dead");
                        continue;
                    }
                    return Err(unreachable(&self.clients, &target.url, &error).into());
                }
            };
            traced::response(&response, start.elapsed());
            match target.follow(response.status(), response.headers()) {
                Ok(true) => {}
                Ok(false) => break response,
                Err(fault) => {
                    let answer = Some((response.status().as_u16(), Box::default()));
                    return Err(Refusal { fault, answer, headers: header_list(response.headers()).into() });
                }
            }
        };
        let (status, headers) = (response.status().as_u16(), header_list(response.headers()));
        debug!(target: "pith::model", status, took = ?start.elapsed(), "response");
        let mut recording = match &self.tape {
            Tape::Record(directory) => {
                let head = (status, headers.clone());
                Some(Recording::start(directory, &self.counter, request, head, outgoing.known_secrets.clone())?)
            }
            Tape::Off | Tape::Replay(_) => None,
        };
        if response.status().is_success() {
            // What was understood has been decompressed, and its header taken away.
            if let Some(encoding) = header(&headers, "content-encoding").filter(|encoding| *encoding != "identity") {
                return Err(fault::unreadable(encoding).into());
            }
            return Ok(self.answer(status, headers, Body::Live(response), recording));
        }
        let body = error_body(response, self.timeouts.idle).await;
        if let Some(recording) = &mut recording {
            recording.push(body.as_bytes());
        }
        let mut refusal = self.refusal(outgoing, status, &headers, body);
        target.explain(&mut refusal.fault);
        if let Some(proxy) = self.clients.proxy_for(&target.url).filter(|_| status == 407) {
            refusal.fault.text = format!("407: {}", fault::proxy_password(&proxy));
        }
        Err(refusal)
    }

    fn replayed(&self, outgoing: Outgoing<'_>, recorded: Recorded) -> Result<Answer, Refusal> {
        let Recorded { status, headers, body } = recorded;
        if !(200..300).contains(&status) {
            let body = String::from_utf8_lossy(&body).into_owned();
            return Err(self.refusal(outgoing, status, &headers, body));
        }
        Ok(self.answer(status, headers, Body::Recorded(Some(body)), None))
    }

    fn answer(&self, status: u16, headers: Vec<(String, String)>, body: Body, recording: Option<Recording>) -> Answer {
        let max_bytes = self.timeouts.max_answer;
        Answer { status, headers, body, recording, n_allowed: max_bytes, max_bytes }
    }

    /// Turns an error answer into a fault with everything a caller can act on.
    fn refusal(&self, outgoing: Outgoing<'_>, status: u16, headers: &[(String, String)], body: String) -> Refusal {
        let Outgoing { wire, model, .. } = outgoing;
        let mut kind = kind_of_status(&model.provider, status, &body);
        let advice = header(headers, "x-should-retry");
        if advice == Some("true") && !is_retryable_kind(kind) {
            kind = ErrorKind::Overloaded;
        }
        let mut fault = Fault::new(kind, wire.error_text(model, status, &body));
        fault.failure.should_retry = (advice == Some("false") && is_retryable_kind(kind)).then_some(false);
        fault.failure.status = Some(status);
        fault.failure.request_id =
            header(headers, "request-id").or_else(|| header(headers, "x-request-id")).map(str::to_owned);
        if let Some(asked) = retry_after::server_delay(|name| header(headers, name)) {
            let max = self.timeouts.max_retry_delay;
            fault.failure.retry_after_ms = Some(asked.as_millis() as u64);
            if is_retryable_kind(kind) && !is_final(&fault.failure) && retry_after::is_too_long(asked, max) {
                let (asked, max) = (asked.as_secs_f64().ceil(), max.as_secs_f64().ceil());
                fault.text = format!("Server requested {asked}s retry delay (max: {max}s). {}", fault.text);
            }
        }
        Refusal { fault, answer: Some((status, body.into())), headers: headers.into() }
    }
}

/// Returns the fault of a request that got no answer.
fn unreachable(clients: &Clients, url: &Url, error: &reqwest::Error) -> Fault {
    fault::unreachable(url, error, clients.proxy_for(url).as_ref())
}

/// Returns the body of an error answer, as far as it is worth reading.
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

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim())
}

/// Returns the readable headers of a response, names in lower case.
fn header_list(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    headers.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?))).collect()
}

fn header_map<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = |what: &str| Fault::new(ErrorKind::InvalidRequest, format!("Header {name}: {what} cannot be sent"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("this name"))?;
        // The value may be a secret and is not shown.
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("its value"))?;
        value.set_sensitive(is_secret_name(name));
        map.insert(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
