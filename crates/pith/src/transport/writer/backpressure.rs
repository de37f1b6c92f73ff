//! Holds the reader back while the host does not read.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::FrameQueue;
use crate::transport::FLUSH_LIMIT;

/// How often a waiting reader checks again.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The queue as the reader has it: the reader can wait for the host, and answer nothing.
pub struct Backpressure(Arc<FrameQueue>);

impl Backpressure {
    pub(super) fn new(queue: Arc<FrameQueue>) -> Self {
        Backpressure(queue)
    }

    /// Blocks while the host must read before more of its commands are taken: always above
    /// [`READ_LIMIT`](super::READ_LIMIT), and above [`LIMIT`](super::LIMIT) while `is_backlogged` returns true because
    /// earlier commands were not served yet, so that commands with large answers are taken one at a time. Returns false
    /// if waiting is of no use: the stream has ended, or the host `has_hung_up` and reads nothing.
    pub fn wait(&self, is_backlogged: impl Fn() -> bool, has_hung_up: impl Fn() -> bool) -> bool {
        let queue = &self.0;
        let mut state = queue.lock();
        let mut given_up_at = None;
        while !state.is_broken && state.must_be_read(&is_backlogged) {
            if state.is_closed {
                return false;
            }
            let written = state.written;
            state.is_reader_waiting = true;
            // A hang-up and the session's taking of a line do not wake this thread.
            let (next, _) = queue.changed.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if !has_hung_up() || state.written != written {
                given_up_at = None;
            } else if Instant::now() >= *given_up_at.get_or_insert_with(|| Instant::now() + FLUSH_LIMIT) {
                return false;
            }
        }
        state.is_reader_waiting = false;
        true
    }
}
