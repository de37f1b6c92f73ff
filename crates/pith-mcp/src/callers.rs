//! Who uses a connection, and who is asked what its server wants to know: in the older era a request of a server does
//! not say for which call it is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::inputs::Inputs;

/// Who makes a request.
#[derive(Clone)]
pub struct Caller {
    /// Answers for the session that makes it.
    pub inputs: Arc<Inputs>,
    /// The tool call it is made for.
    pub call: Option<Arc<str>>,
}

/// The sessions that use a connection, and their requests that are under way.
#[derive(Default)]
pub struct Callers {
    state: Mutex<State>,
    /// Told by every request that ends.
    request_ended: Notify,
}

#[derive(Default)]
struct State {
    sessions: Vec<Arc<Inputs>>,
    requests: HashMap<u64, Caller>,
    n_requests: u64,
    /// Whether it is left to those who use it.
    is_retired: bool,
}

impl Callers {
    /// Notes that a session uses the connection; `false` if no more may.
    pub fn join(&self, inputs: &Arc<Inputs>) -> bool {
        let mut state = self.state();
        if !state.is_retired {
            state.sessions.push(inputs.clone());
        }
        !state.is_retired
    }

    /// Notes that a session does not use the connection any more. Returns whether it was the last one; then no other
    /// can come.
    pub fn leave(&self, inputs: &Arc<Inputs>) -> bool {
        let mut state = self.state();
        state.sessions.retain(|other| !Arc::ptr_eq(other, inputs));
        state.is_retired |= state.sessions.is_empty();
        state.sessions.is_empty()
    }

    /// Lets no more sessions use the connection.
    pub fn retire(&self) {
        self.state().is_retired = true;
    }

    /// Notes a request that is under way until the returned value is dropped.
    pub fn begin(&self, caller: &Caller) -> UnderWay<'_> {
        let mut state = self.state();
        state.n_requests += 1;
        let number = state.n_requests;
        state.requests.insert(number, caller.clone());
        UnderWay { callers: self, number }
    }

    /// Waits until no request is under way.
    pub async fn idle(&self) {
        loop {
            // Made before the look, so that no end is missed in between.
            let ended = self.request_ended.notified();
            if self.state().requests.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Returns who is asked what the server wants to know: the session whose requests are under way, or the only one
    /// that uses the server. `None` if that may be several.
    pub fn asked(&self) -> Option<Caller> {
        let state = self.state();
        let mut requests = state.requests.values();
        let Some(first) = requests.next() else {
            let [only] = state.sessions.as_slice() else { return None };
            return Some(Caller { inputs: only.clone(), call: None });
        };
        let mut caller = first.clone();
        for other in requests {
            if !Arc::ptr_eq(&other.inputs, &caller.inputs) {
                return None;
            }
            caller.call = None;
        }
        Some(caller)
    }

    /// All sessions that use the connection.
    pub fn sessions(&self) -> Vec<Arc<Inputs>> {
        self.state().sessions.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way.
pub struct UnderWay<'a> {
    callers: &'a Callers,
    number: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.callers.state().requests.remove(&self.number);
        self.callers.request_ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::Questions;

    fn session() -> Arc<Inputs> {
        Arc::new(Inputs { questions: Questions::of("git", None), sampling: None, roots: Vec::new() })
    }

    #[test]
    fn the_session_that_a_server_asks_is_known_or_nobody_is_asked() {
        let (callers, one, other) = (Callers::default(), session(), session());
        let request = |inputs: &Arc<Inputs>, call: &str| Caller { inputs: inputs.clone(), call: Some(call.into()) };
        let asked = || {
            callers.asked().map(|caller| (Arc::ptr_eq(&caller.inputs, &one), caller.call.map(|call| call.to_string())))
        };
        assert!(callers.join(&one));
        assert_eq!(asked(), Some((true, None)), "there is only one");
        assert!(callers.join(&other));
        assert_eq!(asked(), None, "it may be either");
        let first = callers.begin(&request(&one, "1"));
        assert_eq!(asked(), Some((true, Some("1".to_owned()))));
        let second = callers.begin(&request(&one, "2"));
        assert_eq!(asked(), Some((true, None)), "it may be either call");
        let third = callers.begin(&request(&other, "3"));
        assert_eq!(asked(), None);
        drop((first, second));
        assert_eq!(asked(), Some((false, Some("3".to_owned()))));
        drop(third);
        assert_eq!(asked(), None);
        assert!(!callers.leave(&one));
        assert_eq!(asked(), Some((false, None)), "the other one is left");
        assert!(callers.leave(&other) && !callers.join(&one), "it is closed");
    }

    #[test]
    fn nobody_joins_what_is_retired() {
        let (callers, one) = (Callers::default(), session());
        assert!(callers.join(&one));
        callers.retire();
        assert!(!callers.join(&session()) && callers.leave(&one));
    }
}
