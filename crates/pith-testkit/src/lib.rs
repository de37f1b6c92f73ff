//! For tests and benchmarks only: a scripted model, a driver for hosts, and transcripts that specify what a host sees.
//!
//! Nothing here depends on how pith is built; any program with the protocol on stdin and stdout can be driven.

pub mod home;
pub mod host;
mod normal;
mod output;
pub mod packages;
pub mod process;
pub mod schema;
pub mod server;
mod skip;
pub mod terminal;
pub mod transcript;

pub use home::{SessionFile, TempHome};
pub use host::{Host, HostBuilder, InProcess, Signal};
pub use normal::Normal;
pub use output::Output;
pub use server::{Api, Block, Fault, ModelServer, Script, Turn};
pub use skip::skip;
pub use terminal::Terminal;

use std::thread;
use std::time::{Duration, Instant};

/// How long anything is waited for before the test fails; `PITH_TEST_PATIENCE` (seconds) overrides it. Long enough for
/// a machine under heavy load: only a test that fails waits so long.
pub fn timeout() -> Duration {
    let seconds = std::env::var("PITH_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}

/// Waits for a condition by polling.
#[track_caller]
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout();
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {:?} in vain: {what}", timeout());
        thread::sleep(Duration::from_millis(5));
    }
}
