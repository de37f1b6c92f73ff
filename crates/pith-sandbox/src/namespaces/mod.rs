//! Namespaces: a view of the machine in which commands can change only what their policy lets them.
//!
//! A process, the keeper, [sets the namespaces up](set_up) and stays in them for as long as they are needed. The
//! supervisor of each command [joins](join) them before it confines itself. What the kernel refuses by a mount it
//! refuses for mode bits and times too, and for paths that Landlock cannot take out of a writable directory.

mod mounts;
mod network;
mod placeholders;
mod plan;
mod view;

use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::{fmt, fs, io};

use rustix::fs::inotify;
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};

pub use network::PROXY_PORT;
pub use placeholders::{Placeholders, remove_placeholders};
pub use plan::{OwnNetwork, Plan};
pub use view::View;

use crate::watch;

/// What could not be done, and to what.
#[derive(Debug)]
pub struct NamespaceError {
    what: String,
    pub cause: io::Error,
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for NamespaceError {}

fn failed(what: impl fmt::Display, cause: impl Into<io::Error>) -> NamespaceError {
    NamespaceError { what: what.to_string(), cause: cause.into() }
}

/// Moves this process, which must have one thread, into namespaces of its own and arranges them as planned. Returns
/// what the proxy listens on, if there is to be one.
pub fn set_up(plan: &Plan, view: &View) -> Result<Option<TcpListener>, NamespaceError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let network = if plan.network == OwnNetwork::None { UnshareFlags::empty() } else { UnshareFlags::NEWNET };
    #[allow(deprecated, reason = "deprecated for a flag that is not used here, in favour of an unsafe function")]
    let unshared = rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | network);
    unshared.map_err(|error| failed("unshare", error))?;
    // The user stays who it is. The kernel lets a group be mapped only after groups can be changed no more.
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| failed(file, error))?;
    }
    mounts::arrange(plan, view)?;
    match plan.network {
        OwnNetwork::None => Ok(None),
        OwnNetwork::Alone => network::raise_loopback().map(|()| None),
        OwnNetwork::WithProxy => network::raise_loopback().and_then(|()| network::listen().map(Some)),
    }
}

/// Moves this process, which must have one thread, into the namespaces of a keeper. Protected paths that were put in
/// place of others since are held from now on too. The current directory is the root afterwards.
pub fn join(keeper: BorrowedFd<'_>, plan: &Plan) -> Result<(), NamespaceError> {
    let mut spaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::MOUNT;
    if plan.network != OwnNetwork::None {
        spaces |= ThreadNameSpaceType::NETWORK;
    }
    move_into_thread_name_spaces(keeper, spaces).map_err(|error| failed("setns", error))?;
    mounts::hold(plan)
}

/// Notices that somebody outside puts another file in the place of a protected path, which takes its mount away.
pub struct Replaced<'a> {
    plan: &'a Plan,
    events: OwnedFd,
}

impl<'a> Replaced<'a> {
    pub fn watch(plan: &'a Plan) -> io::Result<Replaced<'a>> {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let replaced = Replaced { plan, events };
        replaced.watch_all()?;
        Ok(replaced)
    }

    /// Can be read when there is something to [`Replaced::hold_again`].
    pub fn events(&self) -> &OwnedFd {
        &self.events
    }

    /// Holds what has taken the place of protected paths.
    pub fn hold_again(&self) {
        watch::drain(&self.events);
        // The supervisor of the next command tries again, and says what is wrong.
        let _ = self.watch_all();
        let _ = mounts::hold(self.plan);
    }

    fn watch_all(&self) -> io::Result<()> {
        let parents = self.plan.held().filter_map(|held| held.path.parent());
        parents.into_iter().try_for_each(|parent| watch::entries(&self.events, parent))
    }
}
