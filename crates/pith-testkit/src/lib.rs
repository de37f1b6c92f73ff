//! For tests and benchmarks only: a driver for hosts, and transcripts that specify what a host sees. The scripted model
//! behind them is that of `pith-conformance`.
//!
//! Nothing here depends on how pith is built; any program with the protocol on stdin and stdout can be driven.

mod dice;
mod guarded;
pub mod host;
mod normal;
mod output;
pub mod packages;
pub mod process;
pub mod schema;
mod shell_server;
mod skip;
pub mod terminal;
pub mod tmux;
pub mod transcript;

pub use dice::Dice;
pub use guarded::{GuardedServer, RenewalStep};
pub use host::{Host, HostBuilder, InProcess, Signal};
pub use normal::Normal;
pub use output::Output;
pub use pith_conformance::home::{SessionFile, TempHome};
pub use pith_conformance::server::{Api, Block, Fault, ModelServer, Script, Turn};
pub use pith_conformance::{home, server, timeout};
pub use shell_server::shell_server;
pub use skip::{has, skip};
pub use terminal::Terminal;
pub use tmux::Tmux;

use std::thread;
use std::time::{Duration, Instant};

/// Waits for a condition by polling.
#[track_caller]
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout();
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {:?} in vain: {what}", timeout());
        thread::sleep(Duration::from_millis(5));
    }
}
