//! Time in tests: it stands still while anything can run, and advances only when a test waits.
//!
//! Tokio's paused clock jumps to the next timer when every task is idle. That is too early while something outside the
//! runtime works, like the thread of the extension engine or a process: then the clock is held.

use std::sync::mpsc;
use std::time::Duration;

use tokio::task::spawn_blocking;

/// Keeps the clock from jumping until it is dropped.
pub struct Held {
    _release: mpsc::Sender<()>,
}

/// Holds the clock. The runtime does not move it while a blocking task is under way.
pub fn hold() -> Held {
    let (release, released) = mpsc::channel::<()>();
    spawn_blocking(move || released.recv());
    Held { _release: release }
}

/// Gives other processes a moment of real time, during which the clock stands still.
pub async fn let_processes_work() {
    const MOMENT: Duration = Duration::from_millis(1);
    spawn_blocking(|| std::thread::sleep(MOMENT)).await.expect("sleeping does not fail");
}

/// How far the clock advances per step: little at first, more while nothing happens.
pub struct Pace {
    step: Duration,
    longest: Duration,
    quiet: Duration,
}

impl Pace {
    const SHORTEST: Duration = Duration::from_millis(1);

    pub fn new(longest: Duration) -> Self {
        Pace { step: Self::SHORTEST, longest, quiet: Duration::ZERO }
    }

    pub fn step(&self) -> Duration {
        self.step
    }

    /// Called when something happened.
    pub fn restart(&mut self) {
        *self = Pace::new(self.longest);
    }

    /// Called when nothing happened in a whole step.
    pub fn relax(&mut self) {
        self.quiet += self.step;
        self.step = (self.step * 2).min(self.longest);
    }

    /// Returns for how long nothing has happened.
    pub fn quiet(&self) -> Duration {
        self.quiet
    }
}
