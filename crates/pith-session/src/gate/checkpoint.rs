//! The step before calls that may change any file: what is there now is recorded.
//!
//! `write` and `edit` record the file they change themselves, when it is their turn (`pith-tools/src/checkpoints.rs`).

use pith_agent::link::Call;
use pith_agent::trace::WorkSpan;
use pith_agent::{Reach, Tool};
use pith_checkpoints::recorder::PATIENCE;
use pith_checkpoints::{CallInfo, Recorder};
use tokio::sync::oneshot;

/// Returns when the checkpoint of a call is written, or the call has waited long enough.
pub(super) async fn before(recorder: &Recorder, call: &Call, tool: &dyn Tool, trace: Option<&dyn WorkSpan>) {
    if tool.reach() != Reach::Anything {
        return;
    }
    let (told, done) = oneshot::channel();
    let info = CallInfo { id: call.id.to_string(), tool: call.name.to_string() };
    let waiting = recorder.before_command(info, move |n_files| {
        // Nobody listens any more if the call has begun.
        let _ = told.send(n_files);
    });
    let Some(patience) = waiting else { return };
    let watched = trace.map(WorkSpan::checkpoint);
    let covered = tokio::time::timeout(PATIENCE, done).await;
    if covered.is_err() {
        patience.give_up();
    }
    if let Some(watched) = watched {
        watched.end(covered.ok().and_then(Result::ok));
    }
}
