//! The process behind a connection, and how it is ended.

use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

/// How long a terminated process has before it is killed.
const AFTER_TERMINATION: Duration = Duration::from_secs(2);

/// A child that does not outlive its owner.
pub(crate) struct Process {
    child: Child,
    ending: Ending,
}

/// What is done next if the process does not end.
enum Ending {
    /// It is not asked to end.
    No,
    TerminateAt(Instant),
    KillAt(Instant),
    Killed,
}

impl Process {
    /// Takes a child with all three streams piped.
    pub(crate) fn new(child: Child) -> Self {
        Process { child, ending: Ending::No }
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Hands out the streams; only the first call has them.
    pub(crate) fn streams(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Notes that stdin was closed: a process that has not ended after `grace` is terminated. The shortest grace counts.
    pub(crate) fn end_within(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        match self.ending {
            Ending::No => self.ending = Ending::TerminateAt(at),
            Ending::TerminateAt(planned) => self.ending = Ending::TerminateAt(planned.min(at)),
            Ending::KillAt(_) | Ending::Killed => {}
        }
    }

    /// Waits for the end, and hastens it where that was asked for. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        loop {
            let next = match self.ending {
                Ending::No | Ending::Killed => None,
                Ending::TerminateAt(at) | Ending::KillAt(at) => Some(at),
            };
            let Some(next) = next else { return self.child.wait().await.ok() };
            tokio::select! {
                biased;
                status = self.child.wait() => return status.ok(),
                () = sleep_until(next) => self.hasten(),
            }
        }
    }

    fn hasten(&mut self) {
        match self.ending {
            Ending::No | Ending::Killed => {}
            Ending::TerminateAt(_) => {
                terminate(&mut self.child);
                self.ending = Ending::KillAt(Instant::now() + AFTER_TERMINATION);
            }
            Ending::KillAt(_) => {
                // Fails only for a process that has ended.
                self.child.start_kill().ok();
                self.ending = Ending::Killed;
            }
        }
    }
}

/// Reached with a living process only when the runtime is shut down before it has ended.
impl Drop for Process {
    fn drop(&mut self) {
        const STEP: Duration = Duration::from_millis(5);
        if self.child.id().is_none() {
            return;
        }
        terminate(&mut self.child);
        for _ in 0..AFTER_TERMINATION.as_millis() / STEP.as_millis() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        self.child.start_kill().ok();
    }
}

/// Asks the process to end, which lets it end what it has started.
#[cfg(unix)]
fn terminate(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        kill_process(pid, Signal::TERM).ok();
    }
}

/// There is nothing milder here.
#[cfg(not(unix))]
fn terminate(child: &mut Child) {
    child.start_kill().ok();
}
