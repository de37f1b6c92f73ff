//! Which answer belongs to which question.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pith_protocol::{CommandError, ErrorCode, Id, Response};
use tokio::sync::oneshot;

/// The data of an answer as JSON, or why there is none.
pub type Answered = Result<String, CommandError>;

/// The questions to one session that have no answer yet. Asked by those who hold the seat, answered by its outbox.
#[derive(Default)]
pub struct Answers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_asked: u64,
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    is_closed: bool,
}

impl Answers {
    /// Returns the id of the next command, and where its answer arrives. The sender is dropped if there will be none.
    pub fn expect(&self) -> (Id, oneshot::Receiver<Answered>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.lock();
        state.n_asked += 1;
        let number = state.n_asked;
        if !state.is_closed {
            state.waiting.insert(number, answer);
        }
        (Id::from(number), answered)
    }

    /// Returns the number of a command whose answer nobody waits for.
    pub fn unwanted(&self) -> u64 {
        let mut state = self.lock();
        state.n_asked += 1;
        state.n_asked
    }

    /// Passes an answer on to whoever asked.
    pub fn take(&self, response: &Response<'_>) {
        let number = response.id.as_ref().and_then(|id| id.get().parse().ok());
        let Some(answer) = number.and_then(|number: u64| self.lock().waiting.remove(&number)) else { return };
        let data = || response.data.as_ref().map_or("null", |data| data.get()).to_owned();
        let text = || response.error.as_deref().unwrap_or("failed").to_owned();
        let code = response.code.unwrap_or(ErrorCode::Internal);
        // Whoever asked may have gone.
        let _ = answer.send(if response.success { Ok(data()) } else { Err(CommandError::new(code, text())) });
    }

    /// Called when the session has ended: nobody is answered any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
