//! What all built-in tools share.

use pith_agent::blocking::{Panic, blocking, panic_text};
use pith_agent::{ABORTED, ToolOutput};
use pith_protocol::ToolSpec;
use pith_sandbox::watch::CommandWatch;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::denied;
use crate::sandbox::Sandbox;
use crate::workbench::Workbench;

/// A result, or the text of a failure.
pub(crate) type Outcome = Result<ToolOutput, String>;

/// Describes a tool for the model. With strict sampling the model's calls always match the schema; optional arguments
/// then arrive as `null`.
pub(crate) fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.into(), parameters: parameters.into(), prefer_strict: true }
}

/// Fails if the call has been aborted.
pub(crate) fn check_aborted(cancel: &CancellationToken) -> Result<(), String> {
    if cancel.is_cancelled() { Err(ABORTED.to_owned()) } else { Ok(()) }
}

/// Turns an error into a result for the model.
pub(crate) fn output(outcome: Outcome) -> ToolOutput {
    outcome.unwrap_or_else(denied::failed)
}

impl Workbench {
    /// Runs work that only reads, on a thread. An abort is answered at once; the thread notices it later by itself.
    pub(crate) async fn run_read_only<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        work: impl FnOnce(&CancellationToken) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let token = cancel.clone();
        let thread = self.on_thread(move || check_aborted(&token).and_then(|()| work(&token)));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ABORTED.to_owned()),
            outcome = thread => outcome,
        }
    }

    /// Runs work on a thread, confined if there is a sandbox. A panic of the work is its failure.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let outcome = match &self.sandbox {
            None => blocking(work).await,
            Some(sandbox) => sandbox.run(work).await,
        };
        outcome.unwrap_or_else(|panic| Err(crashed(&panic)))
    }

    /// Guards what must not change while a tool changes a file.
    pub(crate) fn guard_change(&self) -> Result<Option<CommandWatch>, String> {
        let Some(Sandbox::Enforced(enforced)) = self.sandbox.as_deref() else { return Ok(None) };
        let not_guarded =
            |error| format!("The sandbox could not be set up (protected paths: {error}). Nothing was changed.");
        enforced.guard(&self.jobs).map_err(not_guarded)
    }
}

fn crashed(panic: &Panic) -> String {
    format!("The tool failed unexpectedly: {}", panic_text(panic).unwrap_or("its thread was stopped"))
}
