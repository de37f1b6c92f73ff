//! Renewals of logins. A server may replace a refresh token as soon as it was sent, so what it answers has to be stored,
//! whoever still waits for it: each renewal is a task of its own, and the end of a session waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// How long the end of a session or of an engine waits for renewals that are under way.
pub const END_LIMIT: Duration = Duration::from_secs(10);

const BROKE_OFF: &str = "the renewal broke off";
const ENDING: &str = "pith is shutting down";

/// How many renewals are under way in this process. The process, which does not know what its sessions renew, gives
/// them time when it ends.
static N_UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether any session of this process is renewing a login.
pub fn is_renewing() -> bool {
    N_UNDER_WAY.load(Ordering::Acquire) > 0
}

/// What a renewal came to; as many wait for it as need the login.
type Outcome = Shared<BoxFuture<'static, Result<(), String>>>;

/// The renewals of a session, one at a time for each login.
#[derive(Default)]
pub struct Renewals {
    state: Mutex<State>,
    /// Tells those who wait for the end of all when one has ended; lives as long as they do.
    n_running: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    running: HashMap<String, Outcome>,
    /// Until when the end of the session waits; once it is set no renewal begins any more.
    last_moment: Option<Instant>,
}

impl Renewals {
    /// Waits for the renewal of a login, which is begun unless it is under way. Dropping this stops the wait, not the
    /// renewal. A success means that the new login is stored.
    pub async fn join<F>(self: &Arc<Self>, login: &str, renewal: impl FnOnce() -> F) -> Result<(), String>
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let (outcome, mine) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(running) = state.running.get(login) {
                (running.clone(), None)
            } else if state.last_moment.is_some() {
                return Err(ENDING.to_owned());
            } else {
                let (answer, outcome) = oneshot::channel();
                let outcome = outcome.map(|ended| ended.unwrap_or_else(|_| Err(BROKE_OFF.to_owned()))).boxed().shared();
                state.running.insert(login.to_owned(), outcome.clone());
                (outcome, Some((answer, Place::take(self, login))))
            }
        };
        if let Some((answer, place)) = mine {
            let renewal = renewal();
            // Its end is noticed by `place`, also if it panics.
            tokio::spawn(async move {
                let ended = renewal.await;
                drop(place);
                // Nobody may wait for it any more.
                let _ = answer.send(ended);
            });
        }
        outcome.await
    }

    /// Waits until nothing is being renewed, for [`END_LIMIT`] at most. Called before something ends that renewals need.
    pub async fn wait(&self) {
        self.wait_until(Instant::now() + END_LIMIT).await;
    }

    /// Does the same and lets no other renewal begin. However often it is called, the limit counts from the first time.
    pub async fn end(&self) {
        let last_moment = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            *state.last_moment.get_or_insert_with(|| Instant::now() + END_LIMIT)
        };
        self.wait_until(last_moment).await;
    }

    async fn wait_until(&self, moment: Instant) {
        let mut n_running = self.n_running.subscribe();
        // Late ones are left to what ends next.
        let _ = timeout_at(moment, n_running.wait_for(|n_running| *n_running == 0)).await;
    }
}

/// Counts a renewal while it is under way, however that ends.
struct Place {
    renewals: Arc<Renewals>,
    login: String,
}

impl Place {
    fn take(renewals: &Arc<Renewals>, login: &str) -> Self {
        N_UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        renewals.n_running.send_modify(|n_running| *n_running += 1);
        Place { renewals: renewals.clone(), login: login.to_owned() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.renewals.state.lock().unwrap_or_else(PoisonError::into_inner).running.remove(&self.login);
        self.renewals.n_running.send_modify(|n_running| *n_running -= 1);
        N_UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Notify;
    use tokio::task::yield_now;

    /// A renewal that ends when it is told to, and then counts.
    fn renewal(
        begun: &Arc<AtomicUsize>,
        go: &Arc<Notify>,
        done: &Arc<AtomicUsize>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let (begun, go, done) = (begun.clone(), go.clone(), done.clone());
        Box::pin(async move {
            begun.fetch_add(1, Ordering::Relaxed);
            go.notified().await;
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    #[tokio::test]
    async fn a_renewal_outlives_those_who_wait_for_it_and_is_made_once() {
        let renewals = Arc::new(Renewals::default());
        let (begun, go, done) = <(Arc<AtomicUsize>, Arc<Notify>, Arc<AtomicUsize>)>::default();
        let mut first = Box::pin(renewals.join("a", || renewal(&begun, &go, &done)));
        let mut second = Box::pin(renewals.join("a", || renewal(&begun, &go, &done)));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(first);
        let mut end = Box::pin(renewals.end());
        assert!((&mut end).now_or_never().is_none());
        assert!(is_renewing());
        go.notify_one();
        end.await;
        assert_eq!((begun.load(Ordering::Relaxed), done.load(Ordering::Relaxed)), (1, 1));
        assert_eq!(second.await, Ok(()));
        let refused = renewals.join("a", || renewal(&begun, &go, &done)).await;
        assert_eq!((refused, begun.load(Ordering::Relaxed)), (Err(ENDING.to_owned()), 1));
    }

    #[tokio::test]
    async fn a_renewal_that_panics_is_told_and_leaves_its_place() {
        let renewals = Arc::new(Renewals::default());
        let broken = renewals.join("a", || async { panic!("as planned") }).await;
        assert_eq!(broken, Err(BROKE_OFF.to_owned()));
        renewals.wait().await;
        assert_eq!(renewals.join("a", || async { Ok(()) }).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_ten_seconds_at_most() {
        let renewals = Arc::new(Renewals::default());
        let mut hanging = Box::pin(renewals.join("a", std::future::pending));
        assert!((&mut hanging).now_or_never().is_none());
        let began = Instant::now();
        renewals.end().await;
        renewals.end().await;
        assert_eq!(began.elapsed().as_secs(), END_LIMIT.as_secs());
        yield_now().await;
    }
}
