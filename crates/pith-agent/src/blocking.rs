//! Work that blocks, away from the one thread everything else runs on.
//!
//! `tokio::task::spawn_blocking` panics when its pool is empty and the system
//! gives no thread (`RLIMIT_NPROC`, a full pids cgroup), and leaves the work
//! in its queue. Here such work is done where it is waited for: a loop that
//! stands still for a moment is better than work that is lost.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// What a panic left behind.
pub type Panic = Box<dyn Any + Send>;

/// Starts `work` on a thread of its own and returns what waits for it. Work that has begun is finished even if nobody
/// waits. A panic of the work is the `Err`, and ends nothing else.
pub fn blocking<T, F>(work: F) -> impl Future<Output = Result<T, Panic>> + Send + 'static + use<T, F>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    // A thread that cannot be started takes what it was given with it, so the work is only lent.
    let work = Arc::new(Mutex::new(Some(work)));
    let (done, outcome) = oneshot::channel();
    let started = {
        let work = work.clone();
        thread::Builder::new().name("blocking".to_owned()).spawn(move || done.send(finish(&work)))
    };
    async move {
        match started {
            // Nothing but the thread has the sender, and it always sends.
            Ok(_) => outcome.await.unwrap_or_else(|gone| Err(Box::new(gone))),
            Err(_) => finish(&work),
        }
    }
}

fn finish<T>(work: &Mutex<Option<impl FnOnce() -> T>>) -> Result<T, Panic> {
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take().expect("work is done once");
    catch_unwind(AssertUnwindSafe(work))
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
    fn work_is_done_elsewhere_and_a_panic_is_its_result() {
        let here = thread::current().id();
        assert!(wait(blocking(move || thread::current().id() != here)).expect("no panic"));
        let panic = wait(blocking(|| panic!("on purpose {}", 1))).expect_err("a panic");
        assert_eq!(panic_text(&panic), Some("on purpose 1"));
        assert_eq!(panic_text(&wait(blocking(|| panic!("plain"))).expect_err("a panic")), Some("plain"));
    }

    #[test]
    fn work_that_nobody_waits_for_is_done_all_the_same() {
        let (told, heard) = std::sync::mpsc::channel();
        drop(blocking(move || told.send(())));
        heard.recv().expect("the work was done");
    }
}
