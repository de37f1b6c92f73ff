//! What a server sends back: an answer whose body is read piece by piece, or a refusal.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use pith_secrets::Secrets;
use tokio::time::timeout;

use super::record::Recording;
use super::{fault, header};
use crate::failure::Fault;

/// An accepted request whose body is to be read.
#[derive(Debug)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) recording: Option<Recording>,
    /// Bytes that may still come.
    pub(super) n_allowed: u64,
    pub(super) max_bytes: u64,
}

/// Where the bytes of an answer come from.
#[derive(Debug)]
pub(super) enum Body {
    Live(reqwest::Response),
    Recorded(Option<Bytes>),
}

/// A refused request.
#[derive(Debug)]
pub struct Refusal {
    pub fault: Fault,
    /// Status and body, if the server answered at all.
    pub answer: Option<(u16, Box<str>)>,
    /// Headers of that answer.
    pub headers: Box<[(String, String)]>,
}

impl Refusal {
    /// Returns the same without secrets that the server has echoed.
    pub fn redacted(mut self, secrets: &Secrets) -> Self {
        self.fault.text = secrets.redact(&self.fault.text).into_owned();
        self.answer = self.answer.map(|(status, body)| (status, secrets.redact(&body).into()));
        self
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal { fault, answer: None, headers: Box::default() }
    }
}

impl Answer {
    /// Returns the media type the server claims.
    pub fn content_type(&self) -> &str {
        header(&self.headers, "content-type").unwrap_or("no content type")
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the readable headers, names in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Returns the next bytes, nothing at the end. `on_silence` is called when half the idle limit has passed.
    pub async fn chunk(
        &mut self,
        idle: Option<Duration>,
        on_silence: impl FnOnce(Duration),
    ) -> Result<Option<Bytes>, Fault> {
        let chunk = match &mut self.body {
            Body::Recorded(body) => body.take(),
            Body::Live(response) => {
                wait(idle, on_silence, response.chunk()).await?.map_err(|error| fault::lost(&error))?
            }
        };
        let Some(chunk) = chunk else { return Ok(None) };
        if let Some(recording) = &mut self.recording {
            recording.push(&chunk);
        }
        let n_left = self.n_allowed.checked_sub(chunk.len() as u64);
        self.n_allowed = n_left.ok_or_else(|| fault::too_long(self.max_bytes))?;
        Ok(Some(chunk))
    }
}

/// Waits for `future` as long as `limit` allows; `on_silence` is called when half of it has passed.
pub(super) async fn wait<T>(
    limit: Option<Duration>,
    on_silence: impl FnOnce(Duration),
    future: impl Future<Output = T>,
) -> Result<T, Fault> {
    let Some(limit) = limit else { return Ok(future.await) };
    let mut future = std::pin::pin!(future);
    let half = limit / 2;
    if let Ok(done) = timeout(half, &mut future).await {
        return Ok(done);
    }
    on_silence(half);
    timeout(limit - half, future).await.map_err(|_| fault::silent(limit))
}
