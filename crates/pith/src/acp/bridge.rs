//! What the tools of a session ask the editor for: files from its buffers, and terminals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pith_acp::Client;
use pith_acp::acp::{ReadTextFileRequest, ReadTextFileResponse, SessionId, WriteTextFileRequest};
use pith_agent::BoxFuture;
use pith_config::settings::Acp;
use pith_tools::{Bridge, InTerminal, Lines, TerminalCommand, TerminalFailure, real_path};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::requests::Requests;
use super::terminals;

/// How long the editor may take to tell a text; then the disk is read.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How long it may take to change a buffer; then the call of the model fails.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// The editor as the tools of a session see it.
pub struct EditorBridge {
    pub(super) session: SessionId,
    pub(super) requests: Arc<Requests>,
    /// The directories of the session, without links.
    roots: Vec<PathBuf>,
    reads: bool,
    writes: bool,
    runs_commands: bool,
    /// The file tools call from threads that may block.
    runtime: Handle,
}

impl EditorBridge {
    /// `None` if the tools get nothing from the editor: it offers nothing, or the settings do not want it.
    pub fn of(
        client: &Client,
        settings: &Acp,
        session: &str,
        requests: Arc<Requests>,
        directories: &[PathBuf],
    ) -> Option<Self> {
        let reads = settings.client_fs && client.reads_files();
        let writes = settings.client_fs && client.writes_files();
        let runs_commands = settings.client_terminal && client.has_terminals();
        (reads || writes || runs_commands).then(|| EditorBridge {
            session: SessionId::new(session),
            requests,
            roots: directories.iter().map(|directory| real_path(directory)).collect(),
            reads,
            writes,
            runs_commands,
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
        answered.map_err(|error| reason(&error))
    }
}

/// Why the editor did not do what it was asked for.
pub(super) fn reason(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    text.unwrap_or("it answered with an error").to_owned()
}

impl Bridge for EditorBridge {
    fn covers(&self, path: &Path) -> bool {
        if !(self.reads || self.writes) {
            return false;
        }
        let real = real_path(path);
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn takes_writes(&self) -> bool {
        self.writes
    }

    fn read_text(&self, path: &Path, lines: Option<Lines>, cancel: &CancellationToken) -> Option<String> {
        if !self.reads {
            return None;
        }
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let request = ReadTextFileRequest::new(self.session.clone(), path)
            .line(lines.map(|lines| number(lines.first)))
            .limit(lines.map(|lines| number(lines.count)));
        let result = self.ask("fs/read_text_file", &request, READ_LIMIT, cancel).ok()?;
        serde_json::from_value::<ReadTextFileResponse>(result).ok().map(|response| response.content)
    }

    fn write_text(&self, path: &Path, text: &str, cancel: &CancellationToken) -> Result<(), String> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        self.ask("fs/write_text_file", &request, WRITE_LIMIT, cancel).map(drop)
    }
    fn run_terminal<'a>(
        &'a self,
        command: TerminalCommand<'a>,
    ) -> Option<BoxFuture<'a, Result<InTerminal, TerminalFailure>>> {
        self.runs_commands.then(|| Box::pin(terminals::run(self, command)) as _)
    }
}
