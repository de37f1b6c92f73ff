//! Running commands so that nothing of them outlives its welcome.
//!
//! Every command runs below a small supervisor process: pith's own binary, started
//! with a hidden argument. The supervisor leads a session of its own and adopts
//! every orphan below it, so all that a command ever started stays findable,
//! whatever it did with `setsid`, `nohup` or double forks, and two commands
//! never touch each other's processes. A socket joins pith and supervisor. Orders
//! and the exit status travel over it, and its closing tells the supervisor that
//! pith is gone, even after `kill -9`, upon which it clears everything away.
//!
//! Without a supervisor program (tests of other crates, platforms without one) a
//! task inside pith plays the supervisor over the same socket. It reaches the
//! process group and the living descendants, but not what has left both.

mod attend;
mod jobs;
mod line;
mod supervisor;
mod tree;

pub use jobs::{CommandLine, Job, Jobs, Running};
pub use supervisor::{SUPERVISOR_ARGUMENT, Supervisor, supervisor_main};

use std::time::Duration;

/// Between SIGTERM and SIGKILL when a command is aborted or times out.
pub const ABORT_GRACE: Duration = Duration::from_millis(500);
/// The same when pith ends.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// The same when pith vanished without a word. Nothing may be left a second later, so most of it is for the killing.
const ORPHANED_GRACE: Duration = Duration::from_millis(250);
