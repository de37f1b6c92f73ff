//! The keeper: a process that makes the namespaces of a session's commands, and is in them for as long as they are
//! needed. It is pith's own program, like the supervisors that join it, and ends with pith.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use pith_sandbox::namespaces::{OwnNetwork, Plan, Replaced, View, remove_placeholders, set_up};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::confinement::{receive_all, receive_bytes, send_all, send_bytes};
use super::descriptor;
use super::supervisor::{Supervisor, take_channel};

/// Makes a supervisor program a keeper.
pub(super) const KEEPER: &str = "keeper";

/// How long namespaces may take. They take about a millisecond.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running keeper. It is ended when it is dropped; processes in its namespaces stay in them.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    /// Tells the keeper which placeholders to remove, should pith be killed. Closing it ends the keeper.
    line: UnixStream,
    process: OwnedFd,
}

impl Keeper {
    /// Starts a keeper and waits until its namespaces are as planned. Also returns what the proxy listens on, if there
    /// is to be one. The error is for the user.
    pub fn start(supervisor: &Supervisor, plan: &Plan, view: &View) -> Result<(Keeper, Option<TcpListener>), String> {
        let mut keeper = Keeper::spawn(supervisor).map_err(|error| error.to_string())?;
        let listener = keeper.wait_until_ready(plan, view)?;
        Ok((keeper, listener))
    }

    fn spawn(supervisor: &Supervisor) -> io::Result<Keeper> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_read_timeout(Some(START_LIMIT))?;
        let child = Command::new(&supervisor.program)
            .arg0("pith-keeper")
            .arg(&supervisor.argument)
            .arg(KEEPER)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Keeper { child, line, process })
    }

    fn wait_until_ready(&mut self, plan: &Plan, view: &View) -> Result<Option<TcpListener>, String> {
        let lost = |error: io::Error| format!("the keeper: {error}");
        send_bytes(&plan.to_bytes(), &mut self.line).map_err(lost)?;
        send_all(&view.to_bytes(), &mut self.line).map_err(lost)?;
        let refusal = receive_bytes(&mut self.line).map_err(lost)?;
        if !refusal.is_empty() {
            return Err(String::from_utf8_lossy(&refusal).into_owned());
        }
        match plan.network() {
            OwnNetwork::None | OwnNetwork::Alone => Ok(None),
            OwnNetwork::WithProxy => {
                let listener = descriptor::receive(&self.line).map_err(lost)?;
                Ok(Some(TcpListener::from(listener)))
            }
        }
    }

    /// Stands for the keeper, whoever has its number by now.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    pub fn is_alive(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A signal that arrives meanwhile says nothing about the keeper.
        let ended = retry_on_intr(|| poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&at_once)));
        ended == Ok(0)
    }

    /// Tells which placeholders are about to be made.
    pub fn tell(&self, placeholders: &[PathBuf]) -> io::Result<()> {
        let told: Vec<u8> = placeholders.iter().flat_map(|path| [path.as_os_str().as_bytes(), &[0]].concat()).collect();
        (&self.line).write_all(&told)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a keeper. Standard input is the line to pith.
pub(super) fn keeper_main() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn keep() -> io::Result<()> {
    let mut line = take_channel()?;
    let plan = Plan::from_bytes(&receive_bytes(&mut line)?).ok_or(io::ErrorKind::InvalidData)?;
    let view = View::from_bytes(&receive_all(&mut line)?).ok_or(io::ErrorKind::InvalidData)?;
    // Keys typed at pith's terminal are not meant for it.
    rustix::process::setsid()?;
    let listener = match set_up(&plan, &view) {
        Ok(listener) => listener,
        Err(error) => return send_bytes(error.to_string().as_bytes(), &mut line),
    };
    let replaced = Replaced::watch(&plan);
    let refusal = replaced.as_ref().err().map(|error| format!("protected paths: {error}")).unwrap_or_default();
    send_bytes(refusal.as_bytes(), &mut line)?;
    let replaced = replaced?;
    if let Some(listener) = listener {
        descriptor::send(&line, listener.as_fd())?;
    }
    let made = follow(&mut line, &replaced)?;
    let made: Vec<&OsStr> =
        made.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(OsStr::from_bytes).collect();
    remove_placeholders(&made);
    Ok(())
}

/// Holds protected paths until pith closes the line. Returns the placeholders it has told of.
fn follow(line: &mut UnixStream, replaced: &Replaced<'_>) -> io::Result<Vec<u8>> {
    let mut told = Vec::new();
    loop {
        let mut polled = [PollFd::new(line, PollFlags::IN), PollFd::new(replaced.events(), PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let (is_told, is_replaced) = (!polled[0].revents().is_empty(), !polled[1].revents().is_empty());
        if is_replaced {
            replaced.hold_again();
        }
        if is_told {
            let mut bytes = [0; 4096];
            match line.read(&mut bytes)? {
                0 => return Ok(told),
                n => told.extend_from_slice(&bytes[..n]),
            }
        }
    }
}
