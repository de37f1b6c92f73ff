//! What all built-in tools have in common.

use pith_agent::ToolOutput;
use pith_agent::blocking::{Panic, blocking, panic_text};
use pith_protocol::ToolSpec;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A result, or the text of a failure.
pub(crate) type Outcome = Result<ToolOutput, String>;

/// What an aborted file tool says.
pub(crate) const ABORTED: &str = "Operation aborted";

/// The description of a tool for the model. Where the model has strict sampling, its calls then fit the schema;
/// optional arguments arrive as `null`.
pub(crate) fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.into(), parameters: parameters.into(), prefer_strict: true }
}

/// Fails when the call was aborted meanwhile.
pub(crate) fn still_wanted(cancel: &CancellationToken) -> Result<(), String> {
    if cancel.is_cancelled() { Err(ABORTED.to_owned()) } else { Ok(()) }
}

/// Turns a failure into a result the model reads.
pub(crate) fn output(outcome: Outcome) -> ToolOutput {
    outcome.unwrap_or_else(ToolOutput::error)
}

/// Runs reading work on a thread. An abort is answered at once; the work is left to notice it by itself.
pub(crate) async fn abandonable<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let token = cancel.clone();
    let thread = blocking(move || still_wanted(&token).and_then(|()| work(&token)));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ABORTED.to_owned()),
        outcome = thread => outcome.unwrap_or_else(|panic| Err(crashed(&panic))),
    }
}

/// Runs changing work on a thread and waits for it in any case, so that what is answered is what happened.
pub(crate) async fn to_the_end(work: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    blocking(work).await.unwrap_or_else(|panic| Err(crashed(&panic)))
}

fn crashed(panic: &Panic) -> String {
    format!("The tool failed unexpectedly: {}", panic_text(panic).unwrap_or("its thread was stopped"))
}
