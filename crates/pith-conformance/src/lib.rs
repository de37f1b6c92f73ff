//! The conformance kit: scenarios from the specification of the protocol, played against any program that speaks it,
//! with a scripted model behind that program. `pith conformance` runs it; the tests of pith share its parts.
//!
//! Nothing here depends on how pith is built.

pub mod home;
pub mod matching;
mod peer;
mod play;
mod rules;
mod scenario;
pub mod server;

pub use play::{Outcome, Target};
pub use scenario::{Scenario, scenarios};

use std::time::Duration;

/// How long anything is waited for before it counts as missing; `PITH_TEST_PATIENCE` (seconds) overrides it. Long
/// enough for a machine under heavy load: only what fails waits so long.
pub fn timeout() -> Duration {
    let seconds = std::env::var("PITH_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}
