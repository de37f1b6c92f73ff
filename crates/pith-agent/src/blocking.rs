//! Runs blocking work away from the thread that everything else runs on.
//!
//! `tokio::task::spawn_blocking` panics when its pool is empty and the system can start no thread (`RLIMIT_NPROC`, a
//! full pids cgroup), and leaves the work in its queue. Here such work runs where it is awaited: a loop that stands
//! still for a moment is better than lost work.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_blocking;

/// The payload of a panic.
pub type Panic = Box<dyn Any + Send>;

/// Starts `work` on another thread and returns a future for its result. Work that has begun is finished even if the
/// future is dropped. A panic of the work is the `Err`, and ends nothing else. Must be called within a runtime.
pub fn blocking<T, F>(work: F) -> impl Future<Output = Result<T, Panic>> + Send + 'static + use<T, F>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    // Work that the pool cannot start stays in its queue, so the pool gets only a reference.
    let work = Arc::new(Mutex::new(Some(work)));
    let lent = work.clone();
    let started = catch_unwind(AssertUnwindSafe(|| spawn_blocking(move || take(&lent).map(|work| work()))));
    async move {
        let outcome = match started {
            Ok(task) => task.await.map_err(|error| error.try_into_panic().unwrap_or_else(|error| Box::new(error)))?,
            Err(_) => take(&work).map(|work| catch_unwind(AssertUnwindSafe(work))).transpose()?,
        };
        Ok(outcome.expect("only whoever waits and the pool take the work, and never both"))
    }
}

fn take<F>(work: &Mutex<Option<F>>) -> Option<F> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns the text of a panic, if it has one.
pub fn panic_text(panic: &Panic) -> Option<&str> {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn work_runs_on_another_thread_and_a_panic_is_its_result() {
        use std::thread;
        let here = thread::current().id();
        assert!(wait(async move { blocking(move || thread::current().id() != here).await }).expect("no panic"));
        let panic = wait(async { blocking(|| panic!("on purpose {}", 1)).await }).expect_err("a panic");
        assert_eq!(panic_text(&panic), Some("on purpose 1"));
        assert_eq!(
            panic_text(&wait(async { blocking(|| panic!("plain")).await }).expect_err("a panic")),
            Some("plain")
        );
    }

    #[test]
    fn work_whose_future_is_dropped_is_finished() {
        let (told, heard) = std::sync::mpsc::channel();
        wait(async { drop(blocking(move || told.send(()))) });
        heard.recv().expect("the work was done");
    }
}
