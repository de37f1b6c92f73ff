//! What happens to a running server outside of calls: its end, changed lists, pings, a long silence.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info};

use super::{MAX_CALLS, MAX_REMARKS, Server, Wanted};
use crate::config::Lifecycle;
use crate::connection::Connection;
use crate::state::State;

/// Changes of a list often come several in a row.
const LIST_CHANGE_QUIET: Duration = Duration::from_millis(250);
/// A server that never stops announcing changes is asked after this time.
const LONGEST_LIST_CHANGE: Duration = Duration::from_secs(5);
/// How often a server that is kept alive is pinged, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// After so many pings without an answer it is started again.
const MAX_MISSES: u32 = 2;

impl Server {
    /// Serves what happens to a running server outside of calls: its end, changed lists, a long silence.
    pub(super) async fn watch(self: &Arc<Self>, connection: Arc<Connection>, mut changes: watch::Receiver<u64>) {
        let (mut warnings, mut has_asked) = (pin!(connection.ask_for_warnings()), false);
        let (mut silent, mut is_silent) = (pin!(self.until_silent(&connection)), false);
        loop {
            let idle_at = self.idle_at();
            tokio::select! {
                () = connection.ended() => break,
                () = &mut warnings, if !has_asked => has_asked = true,
                () = &mut silent => {
                    info!(target: "pith::mcp", server = self.config.name, "does not answer pings");
                    is_silent = true;
                    connection.retire();
                    break;
                }
                Ok(()) = changes.changed() => {
                    let quiet = async { while let Ok(Ok(())) = timeout(LIST_CHANGE_QUIET, changes.changed()).await {} };
                    let _ = timeout(LONGEST_LIST_CHANGE, quiet).await;
                    if let Ok((offer, problems)) = connection.offer().await {
                        self.cache.write(&self.config, &offer);
                        self.learn(&mut self.inner(), offer, problems);
                    }
                }
                () = until(idle_at) => {
                    let is_busy = self.slots.available_permits() < MAX_CALLS;
                    if !is_busy && self.idle_at().is_some_and(|at| at <= Instant::now()) {
                        break;
                    }
                    if is_busy {
                        self.inner().last_use = Instant::now();
                    }
                }
            }
        }
        debug!(target: "pith::mcp", server = self.config.name, "ends");
        let sign_in_wanted = connection.sign_in_wanted(&self.config);
        let wants_sign_in = sign_in_wanted.is_some();
        {
            let mut inner = self.inner();
            // A call that found the connection closed may have begun to start the server again.
            if inner.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, &connection)) {
                inner.remarks = connection.remarks(MAX_REMARKS);
                inner.connection = None;
                match sign_in_wanted {
                    Some(failure) => self.enter(&mut inner, failure.state, Some(failure.why)),
                    None => self.enter(&mut inner, State::Idle, None),
                }
            }
        }
        if wants_sign_in {
            // One tool may want more than others, whose calls go on.
            connection.retire();
            connection.close_after_calls(&self.inputs).await;
        } else {
            connection.close(&self.inputs).await;
        }
        if is_silent {
            // Starts a task of its own, which takes the place of this one.
            let _ = self.step(Wanted::Used, false);
        }
    }

    /// Pings a server that is kept alive; returns when it has left two pings in a row without an answer. Servers of the
    /// newer era have no pings.
    async fn until_silent(&self, connection: &Connection) {
        if self.config.lifecycle != Lifecycle::KeepAlive || !connection.is_legacy() {
            return std::future::pending().await;
        }
        let mut n_misses = 0;
        while n_misses < MAX_MISSES {
            sleep(PING_INTERVAL).await;
            n_misses = if connection.answers_ping(PING_INTERVAL).await { 0 } else { n_misses + 1 };
        }
    }

    fn idle_at(&self) -> Option<Instant> {
        let idle = self.config.idle_timeout.filter(|_| self.config.lifecycle != Lifecycle::KeepAlive)?;
        Some(self.inner().last_use + idle)
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
