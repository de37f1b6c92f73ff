//! Exchanges written to a directory, and answered from it.
//!
//! A recording is two files: `0001.json` with the request and the head of the
//! response, `0001.body` with the response as it came. Secrets are taken out of
//! both. Replaying answers the first request with the first recording, and so
//! on; what was asked is not compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use pith_protocol::ErrorKind;
use pith_secrets::{MASK, Secrets, is_secret_name};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::failure::Fault;
use crate::wire::HttpRequest;

/// Whether calls are recorded, or answered from recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tape {
    #[default]
    Off,
    /// `PITH_RECORD`: write every exchange to this directory.
    Record(PathBuf),
    /// `PITH_REPLAY`: answer from this directory, without a network.
    Replay(PathBuf),
}

impl Tape {
    /// Reads the tape that the environment asks for.
    pub fn from_env() -> Self {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match (path("PITH_REPLAY"), path("PITH_RECORD")) {
            (Some(path), _) => Tape::Replay(path),
            (None, Some(path)) => Tape::Record(path),
            (None, None) => Tape::Off,
        }
    }
}

/// The position on a tape.
#[derive(Debug, Default)]
pub struct Counter(AtomicUsize);

impl Counter {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A response read back from a tape.
#[derive(Debug)]
pub(super) struct Recorded {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// One exchange being recorded; complete when dropped.
#[derive(Debug)]
pub(super) struct Recording {
    path: PathBuf,
    secrets: Arc<Secrets>,
    body: Vec<u8>,
}

impl Recording {
    /// Writes the request and the head of its response to the next free number.
    pub(super) fn start(
        directory: &Path,
        counter: &Counter,
        request: &HttpRequest,
        (status, headers): (u16, Vec<(String, String)>),
        secrets: Arc<Secrets>,
    ) -> Result<Self, Fault> {
        let failed = |path: &Path, error| {
            Fault::new(ErrorKind::InvalidRequest, format!("recording {}: {error}", path.display()))
        };
        fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
        let path = loop {
            let path = directory.join(format!("{:04}.json", counter.next()));
            if !path.exists() {
                break path;
            }
        };
        let body = String::from_utf8_lossy(&request.body);
        let exchange = json!({
            "url": request.url,
            "headers": shown(request.headers.iter()),
            "body": serde_json::from_str::<&RawValue>(&body).ok(),
            "status": status,
            "responseHeaders": shown(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
        });
        let text = exchange.to_string();
        fs::write(&path, &*secrets.redact(&text)).map_err(|error| failed(&path, error))?;
        Ok(Recording { path: path.with_extension("body"), secrets, body: Vec::new() })
    }

    /// Takes the next bytes of the response.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Kept until the end, because a secret may lie across two pieces.
        let body = String::from_utf8_lossy(&self.body);
        // The call itself went well, so a failure here is not reported.
        let _ = fs::write(&self.path, &*self.secrets.redact(&body));
    }
}

/// Returns headers as a JSON object; secret values are left out.
fn shown<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let value = |name: &str, value: &str| if is_secret_name(name) { MASK.to_owned() } else { value.to_owned() };
    headers.map(|(name, text)| (name.to_owned(), json!(value(name, text)))).collect()
}

/// Reads the next recording of a directory.
pub(super) fn replay(directory: &Path, counter: &Counter) -> Result<Recorded, Fault> {
    let path = directory.join(format!("{:04}.json", counter.next()));
    let failed = |error: String| Fault::new(ErrorKind::InvalidRequest, format!("replay {}: {error}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let exchange: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let status = exchange["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let headers = exchange["responseHeaders"].as_object().into_iter().flatten();
    let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    let body = fs::read(path.with_extension("body")).map_err(|error| failed(error.to_string()))?;
    Ok(Recorded { status: status.ok_or_else(|| failed("status: missing".to_owned()))?, headers, body: body.into() })
}
