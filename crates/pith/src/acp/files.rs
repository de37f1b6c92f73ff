//! Files through the buffers of the editor.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pith_acp::Client;
use pith_acp::acp::{ReadTextFileRequest, ReadTextFileResponse, SessionId, WriteTextFileRequest};
use pith_tools::{Bridge, real_path};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::requests::Requests;

/// How long the editor may take to tell a text; then the disk is read.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How long it may take to change a buffer; then the call of the model fails.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// The editor as the file tools of a session see it.
pub struct EditorFiles {
    session: SessionId,
    requests: Arc<Requests>,
    /// The directories of the session, without links.
    roots: Vec<PathBuf>,
    reads: bool,
    writes: bool,
    /// The tools call from threads that may block.
    runtime: Handle,
}

impl EditorFiles {
    /// `None` if the editor offers neither to read nor to write.
    pub fn of(client: &Client, session: &str, requests: Arc<Requests>, directories: &[PathBuf]) -> Option<Self> {
        let (reads, writes) = (client.reads_files(), client.writes_files());
        (reads || writes).then(|| EditorFiles {
            session: SessionId::new(session),
            requests,
            roots: directories.iter().map(|directory| real_path(directory)).collect(),
            reads,
            writes,
            runtime: Handle::current(),
        })
    }

    /// Sends a request and waits; the error says why there is no result.
    fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        let answered = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Value::from("the call was cancelled")),
                () = tokio::time::sleep(limit) => Err(Value::from("it did not answer in time")),
                answered = self.requests.ask(method, params) => answered,
            }
        });
        answered.map_err(|error| {
            let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
            text.unwrap_or("it answered with an error").to_owned()
        })
    }
}

impl Bridge for EditorFiles {
    fn covers(&self, path: &Path) -> bool {
        let real = real_path(path);
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn takes_writes(&self) -> bool {
        self.writes
    }

    fn read_text(&self, path: &Path, cancel: &CancellationToken) -> Option<String> {
        if !self.reads {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let result = self.ask("fs/read_text_file", &request, READ_LIMIT, cancel).ok()?;
        serde_json::from_value::<ReadTextFileResponse>(result).ok().map(|response| response.content)
    }

    fn write_text(&self, path: &Path, text: &str, cancel: &CancellationToken) -> Result<(), String> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        self.ask("fs/write_text_file", &request, WRITE_LIMIT, cancel).map(drop)
    }
}
