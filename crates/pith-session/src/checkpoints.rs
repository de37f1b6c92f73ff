//! Checkpoints: what files were before calls of the session, and how they get back there.
//!
//! Files go back in a step, so that no prompt can begin meanwhile. The next prompt tells the model which did.

use std::sync::Arc;

use pith_agent::blocking::panic_text;
use pith_agent::{blocking, now_ms};
use pith_checkpoints::undo::{Question, Refusal, Skipped};
use pith_checkpoints::{Checkpoint, Recorder};
use pith_ext::ExtensionError;
use pith_protocol::answers::{Checkpoints, Restored, SkippedFile};
use pith_protocol::audit::{AuditRecord, RestoreRecord};
use pith_protocol::commands::{ListCheckpoints, RestoreCheckpoint};
use pith_protocol::fields::Place;
use pith_protocol::{Call, CommandError, Content, CustomMessage, ErrorCode};
use pith_store::EntryId;
use pith_tools::Workbench;
use serde_json::json;

use crate::admission::Step;
use crate::failure;
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

const BUSY: &str = "Cannot restore while the agent is running";

/// How many checkpoints are listed if the host does not say.
const DEFAULT_LIMIT: u64 = 100;

/// The `customType` of the message that tells the model which files went back.
const RESTORED: &str = "pith.restored";

/// What is to go back.
pub(crate) enum Since {
    /// All calls since this checkpoint, with the options of the host.
    Checkpoint { id: String, options: RestoreCheckpoint },
    /// All calls of a session since the first one in these entries.
    Entries { session: String, entries: Vec<EntryId> },
}

impl Session {
    fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.workbench().checkpoints.as_ref()
    }

    /// Called when an answer is stored: its calls come next.
    pub(crate) fn note_checkpoint_place(&self, entry: &str) {
        if let Some(recorder) = self.recorder() {
            recorder.note_place(self.store.id(), Some(entry));
        }
    }

    /// Called when a run starts. A project whose commands are covered is seen for the first time while the model thinks.
    pub(crate) fn begin_checkpoints(&self) {
        if let Some(recorder) = self.recorder() {
            recorder.begin_walk();
        }
    }

    /// Called when a call has ended. Records what it left, and tells the host if checkpoints cannot be written.
    pub(crate) fn end_checkpoint(&mut self, call_id: &str) {
        let Some(recorder) = self.recorder() else { return };
        recorder.after(call_id);
        if let Some(problem) = recorder.take_problem() {
            self.tell_checkpoint_problem(problem);
        }
    }

    fn tell_checkpoint_problem(&mut self, error: String) {
        let (path, event) = ("<checkpoints>".to_owned(), "tool_call".to_owned());
        self.tell_extension_error(&ExtensionError { path, event, error, stack: None });
    }

    pub(crate) fn list_checkpoints(&mut self, call: &ListCheckpoints, reply: Reply<ListCheckpoints>) {
        let Some(recorder) = self.recorder().cloned() else {
            return self.answer(reply, Ok(Checkpoints { checkpoints: Vec::new() }));
        };
        let limit = usize::try_from(call.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let session = self.store.id().to_owned();
        // A fork has the entries of the session it came from, and so its checkpoints.
        let entries: Vec<EntryId> = self.store.tree().branch(self.store.leaf());
        self.jobs.spawn_blocking(Job::Background, move || {
            recorder.flush();
            let is_ours = |checkpoint: &Checkpoint| {
                let is_in_branch = |entry: &String| entries.iter().any(|known| **known == **entry);
                checkpoint.session == session || checkpoint.entry_id.as_ref().is_some_and(is_in_branch)
            };
            let listed = recorder.store().checkpoints().map(|checkpoints| {
                let shown = checkpoints.iter().rev().filter(|checkpoint| is_ours(checkpoint) && !checkpoint.is_void());
                Checkpoints { checkpoints: shown.take(limit).map(Checkpoint::shown).collect() }
            });
            let failed =
                |error| CommandError::new(ErrorCode::Io, format!("The checkpoints could not be read: {error}"));
            JobEnd::CheckpointsListed { reply, answer: listed.map_err(failed) }
        });
    }

    pub(crate) fn restore_checkpoint(&mut self, call: RestoreCheckpoint, reply: Reply<RestoreCheckpoint>) {
        if self.activity.is_busy() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Busy, BUSY)));
        }
        let named =
            call.checkpoint_id.clone().or_else(|| reply.id().raw().and_then(|id| serde_json::from_str(id.get()).ok()));
        let Some(id) = named else {
            let missing = Place::new(RestoreCheckpoint::NAME, "checkpointId").missing();
            return self.answer(reply, Err(missing.into()));
        };
        let work = self.put_back(Since::Checkpoint { id, options: call });
        self.begin_step(async move { Step::FilesRestored { reply, outcome: work.await } });
    }

    /// Returns the work of putting files back.
    pub(crate) fn put_back(
        &self,
        since: Since,
    ) -> impl Future<Output = Result<Restored, CommandError>> + Send + 'static + use<> {
        let workbench = self.workbench().clone();
        let (session, entry) = (self.store.id().to_owned(), self.store.leaf().map(str::to_owned));
        async move {
            match (workbench.checkpoints.clone(), since) {
                (Some(recorder), since) => put_back(&workbench, recorder, since, session, entry).await,
                // Nothing was ever recorded.
                (None, Since::Checkpoint { id, .. }) => Err(refused(Refusal::NoSuchCheckpoint(id))),
                (None, Since::Entries { .. }) => Ok(answer(Vec::new(), Vec::new(), None)),
            }
        }
    }

    /// Called when files were put back because the host asked for just that.
    pub(crate) fn on_files_restored(
        &mut self,
        reply: Reply<RestoreCheckpoint>,
        outcome: Result<Restored, CommandError>,
    ) {
        if let Ok(restored) = &outcome {
            self.note_restored(restored);
        }
        self.answer(reply, outcome);
    }

    /// Called when files were put back along with a move or a fork, which has happened in any case. Returns what its
    /// answer says about them.
    pub(crate) fn take_restored(&mut self, outcome: Result<Restored, CommandError>) -> Restored {
        match outcome {
            Ok(restored) => {
                self.note_restored(&restored);
                restored
            }
            Err(why) => {
                self.tell_checkpoint_problem(why.text);
                Restored { restored: Vec::new(), skipped: Vec::new(), undo_id: None }
            }
        }
    }

    /// Writes the audit record, and lets the next prompt tell the model.
    fn note_restored(&mut self, Restored { restored, skipped, undo_id }: &Restored) {
        let Some(undo_id) = undo_id.clone() else { return };
        let record = RestoreRecord { restored: restored.clone(), skipped: skipped.clone(), undo_id };
        self.audit(&AuditRecord::Restore(record));
        if restored.is_empty() {
            return;
        }
        let text = format!(
            "The user has put these files back to an earlier state; read them again before you rely on them: {}",
            restored.join(", ")
        );
        self.queues.deferred.next_turn.push(CustomMessage {
            custom_type: RESTORED.to_owned(),
            content: Content::Text(text),
            display: true,
            details: Some(json!({"restored": restored})),
            timestamp: now_ms(),
            ..CustomMessage::default()
        });
    }
}

async fn put_back(
    workbench: &Workbench,
    recorder: Arc<Recorder>,
    since: Since,
    session: String,
    entry: Option<String>,
) -> Result<Restored, CommandError> {
    let (is_dry, planner) =
        (matches!(&since, Since::Checkpoint { options, .. } if options.dry_run == Some(true)), recorder.clone());
    let own = session.clone();
    let plan = on_thread(move || {
        let Some(question) = question(&planner, since, own)? else { return Ok(None) };
        planner.plan(&question).map(Some).map_err(refused)
    });
    let Some(plan) = plan.await? else { return Ok(answer(Vec::new(), Vec::new(), None)) };
    if is_dry || plan.changes.is_empty() {
        let files = plan.files().iter().map(|name| name.shown()).collect();
        return Ok(answer(files, plan.skipped, None));
    }
    let beginner = recorder.clone();
    let begun = on_thread(move || {
        let failed = |error| CommandError::new(ErrorCode::Io, format!("Nothing was put back: {error}"));
        beginner.begin_restore(plan, session, entry).map_err(failed)
    });
    let (undo_id, mut restore) = begun.await?;
    loop {
        let opener = recorder.clone();
        let (steps, returned) = on_thread(move || {
            let steps = restore.next(opener.store());
            Ok((steps, restore))
        })
        .await?;
        restore = returned;
        if steps.is_empty() {
            break;
        }
        let taken = workbench.put_back(steps).await;
        restore.note(taken.map_err(|why| CommandError::new(ErrorCode::Io, why))?);
    }
    let (restored, skipped) = restore.finish();
    Ok(answer(restored.iter().map(|name| name.shown()).collect(), skipped, Some(undo_id)))
}

/// Finds out which checkpoint is meant; `None` if there is none since then.
fn question(recorder: &Recorder, since: Since, own: String) -> Result<Option<Question>, CommandError> {
    match since {
        Since::Checkpoint { id, options } => {
            let RestoreCheckpoint { paths, force, .. } = options;
            Ok(Some(Question { id, session: own, paths, force: force.unwrap_or(false) }))
        }
        Since::Entries { session, entries } => {
            recorder.flush();
            let checkpoints = recorder.store().checkpoints().map_err(|error| refused(Refusal::Io(error)))?;
            let is_in = |entry: &String| entries.iter().any(|known| **known == **entry);
            // Those of the session that a fork came from have its entries too.
            let first = checkpoints.into_iter().find(|checkpoint| checkpoint.entry_id.as_ref().is_some_and(is_in));
            Ok(first.map(|checkpoint| Question { id: checkpoint.id, session, paths: None, force: false }))
        }
    }
}

fn refused(refusal: Refusal) -> CommandError {
    let code = match &refusal {
        Refusal::NoSuchCheckpoint(_) => ErrorCode::CheckpointNotFound,
        Refusal::Io(_) => ErrorCode::Io,
    };
    CommandError::new(code, refusal.to_string())
}

fn answer(restored: Vec<String>, skipped: Vec<Skipped>, undo_id: Option<String>) -> Restored {
    let shown = |skipped: Skipped| SkippedFile { path: skipped.path.shown(), reason: skipped.reason };
    Restored { restored, skipped: skipped.into_iter().map(shown).collect(), undo_id }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    let crashed = |text: &str| Err(failure::internal(format!("Internal error: {text}")));
    blocking(work).await.unwrap_or_else(|panic| crashed(panic_text(&panic).unwrap_or("a thread was stopped")))
}
