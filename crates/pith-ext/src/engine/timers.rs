//! The timers of extension code.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

/// Pending timers by due time. Ids come from JavaScript and are never reused.
#[derive(Default)]
pub struct Timers {
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    due: HashMap<u64, Instant>,
}

impl Timers {
    /// Starts or restarts a timer.
    pub fn set(&mut self, id: u64, delay: Duration) {
        let at = Instant::now() + delay;
        self.due.insert(id, at);
        self.queue.push(Reverse((at, id)));
    }

    /// Removes a timer.
    pub fn clear(&mut self, id: u64) {
        self.due.remove(&id);
    }

    /// Returns when the next timer is due.
    pub fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, id))) = self.queue.peek() {
            if self.due.get(id) == Some(at) {
                return Some(*at);
            }
            self.queue.pop();
        }
        None
    }

    /// Removes and returns one timer that is due.
    pub fn pop(&mut self, now: Instant) -> Option<u64> {
        let at = self.next()?;
        if at > now {
            return None;
        }
        let Reverse((_, id)) = self.queue.pop()?;
        self.due.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_cleared_ones_never() {
        let mut timers = Timers::default();
        timers.set(1, Duration::from_millis(30));
        timers.set(2, Duration::from_millis(10));
        timers.set(3, Duration::from_millis(20));
        timers.clear(3);
        let later = Instant::now() + Duration::from_secs(1);
        let fired: Vec<u64> = std::iter::from_fn(|| timers.pop(later)).collect();
        assert_eq!(fired, [2, 1]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_timer_set_again_fires_once_at_its_new_time() {
        let mut timers = Timers::default();
        timers.set(1, Duration::ZERO);
        timers.set(1, Duration::from_secs(60));
        assert_eq!(timers.pop(Instant::now() + Duration::from_secs(1)), None);
    }
}
