//! Where a server stands, and what follows from a failure.

use std::time::Duration;

/// After so many failures in a row a server is tried again only if somebody asks for it.
const MAX_TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The state of a server, as hosts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Disabled,
    /// Configured and not running.
    Idle,
    Starting,
    Ready,
    NeedsAuth,
    NeedsInput,
    Failed,
}

impl State {
    /// The word that hosts see.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Disabled => "disabled",
            State::Idle => "idle",
            State::Starting => "starting",
            State::Ready => "ready",
            State::NeedsAuth => "needs_auth",
            State::NeedsInput => "needs_input",
            State::Failed => "failed",
        }
    }
}

/// Why a server does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub state: State,
    pub why: String,
}

impl Failure {
    pub fn failed(why: impl Into<String>) -> Self {
        Failure { state: State::Failed, why: why.into() }
    }

    pub fn needs_auth(why: impl Into<String>) -> Self {
        Failure { state: State::NeedsAuth, why: why.into() }
    }

    pub fn needs_input(why: impl Into<String>) -> Self {
        Failure { state: State::NeedsInput, why: why.into() }
    }
}

/// Returns how long to wait after so many failures in a row; `None` if only a request starts the server again.
pub fn pause_after(n_failures: u32) -> Option<Duration> {
    let doubled = FIRST_PAUSE.saturating_mul(1 << n_failures.saturating_sub(1).min(16));
    (n_failures < MAX_TRIES).then_some(doubled.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let seconds: Vec<_> = (1..=6).map(|n_failures| pause_after(n_failures).map(|pause| pause.as_secs())).collect();
        assert_eq!(seconds, [Some(1), Some(2), Some(4), Some(8), None, None]);
    }
}
