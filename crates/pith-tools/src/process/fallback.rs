//! A task that replaces the supervisor where no supervisor program can be started.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

use super::channel::{Order, Report};
use super::exit::Exit;
use super::supervisor::Leftovers;
use super::{ORPHANED_GRACE, tree};

/// How often to check whether a process group has ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often to check while it is being killed.
const CHECK_INTERVAL_WHILE_ENDING: Duration = Duration::from_millis(10);

enum Event {
    Exited(io::Result<ExitStatus>),
    Order(Option<Order>),
    GraceOver,
    Check,
}

/// Supervises one command until nothing of its process group is left. Ends by itself soon after the channel is closed.
pub(super) async fn supervise(mut child: Child, mut channel: UnixStream, leftovers: Leftovers) {
    let Some(shell) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
    let mut exited = false;
    let mut hung_up = false;
    let mut deadline: Option<Instant> = None;
    let mut known: Vec<Pid> = Vec::new();
    loop {
        let next_check = Instant::now() + if deadline.is_some() { CHECK_INTERVAL_WHILE_ENDING } else { CHECK_INTERVAL };
        let event = tokio::select! {
            biased;
            status = child.wait(), if !exited => Event::Exited(status),
            () = sleep_until(deadline.unwrap_or(next_check)), if deadline.is_some() => Event::GraceOver,
            order = order(&mut channel), if !hung_up => Event::Order(order),
            () = sleep_until(next_check), if exited => Event::Check,
        };
        match event {
            Event::Exited(status) => {
                exited = true;
                let _ = channel.write_all(&Report::Exited(exit(status)).encode()).await;
            }
            Event::Order(Some(order @ (Order::Freeze | Order::Thaw))) => {
                let signal = if order == Order::Freeze { Signal::STOP } else { Signal::CONT };
                signal_all(shell, &tree::descendants(shell), signal);
            }
            Event::Order(order) => {
                hung_up = order.is_none();
                if hung_up && exited && leftovers == Leftovers::Keep {
                    return;
                }
                let grace = match order {
                    Some(Order::End { grace }) => grace,
                    _ => ORPHANED_GRACE,
                };
                known.extend(tree::descendants(shell));
                signal_all(shell, &known, Signal::TERM);
                // What is frozen hears it only when it goes on.
                signal_all(shell, &known, Signal::CONT);
                deadline = Some(Instant::now() + grace);
            }
            Event::GraceOver => {
                known.extend(tree::descendants(shell));
                signal_all(shell, &known, Signal::KILL);
                deadline = Some(Instant::now() + ORPHANED_GRACE);
            }
            Event::Check => {}
        }
        if exited && !tree::group_is_alive(shell) && !known.iter().any(|pid| tree::is_alive(*pid)) {
            let _ = channel.write_all(&Report::Gone.encode()).await;
            return;
        }
    }
}

async fn order(channel: &mut UnixStream) -> Option<Order> {
    let mut frame = [0; 5];
    // Not cancel safe, but a frame is five bytes written at once.
    channel.read_exact(&mut frame).await.ok()?;
    Order::decode(frame)
}

fn exit(status: io::Result<ExitStatus>) -> Exit {
    let Ok(status) = status else { return Exit::Code(1) };
    status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(1)), Exit::Signal)
}

fn signal_all(shell: Pid, known: &[Pid], signal: Signal) {
    let _ = rustix::process::kill_process_group(shell, signal);
    for pid in known {
        tree::send(*pid, signal);
    }
}
