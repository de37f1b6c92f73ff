//! Helper threads for work that may block.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::inbox::{Inbox, Payload, ToEngine};
use crate::shared::lock;

/// More would not make a disk faster.
const THREADS: usize = 4;
/// After this time an idle thread ends, so that a quiet agent has none.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Packing needs some of it; what is not used costs nothing.
const STACK: usize = 2 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads, started when there is work.
pub struct Pool {
    inbox: Inbox,
    jobs: Sender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
    running: Arc<Mutex<Count>>,
}

#[derive(Default)]
struct Count {
    threads: usize,
    idle: usize,
}

impl Pool {
    /// Creates a pool without threads.
    pub fn new(inbox: Inbox) -> Self {
        let (jobs, queue) = mpsc::channel();
        Pool { inbox, jobs, queue: Arc::new(Mutex::new(queue)), running: Arc::default() }
    }

    /// Runs work on a helper thread and settles the operation with its result.
    pub fn run(&self, op: u64, work: impl FnOnce() -> Result<Payload, String> + Send + 'static) {
        let inbox = self.inbox.clone();
        let job: Job = Box::new(move || {
            let outcome = work();
            let _ = inbox.send(ToEngine::Settle { op, outcome });
        });
        let needs_thread = {
            let mut running = lock(&self.running);
            let needs = running.idle == 0 && running.threads < THREADS;
            running.threads += usize::from(needs);
            needs
        };
        // The receiver lives as long as the pool.
        let _ = self.jobs.send(job);
        if needs_thread {
            self.start();
        }
    }

    fn start(&self) {
        let queue = self.queue.clone();
        let running = self.running.clone();
        let builder = std::thread::Builder::new().name("pith-ext-io".to_owned()).stack_size(STACK);
        let started = builder.spawn({
            let running = running.clone();
            move || work(&queue, &running)
        });
        if started.is_err() {
            lock(&running).threads -= 1;
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>, running: &Mutex<Count>) {
    loop {
        lock(running).idle += 1;
        let job = lock(queue).recv_timeout(IDLE_TIMEOUT);
        lock(running).idle -= 1;
        match job {
            Ok(job) => job(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    lock(running).threads -= 1;
}
