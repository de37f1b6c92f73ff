//! Progress of the calls that run side by side.
//!
//! A report is the whole state of its call, so only the newest counts: one that
//! was not passed on yet is replaced. However many calls report however often,
//! no more than one report per call is kept, and few enough are passed on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::{ToolOutput, ToolUpdate};

/// Shortest time between two reports of one call. Twice as fast as the fastest built-in tool reports.
const PACE: Duration = Duration::from_millis(50);

/// The newest reports of a group of calls.
pub(crate) struct Progress {
    board: Arc<Board>,
    /// When the next report of each call may be passed on.
    due: Vec<Instant>,
}

/// What the tools write to, from whatever task or thread they run on.
struct Board {
    slots: Mutex<Vec<Slot>>,
    /// Wakes whoever passes reports on.
    changed: Notify,
}

#[derive(Default)]
struct Slot {
    /// Not passed on yet.
    newest: Option<ToolOutput>,
    /// The call has ended; what it still says is dropped.
    is_closed: bool,
}

impl Progress {
    /// Makes room for the reports of `n_calls` calls.
    pub fn new(n_calls: usize) -> Self {
        let slots = (0..n_calls).map(|_| Slot::default()).collect();
        let board = Arc::new(Board { slots: Mutex::new(slots), changed: Notify::new() });
        Progress { board, due: vec![Instant::now(); n_calls] }
    }

    /// Returns what the call with that index reports to.
    pub fn reporter(&self, index: usize) -> ToolUpdate {
        let board = Arc::clone(&self.board);
        Arc::new(move |output| {
            let slot = &mut board.slots()[index];
            if !slot.is_closed {
                slot.newest = Some(output);
                board.changed.notify_one();
            }
        })
    }

    /// Waits for a report that may be passed on now. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> (usize, ToolOutput) {
        loop {
            let waiting = self.board.waiting().into_iter().min_by_key(|index| self.due[*index]);
            let Some(index) = waiting else {
                self.board.changed.notified().await;
                continue;
            };
            if self.due[index] <= Instant::now() {
                let newest = self.board.slots()[index].newest.take();
                if let Some(output) = newest {
                    self.due[index] = Instant::now() + PACE;
                    return (index, output);
                }
                continue;
            }
            tokio::select! {
                () = sleep_until(self.due[index]) => {}
                () = self.board.changed.notified() => {}
            }
        }
    }

    /// Ends the reports of a call. Returns the last one if it was not passed on yet.
    pub fn close(&mut self, index: usize) -> Option<ToolOutput> {
        let slot = &mut self.board.slots()[index];
        slot.is_closed = true;
        slot.newest.take()
    }
}

impl Board {
    /// The calls with a report that was not passed on yet.
    fn waiting(&self) -> Vec<usize> {
        let slots = self.slots();
        (0..slots.len()).filter(|index| slots[*index].newest.is_some()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
