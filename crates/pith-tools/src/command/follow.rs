//! Following a running command to its end.

use std::io;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::process::{ABORT_GRACE, Running};

/// Background children keep the pipe open; this long without output after the exit is the end.
const QUIET: Duration = Duration::from_millis(100);
/// After SIGKILL everything should be gone at once; a process stuck in the kernel is not waited for.
const HOPELESS: Duration = Duration::from_secs(1);
const BUFFER: usize = 64 * 1024;
/// Read in one go before others get their turn.
const READS: usize = 16;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(i32),
    TimedOut,
    Cancelled,
}

/// Takes the output of a command as it comes.
pub(crate) trait Listener {
    fn output(&mut self, bytes: &[u8]);

    /// When news are to be passed on, if there are any.
    fn due(&self) -> Option<Instant>;

    fn pass_on(&mut self);

    /// No more output is wanted before news were passed on.
    fn is_full(&self) -> bool {
        false
    }
}

enum Event {
    Cancelled,
    TimedOut,
    Due,
    Exited(io::Result<i32>),
    Gone,
    Readable,
    Over,
}

/// Waits for the end of a command, killing it when cancelled or out of time. Fails when it could not be started.
pub(crate) async fn follow(
    running: Running,
    listener: &mut impl Listener,
    cancel: &CancellationToken,
    timeout: Option<Duration>,
) -> io::Result<Ending> {
    let Running { job, output } = running;
    let mut buffer = vec![0; BUFFER];
    let times_out = timeout.map(|timeout| Instant::now() + timeout);
    let mut ending: Option<Ending> = None;
    let mut killed = false;
    let mut at_end = false;
    let mut gone = false;
    // Where the wait is over: set by the exit or the killing, moved on by output.
    let mut over: Option<Instant> = None;
    loop {
        if at_end && (gone || (ending.is_some() && !killed)) {
            break;
        }
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if !killed => Event::Cancelled,
            () = at(times_out), if !killed => Event::TimedOut,
            () = at(listener.due()) => Event::Due,
            outcome = job.exited(), if ending.is_none() => Event::Exited(outcome),
            () = job.gone(), if killed && !gone => Event::Gone,
            _ = output.readable(), if !at_end && !listener.is_full() => Event::Readable,
            () = at(over) => Event::Over,
        };
        match event {
            Event::Cancelled | Event::TimedOut => {
                killed = true;
                ending = Some(if matches!(event, Event::Cancelled) { Ending::Cancelled } else { Ending::TimedOut });
                over = Some(Instant::now() + ABORT_GRACE + HOPELESS);
                job.end(ABORT_GRACE);
            }
            Event::Due => listener.pass_on(),
            Event::Exited(outcome) => {
                ending = Some(Ending::Exited(outcome?));
                over = Some(Instant::now() + QUIET);
            }
            Event::Gone => {
                gone = true;
                over = Some(Instant::now() + QUIET);
            }
            Event::Readable => {
                at_end = read(&output, &mut buffer, listener);
                if over.is_some() && (gone || !killed) {
                    over = Some(Instant::now() + QUIET);
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

/// Never, without a time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Reads what is there; true at the end of the output.
fn read(output: &pipe::Receiver, buffer: &mut [u8], listener: &mut impl Listener) -> bool {
    for _ in 0..READS {
        match output.try_read(buffer) {
            Ok(0) => return true,
            Ok(n) => listener.output(&buffer[..n]),
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
