//! How restrictions reach the supervisor of a command, and how a failure to enforce them comes back.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use pith_sandbox::confine::{ConfineError, Filters, Step, confine_for_command};
use pith_sandbox::namespaces::{self, Plan};

use super::channel::Report;
use super::descriptor;
use super::jobs::CommandConfinement;

/// What a supervisor is told about the confinement of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    Free,
    /// Restrictions come over the channel.
    Confined,
    /// Namespaces to join come before them.
    Apart,
}

impl Confinement {
    const WORDS: [(Confinement, &'static str); 3] =
        [(Confinement::Free, "free"), (Confinement::Confined, "confined"), (Confinement::Apart, "apart")];

    pub fn of(command: Option<&CommandConfinement>) -> Confinement {
        match command {
            None => Confinement::Free,
            Some(CommandConfinement { namespaces: None, .. }) => Confinement::Confined,
            Some(CommandConfinement { namespaces: Some(_), .. }) => Confinement::Apart,
        }
    }

    pub fn as_argument(self) -> &'static str {
        Confinement::WORDS.iter().find(|(confinement, _)| *confinement == self).map_or("", |(_, word)| word)
    }

    pub fn of_argument(argument: &OsStr) -> Option<Confinement> {
        Confinement::WORDS.iter().find(|(_, word)| argument == *word).map(|(confinement, _)| *confinement)
    }
}

/// What a socket takes before anybody reads it.
const MAX_BYTES: usize = 64 * 1024;

/// What a supervisor confines its command to.
pub(super) struct Received {
    /// A keeper, and how its namespaces are arranged.
    namespaces: Option<(OwnedFd, Plan)>,
    files: OwnedFd,
    system_calls: Filters,
}

impl Received {
    /// Moves this process into the namespaces of its command, if there are any.
    pub fn join(&self) -> Result<(), ConfineError> {
        let Some((keeper, plan)) = &self.namespaces else { return Ok(()) };
        let joined = namespaces::join(keeper.as_fd(), plan);
        joined.map_err(|error| ConfineError { step: Step::Namespaces, cause: error.cause })
    }

    /// Confines the calling thread.
    pub fn enforce(self) -> Result<(), ConfineError> {
        confine_for_command(self.files.as_fd(), &self.system_calls)
    }
}

/// Sends what a command is confined to to a supervisor that may not run yet.
pub(super) fn send(confinement: &CommandConfinement, to: &mut UnixStream) -> io::Result<()> {
    if let Some(namespaces) = &confinement.namespaces {
        descriptor::send(to, namespaces.keeper())?;
        send_bytes(&namespaces.plan().to_bytes(), to)?;
    }
    descriptor::send(to, confinement.restrictions.files())?;
    send_bytes(&confinement.restrictions.system_calls().to_bytes(), to)
}

/// Waits for what a command is confined to.
pub(super) fn receive(confinement: Confinement, from: &mut UnixStream) -> io::Result<Option<Received>> {
    let namespaces = match confinement {
        Confinement::Free => return Ok(None),
        Confinement::Confined => None,
        Confinement::Apart => {
            let keeper = descriptor::receive(from)?;
            let plan = Plan::from_bytes(&receive_bytes(from)?).ok_or(io::ErrorKind::InvalidData)?;
            Some((keeper, plan))
        }
    };
    let files = descriptor::receive(from)?;
    let system_calls = Filters::from_bytes(&receive_bytes(from)?).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(Received { namespaces, files, system_calls }))
}

/// Sends bytes with their number before them. The other process may not read yet, so they must fit into the socket.
pub(super) fn send_bytes(bytes: &[u8], to: &mut UnixStream) -> io::Result<()> {
    if bytes.len() > MAX_BYTES {
        return Err(io::Error::other("too many paths for a sandbox"));
    }
    to.write_all(&[&(bytes.len() as u32).to_le_bytes(), bytes].concat())
}

/// Waits for what [`send_bytes`] has sent.
pub(super) fn receive_bytes(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Sends any number of bytes to a process that reads them meanwhile.
pub(super) fn send_all(bytes: &[u8], to: &mut UnixStream) -> io::Result<()> {
    bytes.chunks(MAX_BYTES).try_for_each(|part| send_bytes(part, to))?;
    send_bytes(&[], to)
}

/// Waits for what [`send_all`] has sent.
pub(super) fn receive_all(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        match receive_bytes(from)? {
            part if part.is_empty() => return Ok(all),
            part => all.extend(part),
        }
    }
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
