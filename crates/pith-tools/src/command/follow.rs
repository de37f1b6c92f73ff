//! Follows a running command to its end.

use std::io;
use std::time::Duration;

use pith_protocol::LimitUse;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::limits::CommandLimits;
use crate::process::{ABORT_GRACE, Exit, Running};

/// Background children keep the pipe open: this long without output after the exit counts as the end.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// How long after SIGKILL to wait for a process that may be stuck in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
const BUFFER: usize = 64 * 1024;
/// How many reads are done before other tasks get their turn.
const READS_PER_TURN: usize = 16;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Exited(Exit),
    TimedOut {
        /// What had ended before, if only children were still writing.
        shell: Option<ShellExit>,
    },
    Cancelled,
    /// It has passed a limit.
    Limited(LimitUse),
}

/// How and when the shell of a command ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShellExit {
    pub code: i32,
    pub after: Duration,
}

/// Receives the output of a command.
pub(crate) trait Listener {
    fn output(&mut self, bytes: &[u8]);

    /// When the next progress update is to be sent; `None` if there is nothing to send.
    fn flush_at(&self) -> Option<Instant>;

    fn flush(&mut self);

    /// Whether no more output may be read before the next `flush`.
    fn is_full(&self) -> bool {
        false
    }
}

enum Event {
    Cancelled,
    TimedOut,
    Due,
    Exited(io::Result<Exit>),
    Gone,
    Readable,
    /// It was stopped, or goes on.
    Frozen,
    Over,
}

/// Waits for the end of a command; kills it when cancelled or out of time. Fails if it could not be started.
pub(crate) async fn follow(
    running: Running,
    listener: &mut impl Listener,
    cancel: &CancellationToken,
    timeout: Option<Duration>,
    limits: &CommandLimits,
) -> io::Result<Ending> {
    let Running { job, output } = running;
    let mut buffer = vec![0; BUFFER];
    let mut frozen = job.frozen();
    let mut n_bytes = 0;
    let started = Instant::now();
    let mut shell = None;
    // The time that a frozen command still has.
    let mut left: Option<Duration> = None;
    let mut times_out = timeout.map(|timeout| started + timeout);
    let mut ending: Option<Ending> = None;
    let mut killed = false;
    let mut at_end = false;
    let mut gone = false;
    // When to stop waiting: set by the exit or the kill, postponed by output.
    let mut over: Option<Instant> = None;
    loop {
        if at_end && (gone || (ending.is_some() && !killed)) {
            break;
        }
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if !killed => Event::Cancelled,
            () = at(times_out), if !killed => Event::TimedOut,
            () = at(listener.flush_at()) => Event::Due,
            outcome = job.exited(), if ending.is_none() => Event::Exited(outcome),
            () = job.gone(), if killed && !gone => Event::Gone,
            Ok(()) = frozen.changed() => Event::Frozen,
            _ = output.readable(), if !at_end && !listener.is_full() => Event::Readable,
            () = at(over) => Event::Over,
        };
        match event {
            Event::Cancelled | Event::TimedOut => {
                killed = true;
                ending = Some(if matches!(event, Event::Cancelled) {
                    Ending::Cancelled
                } else {
                    Ending::TimedOut { shell }
                });
                over = Some(Instant::now() + ABORT_GRACE + KILL_TIMEOUT);
                job.end(ABORT_GRACE);
            }
            Event::Due => listener.flush(),
            Event::Frozen if *frozen.borrow_and_update() => {
                left = times_out.take().map(|at| at.saturating_duration_since(Instant::now()));
            }
            Event::Frozen => times_out = times_out.or(left.take().map(|left| Instant::now() + left)),
            Event::Exited(outcome) => {
                let exit = outcome?;
                shell = Some(ShellExit { code: exit.code(), after: started.elapsed() });
                let exceeded = job.exceeded().map(|exceeded| Ending::Limited(limits.of_exceeded(exceeded)));
                ending = Some(exceeded.unwrap_or(Ending::Exited(exit)));
                over = Some(Instant::now() + QUIET_PERIOD);
            }
            Event::Gone => {
                gone = true;
                over = Some(Instant::now() + QUIET_PERIOD);
            }
            Event::Readable => {
                at_end = read(&output, &mut buffer, listener, &mut n_bytes);
                if let Some(reached) = limits.of_output(n_bytes).filter(|_| !killed) {
                    killed = true;
                    ending = Some(Ending::Limited(reached));
                    over = Some(Instant::now() + ABORT_GRACE + KILL_TIMEOUT);
                    job.end(ABORT_GRACE);
                }
                if over.is_some() && (gone || !killed) {
                    over = Some(Instant::now() + QUIET_PERIOD);
                }
                tokio::task::yield_now().await;
            }
            Event::Over => break,
        }
    }
    if !killed || gone {
        job.release();
    }
    Ok(ending.expect("every way out of the loop sets it"))
}

/// Waits until `time`; for ever if it is `None`.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Reads what is available; returns true at the end of the output.
fn read(output: &pipe::Receiver, buffer: &mut [u8], listener: &mut impl Listener, n_bytes: &mut u64) -> bool {
    for _ in 0..READS_PER_TURN {
        match output.try_read(buffer) {
            Ok(0) => return true,
            Ok(n) => {
                *n_bytes += n as u64;
                listener.output(&buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
        if listener.is_full() {
            return false;
        }
    }
    false
}
