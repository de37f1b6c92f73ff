//! How pith is started.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use pith_protocol::commands::SetHostTools;
use pith_protocol::host::{UiAnswer, UiRequest};
use tokio::process::Command;

use crate::connection::Connection;
use crate::host::{Dialog, HostTool};
use crate::process::Process;
use crate::{Error, Pith};

/// What to start and who answers its questions; see [`Pith::builder`].
pub struct Builder {
    program: OsString,
    /// Before `--mode rpc`.
    first: Vec<OsString>,
    arguments: Vec<OsString>,
    cwd: Option<PathBuf>,
    is_env_cleared: bool,
    env: Vec<(OsString, OsString)>,
    dialog: Option<Dialog>,
    tools: Vec<HostTool>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            program: "pith".into(),
            first: Vec::new(),
            arguments: Vec::new(),
            cwd: None,
            is_env_cleared: false,
            env: Vec::new(),
            dialog: None,
            tools: Vec::new(),
        }
    }

    /// Sets the program; `pith` on the `PATH` by default.
    pub fn program(mut self, program: impl AsRef<OsStr>) -> Self {
        self.program = program.as_ref().into();
        self
    }

    /// Adds an argument in front of `--mode rpc`, for programs that are started by another one.
    pub fn first_argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.first.push(argument.as_ref().into());
        self
    }

    /// Adds arguments behind `--mode rpc`.
    pub fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().into()));
        self
    }

    /// Sets the directory pith works in; that of this process by default.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Sets an environment variable; the others are those of this process.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Starts with an empty environment, to which [`Builder::env`] adds.
    pub fn env_clear(mut self) -> Self {
        self.is_env_cleared = true;
        self
    }

    /// Answers extensions that ask the person: a text, a truth value for `confirm`, `None` or
    /// [`UiAnswer::Cancelled`] to cancel. Without it every dialog is cancelled. A question that is withdrawn drops
    /// the future.
    pub fn dialog<F, A>(mut self, dialog: F) -> Self
    where
        F: Fn(UiRequest) -> A + Send + Sync + 'static,
        A: Future<Output: Into<UiAnswer>> + Send + 'static,
    {
        self.dialog = Some(Arc::new(move |request| {
            let answer = dialog(request);
            Box::pin(async move { answer.await.into() })
        }));
        self
    }

    /// Adds a function of this program that the model can call.
    pub fn tool(mut self, tool: HostTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Starts pith; commands may be sent at once. Fails if the program cannot be started or refuses the tools.
    ///
    /// Must be called in a tokio runtime with IO and time.
    pub async fn spawn(self) -> Result<Pith, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.first).args(["--mode", "rpc"]).args(&self.arguments);
        if self.is_env_cleared {
            command.env_clear();
        }
        command.envs(self.env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = self.cwd {
            command.current_dir(directory);
        }
        let child = command.spawn().map_err(|error| Error::Spawn {
            program: self.program.to_string_lossy().into_owned(),
            kind: error.kind(),
        })?;
        let definitions: Vec<_> = self.tools.iter().map(HostTool::definition).collect();
        let pith = Connection::start(Process::new(child), self.dialog, self.tools);
        if !definitions.is_empty() {
            pith.call(SetHostTools { tools: definitions }).await?;
        }
        Ok(pith)
    }
}
