//! How a policy reaches the supervisor of a command, and how a failure to enforce it comes back.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use pith_sandbox::Policy;
use pith_sandbox::confine::{ConfineError, Step};

use super::channel::Report;

/// The words that tell a supervisor whether a policy comes over the channel.
pub(super) const CONFINED: &str = "confined";
pub(super) const FREE: &str = "free";

/// What a socket takes before anybody reads it.
const MAX_POLICY: usize = 128 * 1024;

/// Sends a policy to a supervisor that may not run yet.
pub(super) fn send(policy: &Policy, to: &mut UnixStream) -> io::Result<()> {
    let text = serde_json::to_vec(policy)?;
    if text.len() > MAX_POLICY {
        return Err(io::Error::other(format!("the sandbox policy lists too many paths ({} bytes)", text.len())));
    }
    to.write_all(&(text.len() as u32).to_le_bytes())?;
    to.write_all(&text)
}

/// Waits for the policy of a command.
pub(super) fn receive(from: &mut UnixStream) -> io::Result<Policy> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_POLICY {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The report of a policy that could not be enforced.
pub(super) fn report(error: &ConfineError) -> Report {
    Report::Unconfined { step: error.step, errno: error.cause.raw_os_error().unwrap_or(0) }
}

/// The error of a command that was not run.
pub(super) fn refusal(step: Step, errno: i32) -> io::Error {
    let cause = if errno == 0 { io::Error::other("not supported") } else { io::Error::from_raw_os_error(errno) };
    io::Error::other(format!("The sandbox could not be set up ({step}: {cause}). The command was not run."))
}
