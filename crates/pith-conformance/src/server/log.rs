//! Records requests and how each answer ended.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::wire::Api;

/// One request to the model.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Lower-case names, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// `{"unparsed": text}` if it was not JSON.
    pub body: Value,
    /// `None` for requests that are no model calls.
    pub api: Option<Api>,
    /// `main` or `route<n>`.
    pub route: String,
}

impl Request {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Completely, including scripted HTTP errors and early ends.
    Sent,
    /// The client hung up before the end.
    ClientClosed,
    /// The fault cut or reset the connection.
    Broken,
    /// A scripted hang ran out.
    HangOver,
}

/// The record of a server, on which tests wait.
#[derive(Default)]
pub(super) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    outcomes: Vec<Option<Outcome>>,
    held: HashSet<usize>,
    released: HashSet<usize>,
    others: Vec<Request>,
}

impl Log {
    pub(super) fn add(&self, request: Request) -> usize {
        let mut state = self.lock();
        state.requests.push(request);
        state.outcomes.push(None);
        self.changed.notify_all();
        state.requests.len() - 1
    }

    pub(super) fn add_other(&self, request: Request) {
        self.lock().others.push(request);
        self.changed.notify_all();
    }

    pub(super) fn finish(&self, index: usize, outcome: Outcome) {
        self.lock().outcomes[index] = Some(outcome);
        self.changed.notify_all();
    }

    pub(super) fn mark_held(&self, index: usize) {
        self.lock().held.insert(index);
        self.changed.notify_all();
    }

    pub(super) fn release(&self, index: usize) {
        self.lock().released.insert(index);
    }

    pub(super) fn is_released(&self, index: usize) -> bool {
        self.lock().released.contains(&index)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    pub(super) fn others(&self) -> Vec<Request> {
        self.lock().others.clone()
    }

    pub(super) fn wait_request(&self, index: usize, timeout: Duration) -> Result<Request, String> {
        self.wait(&format!("request {index}"), timeout, |state| state.requests.get(index).cloned())
    }

    pub(super) fn wait_outcome(&self, index: usize, timeout: Duration) -> Result<Outcome, String> {
        self.wait(&format!("the end of answer {index}"), timeout, |state| *state.outcomes.get(index)?)
    }

    pub(super) fn wait_held(&self, index: usize, timeout: Duration) -> Result<(), String> {
        self.wait(&format!("answer {index} to be held"), timeout, |state| state.held.contains(&index).then_some(()))
    }

    fn wait<T>(&self, what: &str, timeout: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&state) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let paths: Vec<_> = state.requests.iter().map(|request| request.path.as_str()).collect();
                return Err(format!(
                    "waited {timeout:?} for {what}; the model server saw {paths:?}, ends {:?}",
                    state.outcomes
                ));
            }
            state = self.changed.wait_timeout(state, left).expect("no holder panics").0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while waiting has already failed; the record stays readable.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
