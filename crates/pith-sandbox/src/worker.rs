//! Threads of pith that are confined and do work for others.
//!
//! File tools run here, so that the kernel checks the very `open` they make. One thread is confined; it starts the
//! others, which are confined because it is, as are threads that the work starts.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use crate::confine::{ConfineError, Restrictions, Scope, Step};

type Work = Box<dyn FnOnce() + Send>;

/// How long a thread waits for more work before it ends.
const KEPT_IDLE: Duration = Duration::from_secs(10);

/// Confined threads. They end when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Worker(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    /// Asks the first thread to start another one; closing it ends that thread.
    more: mpsc::Sender<()>,
}

/// What is to be done, and who waits for it.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    n_idle: usize,
    is_closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("n_waiting", &self.state().work.len()).finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts a thread and confines it. Fails if the kernel refuses; nothing has run then.
    pub fn start(restrictions: Arc<Restrictions>) -> Result<Worker, ConfineError> {
        let queue = Arc::<Queue>::default();
        let (more, asked) = mpsc::channel::<()>();
        let (ready, confined) = mpsc::channel();
        let shared = Arc::clone(&queue);
        let first = move || {
            let result = restrictions.confine_this_thread(Scope::FileTools);
            drop(restrictions);
            let is_confined = result.is_ok();
            // The starter waits for it.
            let _ = ready.send(result);
            if is_confined {
                asked.into_iter().for_each(|()| add_thread(&shared));
            }
        };
        thread::Builder::new()
            .name("pith-confined".to_owned())
            .spawn(first)
            .map_err(|cause| ConfineError { step: Step::Landlock, cause })?;
        confined.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Worker(Arc::new(Handle { queue, more })))
    }

    /// Runs work on a confined thread of its own, and hands its result to `done`.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(thread::Result<T>) + Send + 'static,
    ) -> Result<(), ConfineError> {
        let Handle { queue, more } = &*self.0;
        let mut state = queue.state();
        state.work.push_back(Box::new(move || done(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)))));
        // Work that runs long must not hold up what comes after it.
        if state.work.len() > state.n_idle {
            more.send(()).map_err(|_| ended())
        } else {
            drop(state);
            queue.changed.notify_one();
            Ok(())
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.state().is_closed = true;
        self.queue.changed.notify_all();
    }
}

/// Starts a thread that does what is in the queue. Without one the work is dropped, and whoever waits for it hears so.
fn add_thread(queue: &Arc<Queue>) {
    let shared = Arc::clone(queue);
    let started = thread::Builder::new().spawn(move || {
        while let Some(work) = shared.next() {
            work();
        }
    });
    if started.is_err() {
        drop(queue.state().work.pop_back());
    }
}

impl Queue {
    /// Waits for work; `None` when there is none for a while, or nobody is left who could bring some.
    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.is_closed {
                return None;
            }
            state.n_idle += 1;
            let (woken, timeout) = self.changed.wait_timeout(state, KEPT_IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.n_idle -= 1;
            if timeout.timed_out() && state.work.is_empty() {
                return None;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> ConfineError {
    ConfineError { step: Step::Landlock, cause: io::Error::other("the confined thread ended") }
}
