//! How restrictions reach the supervisor of a command, and how a failure to enforce them comes back.

use std::fmt;
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

/// Why a command was not run: a whole sentence.
#[derive(Debug)]
struct NotConfined(String);

impl fmt::Display for NotConfined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotConfined {}

/// The error of a command that was not run.
pub(super) fn refusal(step: Step, errno: i32) -> io::Error {
    let cause = if errno == 0 { "not supported".to_owned() } else { io::Error::from_raw_os_error(errno).to_string() };
    // The system's text, without the number that the library adds.
    let cause = cause.split(" (os error").next().unwrap_or_default();
    let text = format!("The sandbox could not be set up ({step}: {cause}). The command was not run.");
    io::Error::other(NotConfined(text))
}

/// The error of a command that cannot be confined without a supervisor.
pub(super) fn without_supervisor() -> io::Error {
    io::Error::other(NotConfined("The sandbox needs pith's supervisor. The command was not run.".to_owned()))
}

/// The error of a command that cannot be limited without a supervisor.
pub(super) fn unlimited() -> io::Error {
    io::Error::other(NotConfined("Limits of commands need pith's supervisor. The command was not run.".to_owned()))
}

/// What the model reads if a shell did not start.
pub(crate) fn not_run(error: &io::Error) -> String {
    match error.get_ref() {
        Some(cause) if cause.is::<NotConfined>() => cause.to_string(),
        _ => format!("Could not run the shell: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_cannot_be_confined_is_refused_in_these_words() {
        let refused = not_run(&refusal(Step::Landlock, 1));
        assert_eq!(
            refused,
            "The sandbox could not be set up (landlock: Operation not permitted). The command was not run."
        );
        assert!(not_run(&io::Error::from_raw_os_error(2)).starts_with("Could not run the shell: No such file"));
    }
}
