//! Progress of calls that run in parallel.
//!
//! A report is the whole state of its call, so only the newest matters: it replaces one that was not passed on yet.
//! However many calls report however often, at most one report per call is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::{ToolOutput, ToolUpdate};

/// The shortest time between two reports of one call. Half the interval of the fastest built-in tool.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// The newest reports of a group of calls.
pub(crate) struct Progress {
    reports: Arc<Reports>,
    /// When the next report of each call may be passed on.
    due: Vec<Instant>,
}

/// Where tools write their reports, from any task or thread.
struct Reports {
    slots: Mutex<Vec<Slot>>,
    /// Wakes the task that passes reports on.
    changed: Notify,
}

#[derive(Default)]
struct Slot {
    /// The newest report, if it was not passed on yet.
    newest: Option<ToolOutput>,
    /// The call has ended; later reports are dropped.
    is_closed: bool,
}

impl Progress {
    /// Makes room for the reports of `n_calls` calls.
    pub fn new(n_calls: usize) -> Self {
        let slots = (0..n_calls).map(|_| Slot::default()).collect();
        let reports = Arc::new(Reports { slots: Mutex::new(slots), changed: Notify::new() });
        Progress { reports, due: vec![Instant::now(); n_calls] }
    }

    /// Returns the function with which the call of that index reports.
    pub fn reporter(&self, index: usize) -> ToolUpdate {
        let reports = Arc::clone(&self.reports);
        Arc::new(move |output| {
            let slot = &mut reports.slots()[index];
            if !slot.is_closed {
                slot.newest = Some(output);
                reports.changed.notify_one();
            }
        })
    }

    /// Waits for a report that may be passed on now. Cancel safe.
    pub async fn next(&mut self) -> (usize, ToolOutput) {
        loop {
            let waiting = self.reports.waiting().into_iter().min_by_key(|index| self.due[*index]);
            let Some(index) = waiting else {
                self.reports.changed.notified().await;
                continue;
            };
            if self.due[index] <= Instant::now() {
                let newest = self.reports.slots()[index].newest.take();
                if let Some(output) = newest {
                    self.due[index] = Instant::now() + MIN_INTERVAL;
                    return (index, output);
                }
                continue;
            }
            tokio::select! {
                () = sleep_until(self.due[index]) => {}
                () = self.reports.changed.notified() => {}
            }
        }
    }

    /// Ends the reports of a call. Returns the last one if it was not passed on yet.
    pub fn close(&mut self, index: usize) -> Option<ToolOutput> {
        let slot = &mut self.reports.slots()[index];
        slot.is_closed = true;
        slot.newest.take()
    }
}

impl Reports {
    /// The calls with a report that was not passed on yet.
    fn waiting(&self) -> Vec<usize> {
        let slots = self.slots();
        (0..slots.len()).filter(|index| slots[*index].newest.is_some()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
