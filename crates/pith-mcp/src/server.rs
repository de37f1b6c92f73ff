//! One server of a session: when it runs, what is known of it, its calls.

mod needs;
mod opening;
mod running;
mod signing_in;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pith_agent::ABORTED;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::cache::Cache;
use crate::callers::Caller;
use crate::calls::CallError;
use crate::config::ServerConfig;
use crate::connection::{Connection, REPEAT_PAUSE};
use crate::inputs::Inputs;
use crate::launch::Launch;
use crate::offer::Offer;
use crate::query::Query;
use crate::servers::Updates;
use crate::state::{Failure, State, pause_after};
pub use needs::NeedsStart;
use opening::Opened;

/// How many calls a server gets at a time.
const MAX_CALLS: usize = 8;
/// How many problems of tools are kept beside those of their list.
const MAX_PROBLEMS: usize = 100;
/// How many lines are shown of what a server has written, and of what it has logged.
pub const MAX_REMARKS: usize = 200;

/// Who wants a server to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A call, or the beginning of work: a server that has just failed is left alone for a while.
    Used,
    /// The user or the host.
    Asked,
}

/// A configured server. It costs nothing until it runs.
pub struct Server {
    pub config: ServerConfig,
    pub launch: Arc<Launch>,
    cache: Cache,
    /// Answers what the server asks this session.
    pub inputs: Arc<Inputs>,
    /// Tells the session what has changed.
    updates: Updates,
    inner: Mutex<Inner>,
    /// Changes whenever the state does.
    changed: watch::Sender<u64>,
    /// One for each call that may run.
    pub slots: Semaphore,
    n_calls: AtomicU64,
    /// What the system prompt says of it, once it has.
    about: OnceLock<Option<String>>,
}

struct Inner {
    state: State,
    /// Why it does not run.
    error: Option<String>,
    /// What it offers, from the cache or from its last connection.
    offer: Option<Arc<Offer>>,
    is_offer_old: bool,
    /// What was wrong with single tools.
    problems: Vec<String>,
    connection: Option<Arc<Connection>>,
    /// The task that starts it, or that watches it while it runs.
    task: Option<AbortHandle>,
    n_starts: u64,
    /// Whether this start has taken longer than anybody waits.
    is_overdue: bool,
    n_failures: u32,
    retry_at: Option<Instant>,
    last_use: Instant,
    remarks: Vec<String>,
    /// Cancelled when a sign-in that waits for the user is no longer wanted.
    sign_in: CancellationToken,
}

/// What hosts may know of a server.
pub struct Snapshot {
    pub state: State,
    pub error: Option<String>,
    pub offer: Option<Arc<Offer>>,
    pub problems: Vec<String>,
    pub n_calls: u64,
    pub n_restarts: u64,
}

impl Server {
    pub fn new(config: ServerConfig, launch: Arc<Launch>, cache: Cache, updates: Updates) -> Arc<Self> {
        let kept = cache.read(&config);
        let state = if config.is_enabled { State::Idle } else { State::Disabled };
        let inner = Inner {
            state,
            error: None,
            is_offer_old: kept.as_ref().is_none_or(|kept| kept.is_old),
            offer: kept.map(|kept| Arc::new(kept.offer)),
            problems: Vec::new(),
            connection: None,
            task: None,
            n_starts: 0,
            is_overdue: false,
            n_failures: 0,
            retry_at: None,
            last_use: Instant::now(),
            remarks: Vec::new(),
            sign_in: CancellationToken::new(),
        };
        Arc::new(Server {
            inputs: Arc::new(Inputs::of(&config, &launch)),
            config,
            launch,
            cache,
            updates,
            inner: Mutex::new(inner),
            changed: watch::Sender::new(0),
            slots: Semaphore::new(MAX_CALLS),
            n_calls: AtomicU64::new(0),
            about: OnceLock::new(),
        })
    }

    /// What is known now.
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.inner();
        Snapshot {
            state: inner.state,
            error: inner.error.clone(),
            offer: inner.offer.clone(),
            problems: inner.problems.clone(),
            n_calls: self.n_calls.load(Ordering::Relaxed),
            n_restarts: inner.n_starts.saturating_sub(1),
        }
    }

    /// What it has written beside the protocol, and logged.
    pub fn remarks(&self) -> Vec<String> {
        let inner = self.inner();
        inner.connection.as_ref().map_or_else(|| inner.remarks.clone(), |connection| connection.remarks(MAX_REMARKS))
    }

    /// What the server is good for, in a line: as the user says, else the first line of its instructions. It stays what
    /// it was when it was first asked for, because it is part of the system prompt, which providers keep.
    pub fn about(&self) -> Option<&str> {
        let about = || {
            let offer = self.snapshot().offer.filter(|_| self.config.instructs_model());
            let instructions = offer.and_then(|offer| offer.instructions.clone());
            let first_line = instructions.and_then(|text| text.lines().next().map(str::to_owned));
            self.config.description.clone().or(first_line)
        };
        self.about.get_or_init(about).as_deref()
    }

    /// Returns the connection, starting the server if it does not run.
    pub async fn connect(self: &Arc<Self>, wanted: Wanted) -> Result<Arc<Connection>, Failure> {
        let mut changed = self.changed.subscribe();
        let mut has_waited = false;
        loop {
            if let Some(outcome) = self.step(wanted, has_waited) {
                return outcome;
            }
            has_waited = true;
            // The sender lives as long as the server.
            let _ = changed.changed().await;
        }
    }

    /// Waits for a place among the calls and for the connection. Why there is none names the server.
    pub async fn ready(
        self: &Arc<Self>,
        cancel: &CancellationToken,
    ) -> Result<(SemaphorePermit<'_>, Arc<Connection>), String> {
        let ready = async {
            let slot = self.slots.acquire().await.map_err(|_| "is closed".to_owned())?;
            let connection = self.connect(Wanted::Used).await.map_err(|failure| failure.why)?;
            Ok((slot, connection))
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ABORTED.to_owned()),
            ready = ready => ready.map_err(|why: String| format!("{}: {why}", self.config.name)),
        }
    }

    /// Asks the server for something that changes nothing; once more if the connection was lost or the server was busy.
    pub async fn query(self: &Arc<Self>, query: &Query<'_>, cancel: &CancellationToken) -> Result<Value, String> {
        let mut is_first = true;
        loop {
            let (_slot, connection) = self.ready(cancel).await?;
            match connection.query(&self.caller(None), query, cancel).await {
                Ok(result) => return Ok(result),
                Err(error) if is_first && error.is_passing() => sleep(REPEAT_PAUSE).await,
                Err(error) => return Err(self.explain(&error)),
            }
            is_first = false;
        }
    }

    /// This session, as it makes a request for a tool call or for itself.
    pub fn caller(&self, call: Option<Arc<str>>) -> Caller {
        Caller { inputs: self.inputs.clone(), call }
    }

    /// Says why a request failed, with the name of the server.
    pub fn explain(&self, error: &CallError) -> String {
        match error {
            CallError::Aborted => ABORTED.to_owned(),
            error => format!("{}: {error}", self.config.name),
        }
    }

    /// Returns the connection or why there is none; `None` while the server is starting.
    fn step(self: &Arc<Self>, wanted: Wanted, has_waited: bool) -> Option<Result<Arc<Connection>, Failure>> {
        let mut inner = self.inner();
        if let Some(connection) = inner.connection.clone().filter(|connection| !connection.is_closed()) {
            inner.last_use = Instant::now();
            return Some(Ok(connection));
        }
        let failure = |inner: &Inner| Failure {
            state: inner.state,
            why: inner.error.clone().unwrap_or_else(|| format!("is {}", inner.state.as_str())),
        };
        match inner.state {
            State::Starting => return None,
            State::Disabled => return Some(Err(failure(&inner))),
            State::Failed | State::NeedsAuth | State::NeedsInput => {
                let is_too_soon = match inner.retry_at {
                    Some(retry_at) => Instant::now() < retry_at,
                    None => true,
                };
                if has_waited || (wanted == Wanted::Used && is_too_soon) {
                    return Some(Err(failure(&inner)));
                }
            }
            // A caller starts a server at most once: it has ended again, or somebody has ended it.
            State::Idle | State::Ready if has_waited => {
                return Some(Err(Failure { state: inner.state, why: "ended before it could be used".to_owned() }));
            }
            State::Idle | State::Ready => {}
        }
        inner.connection = None;
        inner.n_starts += 1;
        inner.is_overdue = false;
        inner.task = Some(tokio::spawn(self.clone().start()).abort_handle());
        self.enter(&mut inner, State::Starting, None);
        None
    }

    async fn start(self: Arc<Self>) {
        let began = Instant::now();
        match self.open().await {
            Ok(Opened { connection, changes, offer, problems }) => {
                info!(target: "pith::mcp", server = self.config.name, time = ?began.elapsed(), "ready");
                self.cache.write(&self.config, &offer);
                {
                    let mut inner = self.inner();
                    inner.connection = Some(connection.clone());
                    (inner.n_failures, inner.retry_at) = (0, None);
                    inner.last_use = Instant::now();
                    self.learn(&mut inner, offer, problems);
                    self.enter(&mut inner, State::Ready, None);
                }
                self.watch(connection, changes).await;
            }
            Err(failure) => {
                info!(target: "pith::mcp", server = self.config.name, why = failure.why, "not started");
                let mut inner = self.inner();
                inner.n_failures += 1;
                // Whoever did not say what a server needs is not asked again until somebody wants that.
                let pause = pause_after(inner.n_failures).filter(|_| failure.state != State::NeedsInput);
                inner.retry_at = pause.map(|pause| Instant::now() + pause);
                self.enter(&mut inner, failure.state, Some(failure.why));
            }
        }
    }

    /// Keeps what is wrong with a tool, once.
    pub fn note_problem(&self, problem: String) {
        let mut inner = self.inner();
        if inner.problems.len() < MAX_PROBLEMS && !inner.problems.contains(&problem) {
            inner.problems.push(problem);
        }
    }

    /// Notes a call that begins.
    pub fn count_call(&self) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Switches the server off, or on again.
    pub async fn set_enabled(&self, is_enabled: bool) {
        if is_enabled {
            let mut inner = self.inner();
            if inner.state == State::Disabled {
                self.enter(&mut inner, State::Idle, None);
                self.updates.offers_changed();
            }
            return;
        }
        self.close(State::Disabled).await;
        self.updates.offers_changed();
    }

    /// Gives up the running server, also if other sessions use it; the next start brings another one.
    pub fn retire(&self) {
        if let Some(connection) = &self.inner().connection {
            connection.retire();
        }
    }

    /// Ends the server, and a sign-in that waits; it is started again by whoever needs it.
    pub async fn stop(&self) {
        self.inner().sign_in.cancel();
        self.rest().await;
    }

    async fn rest(&self) {
        let state = if self.inner().state == State::Disabled { State::Disabled } else { State::Idle };
        self.close(state).await;
    }

    async fn close(&self, state: State) {
        let connection = {
            let mut inner = self.inner();
            if let Some(task) = inner.task.take() {
                task.abort();
            }
            (inner.n_failures, inner.retry_at) = (0, None);
            if inner.state != state {
                self.enter(&mut inner, state, None);
            }
            inner.connection.take()
        };
        if let Some(connection) = connection {
            connection.close(&self.inputs).await;
        }
    }

    /// Takes what the server offers now.
    fn learn(&self, inner: &mut Inner, offer: Offer, problems: Vec<String>) {
        let is_new = inner.offer.as_deref() != Some(&offer);
        inner.offer = Some(Arc::new(offer));
        inner.is_offer_old = false;
        inner.problems = problems;
        if is_new {
            self.updates.offers_changed();
        }
    }

    fn enter(&self, inner: &mut Inner, state: State, error: Option<String>) {
        inner.state = state;
        inner.error = error;
        self.updates.state_changed(&self.config, state, inner.error.as_deref());
        self.changed.send_modify(|version| *version += 1);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
