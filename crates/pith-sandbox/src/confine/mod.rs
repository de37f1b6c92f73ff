//! Makes the kernel hold the calling thread, and every process it starts, to a policy.
//!
//! The order matters: capabilities first, because the kernel asks some of them before Landlock; system calls last,
//! because setting up the rest needs them.

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod open;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod readable;
#[cfg(target_os = "linux")]
mod system_calls;

use std::error::Error;
#[cfg(target_os = "linux")]
use std::os::fd::BorrowedFd;
use std::{fmt, io};

#[cfg(target_os = "linux")]
pub use system_calls::Filter;

use crate::policy::Policy;

/// What is set up for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Namespaces,
    Capabilities,
    Landlock,
    Seccomp,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Namespaces => "namespaces",
            Step::Capabilities => "capabilities",
            Step::Landlock => "landlock",
            Step::Seccomp => "seccomp",
        })
    }
}

/// What could not be set up, and why. The thread may be confined in part.
#[derive(Debug)]
pub struct ConfineError {
    pub step: Step,
    pub cause: io::Error,
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}

impl Error for ConfineError {}

impl ConfineError {
    /// Finds the system's own error in what a library reports.
    fn new(step: Step, error: &(dyn Error + 'static)) -> ConfineError {
        let chain = std::iter::successors(Some(error), |error| (*error).source());
        let number = chain.filter_map(|error| error.downcast_ref::<io::Error>()).find_map(io::Error::raw_os_error);
        let cause = number.map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error);
        ConfineError { step, cause }
    }
}

/// What is done to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A thread that starts a command: files, capabilities and system calls.
    Command,
    /// A thread of pith that serves file tools: files only. It makes no system call that pith did not write.
    FileTools,
}

/// What the kernel is told about a policy: made once, for any number of threads, of this process and of those it sends
/// them to.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Restrictions {
    files: files::Rules,
    system_calls: Filter,
}

#[cfg(target_os = "linux")]
impl Restrictions {
    pub fn new(policy: &Policy) -> Result<Restrictions, ConfineError> {
        Ok(Restrictions { files: files::Rules::new(policy)?, system_calls: Filter::new(policy) })
    }

    /// Whether restrictions made now would be the same: nothing has appeared beside something closed, and no writable
    /// directory was replaced.
    pub fn are_current(&self) -> bool {
        self.files.are_current()
    }

    /// The rules for files of commands, as another process can be sent them.
    pub fn files(&self) -> BorrowedFd<'_> {
        self.files.for_commands()
    }

    pub fn system_calls(&self) -> &Filter {
        &self.system_calls
    }

    /// Confines the calling thread for the rest of its life.
    pub fn confine_this_thread(&self, scope: Scope) -> Result<(), ConfineError> {
        match scope {
            Scope::Command => confine_for_command(self.files(), &self.system_calls),
            Scope::FileTools => {
                rustix::thread::set_no_new_privs(true)
                    .map_err(|error| ConfineError { step: Step::Landlock, cause: error.into() })?;
                files::restrict(self.files.for_file_tools())
            }
        }
    }
}

/// Confines the calling thread, which starts a command, to restrictions that another process has sent.
#[cfg(target_os = "linux")]
pub fn confine_for_command(files: BorrowedFd<'_>, system_calls: &Filter) -> Result<(), ConfineError> {
    let cause = |error: rustix::io::Errno| ConfineError { step: Step::Capabilities, cause: error.into() };
    drop_capabilities().map_err(cause)?;
    files::close_on_exec().map_err(|cause| ConfineError { step: Step::Landlock, cause })?;
    devices::grant(files)?;
    files::restrict(files)?;
    system_calls.apply().map_err(|error| ConfineError::new(Step::Seccomp, &error))
}

/// What the kernel says about Landlock; confines the calling thread.
#[cfg(target_os = "linux")]
pub(crate) fn probe_landlock() -> Option<landlock::LandlockStatus> {
    files::probe().ok().map(|status| status.landlock)
}

/// Gives up every capability for good.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets};
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
