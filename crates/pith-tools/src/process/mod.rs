//! Runs commands so that none of their processes stay behind.
//!
//! Every command runs below a small supervisor process: pith's own binary, started with a hidden argument. The
//! supervisor leads a session of its own and adopts every orphan below it, so everything a command ever started can be
//! found, whatever it did with `setsid`, `nohup` or double forks, and two commands never affect each other's processes.
//! A socket connects pith and the supervisor. Orders and the exit status travel over it. When it closes, pith is gone,
//! even after `kill -9`, and the supervisor ends everything.
//!
//! Without a supervisor program (tests of other crates, platforms without one) a task inside pith does the same over
//! the same socket. It reaches the process group and the living descendants, but not processes that have left both.

mod cgroup;
mod channel;
mod confinement;
mod descriptor;
mod exit;
mod fallback;
mod jobs;
mod keeper;
mod limits;
mod memory;
mod namespaces;
mod processes;
mod supervisor;
mod tree;

pub use cgroup::{CgroupUse, probe_cgroups};
pub(crate) use confinement::not_run;
pub use exit::Exit;
pub use jobs::{CommandConfinement, CommandLine, Job, Jobs, Piped, Running};
pub use limits::{Exceeded, ProcessLimits};
pub(crate) use namespaces::Namespaces;
pub use namespaces::{CommandNamespaces, probe_namespaces};
pub use supervisor::{SUPERVISOR_ARGUMENT, Supervisor, supervisor_main};

use std::time::Duration;

/// The time between SIGTERM and SIGKILL when a command is aborted or times out.
pub const ABORT_GRACE: Duration = Duration::from_millis(500);
/// The time between SIGTERM and SIGKILL when pith ends.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// The time between SIGTERM and SIGKILL when pith was killed. Everything must have ended a second later, so most of
/// that second is left for killing.
const ORPHANED_GRACE: Duration = Duration::from_millis(250);
