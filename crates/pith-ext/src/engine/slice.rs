//! How long extension code may run without returning: in processor time of the engine's thread, so that a busy machine
//! interrupts nothing that would have returned in time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Two clocks at one moment: they only ever run further apart.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub wall: Instant,
    /// What the thread has computed so far.
    pub processor: Duration,
}

impl Moment {
    pub fn now() -> Self {
        Moment { wall: Instant::now(), processor: processor_time() }
    }
}

/// The time that code has from one entry into JavaScript on.
pub(super) struct Slice {
    length: Duration,
    /// Before this moment the time cannot be over.
    earliest: Cell<Instant>,
    /// What the thread had computed when the slice began.
    began: Cell<Duration>,
}

impl Slice {
    pub fn new(length: Duration) -> Self {
        let slice = Slice { length, earliest: Cell::new(Instant::now()), began: Cell::default() };
        slice.begin(Moment::now());
        slice
    }

    /// Starts anew.
    pub fn begin(&self, now: Moment) {
        self.began.set(now.processor);
        self.earliest.set(now.wall + self.length);
    }

    /// Leaves out what has passed since `before`.
    pub fn leave_out(&self, before: Moment, now: Moment) {
        self.began.set(self.began.get() + now.processor.saturating_sub(before.processor));
        self.earliest.set(self.earliest.get() + now.wall.saturating_duration_since(before.wall));
    }

    /// Returns whether it is worth asking if the time is over. The answer is cheap.
    pub fn may_be_over(&self) -> bool {
        Instant::now() >= self.earliest.get()
    }

    /// Returns whether the time is over; if not, it is not worth asking again for as long as is left.
    pub fn is_over(&self, now: Moment) -> bool {
        let left = self.length.saturating_sub(now.processor.saturating_sub(self.began.get()));
        self.earliest.set(now.wall + left);
        left.is_zero()
    }
}

/// Returns what this thread has computed so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processor_time_counts() {
        let seconds = Duration::from_secs;
        let start = Moment::now();
        let at = |wall, processor| Moment {
            wall: start.wall + seconds(wall),
            processor: start.processor + seconds(processor),
        };
        let slice = Slice::new(seconds(5));
        slice.begin(start);
        // Others had the processor for a minute.
        assert!(!slice.is_over(at(60, 4)));
        assert!(slice.is_over(at(61, 5)));
        slice.begin(at(61, 5));
        assert!(!slice.is_over(at(70, 9)));
        // Work that pith did on behalf of the extension does not count.
        slice.leave_out(at(70, 9), at(75, 14));
        assert!(!slice.is_over(at(75, 14)));
        assert!(slice.is_over(at(76, 15)));
    }
}
