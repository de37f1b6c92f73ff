//! Commands of the model in terminals of the editor.
//!
//! create → wait for the exit → output → release, in this order; a command that is to stop is killed first.

use std::time::Duration;

use pith_acp::acp::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
};
use pith_tools::{InTerminal, TerminalCommand, TerminalEnd, TerminalFailure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::bridge::{EditorBridge, reason};

/// How much output the editor keeps.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How long the editor may take to tell the output of a command that has ended.
const OUTPUT_WAIT: Duration = Duration::from_secs(10);

/// How long it may take for each step after a command was told to stop: a cancel is answered within a second.
const STOP_WAIT: Duration = Duration::from_millis(400);

/// Runs a command to its end.
pub async fn run(editor: &EditorBridge, command: TerminalCommand<'_>) -> Result<InTerminal, TerminalFailure> {
    let TerminalCommand { program, arguments, cwd, env, stop, started } = command;
    let env = env.into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
    let request = CreateTerminalRequest::new(editor.session.clone(), program.to_string_lossy())
        .args(arguments)
        .env(env)
        .cwd(cwd)
        .output_byte_limit(OUTPUT_LIMIT);
    // A terminal that is made while the command is told to stop has to be released, too.
    let stopped = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_WAIT).await;
    };
    let created = tokio::select! {
        biased;
        created = editor.requests.ask("terminal/create", &request) => created,
        () = stopped => return Ok(InTerminal::stopped()),
    };
    // Whoever answers with an error has started nothing.
    let created = created.map_err(|_| TerminalFailure::NotStarted)?;
    let created: CreateTerminalResponse = serde_json::from_value(created)
        .map_err(|error| TerminalFailure::Lost(format!("its answer to terminal/create: {error}")))?;
    let terminal = Terminal { editor, id: created.terminal_id };
    started(&terminal.id.0);
    terminal.follow(stop).await
}

/// A terminal of the editor. Dropped, it is released, which ends what still runs in it.
struct Terminal<'e> {
    editor: &'e EditorBridge,
    id: TerminalId,
}

impl Terminal<'_> {
    async fn follow(&self, stop: &CancellationToken) -> Result<InTerminal, TerminalFailure> {
        let exited = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            exited = self.exit() => Some(exited),
        };
        let wait = match &exited {
            Some(Ok(_)) => OUTPUT_WAIT,
            // It may still run.
            Some(Err(_)) | None => {
                self.kill().await;
                STOP_WAIT
            }
        };
        let output = self.output(wait).await;
        let end = match exited {
            Some(status) => end_of(status?)?,
            None => TerminalEnd::Stopped,
        };
        match (output, end) {
            (Ok(output), end) => Ok(InTerminal { output: output.output, is_truncated: output.truncated, end }),
            (Err(_), TerminalEnd::Stopped) => Ok(InTerminal::stopped()),
            (Err(lost), _) => Err(lost),
        }
    }

    async fn exit(&self) -> Result<TerminalExitStatus, TerminalFailure> {
        let request = WaitForTerminalExitRequest::new(self.editor.session.clone(), self.id.clone());
        let response: WaitForTerminalExitResponse = self.ask("terminal/wait_for_exit", &request).await?;
        Ok(response.exit_status)
    }

    async fn output(&self, limit: Duration) -> Result<TerminalOutputResponse, TerminalFailure> {
        let request = TerminalOutputRequest::new(self.editor.session.clone(), self.id.clone());
        let answered = tokio::time::timeout(limit, self.ask("terminal/output", &request)).await;
        answered.unwrap_or_else(|_| Err(TerminalFailure::Lost("it did not tell the output in time".to_owned())))
    }

    async fn kill(&self) {
        let request = KillTerminalRequest::new(self.editor.session.clone(), self.id.clone());
        // Releasing the terminal ends the command, too.
        let _ = tokio::time::timeout(STOP_WAIT, self.editor.requests.ask("terminal/kill", &request)).await;
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<T, TerminalFailure> {
        let lost = |why: String| TerminalFailure::Lost(format!("{method}: {why}"));
        let result = self.editor.requests.ask(method, params).await.map_err(|error| lost(reason(&error)))?;
        serde_json::from_value(result).map_err(|error| lost(error.to_string()))
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let request = ReleaseTerminalRequest::new(self.editor.session.clone(), self.id.clone());
        self.editor.requests.post("terminal/release", &request);
    }
}

fn end_of(status: TerminalExitStatus) -> Result<TerminalEnd, TerminalFailure> {
    match (status.exit_code, status.signal) {
        (Some(code), _) => Ok(TerminalEnd::Exited(code as i32)),
        (None, Some(signal)) => Ok(TerminalEnd::Signalled(signal)),
        (None, None) => Err(TerminalFailure::Lost("it does not tell how the command ended".to_owned())),
    }
}
