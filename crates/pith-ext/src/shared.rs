//! What the handle and the engine thread share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use crate::events::EventSet;
use crate::outgoing::{ExtensionError, FromExtension};
use crate::registry::Registry;

/// Why a call into the extensions has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Extension code threw; the text is its message.
    #[error("{0}")]
    Failed(String),
    /// Extension code occupies the engine and does not return.
    #[error("The extension did not answer in time")]
    Timeout,
    /// The engine has ended or was given up.
    #[error("The extension runtime has stopped")]
    Gone,
}

/// The answer to a call, and the number of requests made before it.
pub(crate) struct Answered {
    pub outcome: Result<String, CallError>,
    pub requests: u64,
}

/// A call that waits for the engine.
pub(crate) struct PendingCall {
    pub reply: oneshot::Sender<Answered>,
    /// Receives what comes before the result; closed with the call.
    pub progress: Option<Progress>,
}

/// Where a call reports to before it has a result.
pub(crate) enum Progress {
    /// Every piece is delivered.
    Pieces(mpsc::UnboundedSender<String>),
    /// Each report replaces the previous one, read or not: code that reports in a loop must not fill the memory.
    Newest(watch::Sender<String>),
}

/// State shared between the clones of the handle and the engine thread. Every lock is held for a few lines.
pub(crate) struct Shared {
    calls: Mutex<HashMap<u64, PendingCall>>,
    next_call: AtomicU64,
    /// The newest text of observations that have not been delivered yet.
    updates: Mutex<HashMap<String, String>>,
    registry: Mutex<Arc<Registry>>,
    pub listening: EventSet,
    pub activity: EngineActivity,
    /// Requests to the session. Closed when the session has ended.
    outgoing: mpsc::UnboundedSender<FromExtension>,
    /// The number of requests made so far.
    sent: AtomicU64,
    /// The number of requests the session has handled.
    handled: watch::Sender<u64>,
    is_gone: AtomicBool,
    /// Wakes tasks that wait for the end of the engine.
    end: tokio::sync::Notify,
}

impl Shared {
    pub fn new(outgoing: mpsc::UnboundedSender<FromExtension>) -> Self {
        Shared {
            calls: Mutex::default(),
            next_call: AtomicU64::new(1),
            updates: Mutex::default(),
            registry: Mutex::default(),
            listening: EventSet::default(),
            activity: EngineActivity::new(),
            outgoing,
            sent: AtomicU64::new(0),
            handled: watch::Sender::new(0),
            is_gone: AtomicBool::new(false),
            end: tokio::sync::Notify::new(),
        }
    }

    /// Returns when the engine has ended.
    pub async fn ended(&self) {
        let notified = self.end.notified();
        if !self.is_gone() {
            notified.await;
        }
    }

    /// Sends a request to the session; returns false if the session has ended.
    pub fn send(&self, message: FromExtension) -> bool {
        self.sent.fetch_add(1, Ordering::AcqRel);
        self.outgoing.send(message).is_ok()
    }

    /// Waits a moment if the session is far behind, so that a flood of requests cannot fill the memory. Called on the
    /// engine's thread; the time counts as the extension's own.
    pub fn throttle(&self) {
        const FAR_BEHIND: u64 = 1000;
        const STEP: Duration = Duration::from_millis(1);
        const MAX_STEPS: u32 = 20;
        let is_behind = || self.sent.load(Ordering::Acquire).saturating_sub(*self.handled.borrow()) > FAR_BEHIND;
        let mut steps = 0;
        while steps < MAX_STEPS && is_behind() {
            std::thread::sleep(STEP);
            steps += 1;
        }
    }

    /// Ends a call.
    pub fn answer(&self, id: u64, outcome: Result<String, CallError>) {
        if let Some(pending) = self.close_call(id) {
            // The caller may have given up.
            let _ = pending.reply.send(Answered { outcome, requests: self.sent.load(Ordering::Acquire) });
        }
    }

    /// Waits until the session has handled the requests that were made before an answer, so that the caller acts after
    /// them. Does not wait long for a session that does not read.
    pub async fn caught_up(&self, requests: u64) {
        const LIMIT: Duration = Duration::from_secs(1);
        let mut handled = self.handled.subscribe();
        if *handled.borrow() < requests {
            let caught_up = handled.wait_for(|handled| *handled >= requests);
            let _ = tokio::time::timeout(LIMIT, caught_up).await;
        }
    }

    pub fn open_call(&self, pending: PendingCall) -> u64 {
        let id = self.next_call.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls).insert(id, pending);
        id
    }

    pub fn close_call(&self, id: u64) -> Option<PendingCall> {
        lock(&self.calls).remove(&id)
    }

    pub fn progress(&self, id: u64, text: String) {
        if let Some(pending) = lock(&self.calls).get(&id)
            && let Some(progress) = &pending.progress
        {
            // The caller may have stopped listening.
            match progress {
                Progress::Pieces(pieces) => drop(pieces.send(text)),
                Progress::Newest(newest) => drop(newest.send(text)),
            }
        }
    }

    /// Stores the newest text of an observation; returns true if it has to be announced.
    pub fn put_update(&self, key: &str, text: String) -> bool {
        lock(&self.updates).insert(key.to_owned(), text).is_none()
    }

    pub fn take_update(&self, key: &str) -> Option<String> {
        lock(&self.updates).remove(key)
    }

    pub fn registry(&self) -> Arc<Registry> {
        lock(&self.registry).clone()
    }

    pub fn set_registry(&self, registry: Registry) {
        self.listening.replace(&registry.listening);
        *lock(&self.registry) = Arc::new(registry);
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Ends the engine: all pending calls fail. Returns whether this was the first call.
    pub fn end(&self) -> bool {
        let is_first = !self.is_gone.swap(true, Ordering::AcqRel);
        for (_, pending) in lock(&self.calls).drain() {
            let _ = pending.reply.send(Answered { outcome: Err(CallError::Gone), requests: 0 });
        }
        self.end.notify_waiters();
        is_first
    }

    pub fn report(&self, path: &str, event: &str, error: impl Into<String>) {
        let error = ExtensionError { path: path.to_owned(), event: event.to_owned(), error: error.into(), stack: None };
        self.send(FromExtension::Error(error));
    }
}

/// The requests of extensions, in order.
pub struct Requests {
    receiver: mpsc::UnboundedReceiver<FromExtension>,
    shared: Arc<Shared>,
    taken: u64,
}

impl Requests {
    pub(crate) fn new(receiver: mpsc::UnboundedReceiver<FromExtension>, shared: Arc<Shared>) -> Self {
        Requests { receiver, shared, taken: 0 }
    }

    /// Waits for the next request. Calling this marks the previous ones as handled. Cancel safe.
    pub async fn recv(&mut self) -> Option<FromExtension> {
        self.shared.handled.send_replace(self.taken);
        let request = self.receiver.recv().await?;
        self.taken += 1;
        Some(request)
    }

    /// Returns the next request if there is one already.
    pub fn try_recv(&mut self) -> Option<FromExtension> {
        self.shared.handled.send_replace(self.taken);
        let request = self.receiver.try_recv().ok()?;
        self.taken += 1;
        Some(request)
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // No request will be handled any more, so nothing may wait for that.
        self.shared.handled.send_replace(u64::MAX);
    }
}

/// Locks a mutex. A panic elsewhere leaves the data valid, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the engine has been inside extension code, readable from other threads.
pub(crate) struct EngineActivity {
    start: Instant,
    /// Milliseconds since `start` plus one; zero while the engine is idle.
    entered: AtomicU64,
    /// Whether the engine blocks on purpose, for example in `execSync`.
    is_blocking: AtomicBool,
    /// Counts signs of progress.
    n_steps: AtomicU64,
}

/// What the engine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    Idle,
    Running(Duration),
    Blocking(Duration),
}

impl EngineActivity {
    fn new() -> Self {
        let (entered, is_blocking, n_steps) = Default::default();
        EngineActivity { start: Instant::now(), entered, is_blocking, n_steps }
    }

    pub fn enter(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.entered.store(now + 1, Ordering::Release);
        self.note_step();
    }

    /// Called when the engine has made progress.
    pub fn note_step(&self) {
        self.n_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that changes whenever there is progress.
    pub fn n_steps(&self) -> u64 {
        self.n_steps.load(Ordering::Relaxed)
    }

    pub fn leave(&self) {
        self.entered.store(0, Ordering::Release);
    }

    /// Runs something that blocks the engine on purpose; its time does not count as the extension's.
    pub fn block<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        self.is_blocking.store(true, Ordering::Release);
        let result = work();
        // Only this thread writes; zero means that no extension code is running.
        if self.entered.load(Ordering::Acquire) != 0 {
            let spent = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.entered.fetch_add(spent, Ordering::AcqRel);
        }
        self.is_blocking.store(false, Ordering::Release);
        result
    }

    pub fn busy(&self) -> Busy {
        let entered = self.entered.load(Ordering::Acquire);
        if entered == 0 {
            return Busy::Idle;
        }
        let spent = self.start.elapsed().saturating_sub(Duration::from_millis(entered - 1));
        if self.is_blocking.load(Ordering::Acquire) { Busy::Blocking(spent) } else { Busy::Running(spent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spent_blocking_on_purpose_is_not_counted() {
        let activity = EngineActivity::new();
        assert_eq!(activity.busy(), Busy::Idle);
        activity.enter();
        let began = Instant::now();
        activity.block(|| {
            assert!(matches!(activity.busy(), Busy::Blocking(_)));
            while began.elapsed() < Duration::from_millis(50) {
                std::hint::spin_loop();
            }
        });
        let Busy::Running(spent) = activity.busy() else { panic!("{:?}", activity.busy()) };
        assert!(spent + Duration::from_millis(40) < began.elapsed(), "{spent:?} of {:?}", began.elapsed());
    }
}
