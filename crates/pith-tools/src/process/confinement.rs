//! How restrictions reach the supervisor of a command, and how a failure to enforce them comes back.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use pith_sandbox::confine::{ConfineError, Filters, Restrictions, Step, confine_for_command};

use super::channel::Report;
use super::descriptor;

/// The words that tell a supervisor whether restrictions come over the channel.
pub(super) const CONFINED: &str = "confined";
pub(super) const FREE: &str = "free";

/// What a socket takes before anybody reads it.
const MAX_FILTERS: usize = 128 * 1024;

/// What a supervisor confines its command to.
pub(super) struct Received {
    files: OwnedFd,
    system_calls: Filters,
}

impl Received {
    /// Confines the calling thread.
    pub fn enforce(self) -> Result<(), ConfineError> {
        confine_for_command(self.files.as_fd(), &self.system_calls)
    }
}

/// Sends restrictions to a supervisor that may not run yet.
pub(super) fn send(restrictions: &Restrictions, to: &mut UnixStream) -> io::Result<()> {
    descriptor::send(to, restrictions.files())?;
    let filters = restrictions.system_calls().to_bytes();
    let length = (filters.len() as u32).to_le_bytes();
    to.write_all(&[&length, filters.as_slice()].concat())
}

/// Waits for the restrictions of a command.
pub(super) fn receive(from: &mut UnixStream) -> io::Result<Received> {
    let files = descriptor::receive(from)?;
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FILTERS {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut filters = vec![0; length];
    from.read_exact(&mut filters)?;
    let system_calls = Filters::from_bytes(&filters).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Received { files, system_calls })
}

/// The report of restrictions that could not be enforced.
pub(super) fn report(error: &ConfineError) -> Report {
    Report::Unconfined { step: error.step, errno: error.cause.raw_os_error().unwrap_or(0) }
}

/// The error of a command that was not run.
pub(super) fn refusal(step: Step, errno: i32) -> io::Error {
    let cause = if errno == 0 { io::Error::other("not supported") } else { io::Error::from_raw_os_error(errno) };
    io::Error::other(format!("The sandbox could not be set up ({step}: {cause}). The command was not run."))
}
