//! Serialises calls that change the same file, in their order.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pith_agent::{ABORTED, BoxFuture, Effect, ToolContext, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::bridge;
use crate::confine::real_path;
use crate::denied;
use crate::replace::replace;
use crate::seen::digest;
use crate::tool::{Outcome, output};
use crate::workbench::Workbench;

/// The file a call changes, as the model named it and where it is.
pub(crate) struct Target {
    pub shown_path: String,
    pub path: PathBuf,
}

/// Runs a call that changes the file in its argument `path`. `read` takes the other arguments, `change` does the work
/// on a thread when the earlier calls on the same file are done.
pub(crate) fn change_file<T: Send + 'static>(
    tool: &'static str,
    workbench: Arc<Workbench>,
    arguments: Map<String, Value>,
    context: ToolContext,
    read: impl FnOnce(&Arguments) -> Result<T, String>,
    change: impl FnOnce(&Workbench, &Target, &T, &CancellationToken) -> Outcome + Send + 'static,
) -> BoxFuture<'static, ToolOutput> {
    let arguments = Arguments(arguments);
    // Queued before the first await, so that calls on one file keep their order.
    let queued = arguments.text("path").and_then(|shown_path| {
        let target = Target { shown_path: shown_path.to_owned(), path: workbench.base.resolve(shown_path) };
        let place = workbench.mutations.enter(&target.path);
        Ok((target, place, read(&arguments)?))
    });
    Box::pin(async move {
        let outcome = async {
            let (target, place, input) = queued?;
            let turn = place.turn(&context.cancel).await?;
            if let Some(recorder) = &workbench.checkpoints {
                recorder.wake();
            }
            let guard = workbench.guard_change()?;
            // Always waited for, so that the answer tells what happened.
            let (bench, path) = (Arc::clone(&workbench), target.path.clone());
            let outcome = bench
                .on_thread(move || {
                    let call = &context.call_id;
                    workbench.before_change(call, tool, &target.path);
                    let outcome = change(&workbench, &target, &input, &context.cancel);
                    workbench.after_change(call);
                    drop(turn);
                    outcome
                })
                .await;
            match guard.and_then(|guard| denied::change_undone(guard, &path)) {
                Some(refusal) => Err(refusal),
                None => outcome,
            }
        };
        output(outcome.await)
    })
}

/// What a call of [`change_file`] with these arguments would do.
pub(crate) fn change_of(workbench: &Workbench, arguments: &Map<String, Value>) -> Effect {
    let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    Effect::Change(workbench.base.resolve(path))
}

/// Gives the file its new contents: in the editor if there is one, otherwise on the disk. Returns a remark for the
/// model, which may be empty.
pub(crate) fn put(
    workbench: &Workbench,
    target: &Target,
    contents: &[u8],
    cancel: &CancellationToken,
) -> Result<String, String> {
    let Target { shown_path, path } = target;
    let (metadata, remark) = match bridge::write(workbench, (path, shown_path), contents, cancel)? {
        // A file that is not saved yet is not on the disk as it was seen.
        Some(remark) => (path.metadata().ok().filter(|_| remark.is_empty()), remark),
        None => (Some(replace(path, contents, &workbench.confinement)?), String::new()),
    };
    if let Some(metadata) = metadata {
        workbench.seen.remember(path, &metadata, digest(contents));
    }
    Ok(remark)
}

/// Queues the calls that change the same file, of whichever session. Calls on different files do not wait for each
/// other.
#[derive(Default)]
pub struct MutationQueue {
    files: Mutex<HashMap<PathBuf, Arc<Semaphore>>>,
}

/// A place in the queue of one file. Dropping it leaves the queue.
pub(crate) struct Place(State);

enum State {
    First(OwnedSemaphorePermit),
    Waiting(BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>),
}

/// The permission to change the file, until dropped.
pub(crate) struct Turn(#[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>);

impl MutationQueue {
    /// Takes the next place for `path`. It counts from now, not from the first poll of [`Place::turn`].
    pub(crate) fn enter(&self, path: &Path) -> Place {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, slot| Arc::strong_count(slot) > 1);
        let slot = files.entry(real_path(path)).or_insert_with(|| Arc::new(Semaphore::new(1)));
        let mut turn = Box::pin(Arc::clone(slot).acquire_owned());
        // The first poll enqueues the waiter in the semaphore.
        Place(match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(permit)) => State::First(permit),
            Poll::Ready(Err(_)) => unreachable!("the semaphore is never closed"),
            Poll::Pending => State::Waiting(turn),
        })
    }
}

impl Place {
    /// Waits until all earlier changes of the file are done; fails if the call is aborted first.
    pub async fn turn(self, cancel: &CancellationToken) -> Result<Turn, String> {
        match self.0 {
            State::First(permit) => Ok(Turn(Some(permit))),
            State::Waiting(turn) => tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ABORTED.to_owned()),
                permit = turn => Ok(Turn(permit.ok())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Waiting = BoxFuture<'static, Result<Turn, String>>;

    fn wait(queue: &MutationQueue, path: &Path, cancel: &CancellationToken) -> Waiting {
        let (place, cancel) = (queue.enter(path), cancel.clone());
        Box::pin(async move { place.turn(&cancel).await })
    }

    fn ready(waiting: &mut Waiting) -> Option<Result<Turn, String>> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn turns_come_in_the_order_of_entering() {
        let queue = MutationQueue::default();
        let file = Path::new("/nonexistent/a");
        let (live, cancelled) = (CancellationToken::new(), CancellationToken::new());
        let mut first = wait(&queue, file, &live);
        let mut second = wait(&queue, file, &cancelled);
        let mut third = wait(&queue, file, &live);
        let mut other = wait(&queue, Path::new("/nonexistent/b"), &live);
        assert!(ready(&mut third).is_none(), "asked first, entered last");
        let turn = ready(&mut first).expect("nobody before it");
        assert!(ready(&mut second).is_none());
        assert!(ready(&mut other).is_some());
        drop(turn);
        assert!(ready(&mut third).is_none());
        cancelled.cancel();
        assert_eq!(ready(&mut second).and_then(Result::err).as_deref(), Some("Operation aborted"));
        drop(second);
        assert!(ready(&mut third).is_some());
    }

    #[test]
    fn links_to_one_file_share_a_queue() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let queue = MutationQueue::default();
        let live = CancellationToken::new();
        let mut first = wait(&queue, &dir.path().join("a"), &live);
        let mut second = wait(&queue, &dir.path().join("b"), &live);
        assert!(ready(&mut first).is_some_and(|_turn| ready(&mut second).is_none()));
    }
}
