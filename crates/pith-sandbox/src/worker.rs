//! A thread of pith that is confined and does work for others.
//!
//! File tools run here, so that the kernel checks the very `open` they make. Threads the work starts are confined too.

use std::sync::mpsc;
use std::{io, thread};

use crate::confine::{ConfineError, Scope, Step, confine_this_thread};
use crate::policy::Policy;

type Work = Box<dyn FnOnce() + Send>;

/// A confined thread. It ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Worker {
    work: mpsc::Sender<Work>,
}

impl Worker {
    /// Starts a thread and confines it. Fails if the kernel refuses; nothing has run then.
    pub fn start(policy: Policy) -> Result<Worker, ConfineError> {
        let (work, queue) = mpsc::channel::<Work>();
        let (ready, confined) = mpsc::channel();
        let thread = thread::Builder::new().name("pith-confined".to_owned()).spawn(move || {
            let result = confine_this_thread(&policy, Scope::FileTools);
            let is_confined = result.is_ok();
            // The starter waits for it.
            let _ = ready.send(result);
            if is_confined {
                queue.into_iter().for_each(|work| work());
            }
        });
        thread.map_err(|cause| ConfineError { step: Step::Landlock, cause })?;
        confined.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Worker { work })
    }

    /// Runs work on a thread of its own below the confined one, and hands its result to `done`.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(thread::Result<T>) + Send + 'static,
    ) -> Result<(), ConfineError> {
        let start: Work = Box::new(move || {
            // A new thread inherits the confinement; the confined one stays free for the next call.
            let (hand_over, handed_over) = mpsc::channel();
            let spawned = thread::Builder::new().spawn(move || {
                let Ok(done) = handed_over.recv() else { return };
                let done: Box<dyn FnOnce(thread::Result<T>) + Send> = done;
                done(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
            });
            let done: Box<dyn FnOnce(thread::Result<T>) + Send> = Box::new(done);
            match spawned {
                Ok(_) => drop(hand_over.send(done)),
                Err(error) => done(Err(Box::new(error.to_string()))),
            }
        });
        self.work.send(start).map_err(|_| ended())
    }
}

fn ended() -> ConfineError {
    ConfineError { step: Step::Landlock, cause: io::Error::other("the confined thread ended") }
}
