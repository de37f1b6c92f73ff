//! What becomes of requests to a server: their progress, and why one has no result.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_agent::ABORTED;
use rmcp::model::{NumberOrString, ProgressNotificationParam};
use tokio::sync::mpsc;

/// Who hears of the progress of which call.
#[derive(Default)]
pub struct Routes(Mutex<HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>>);

impl Routes {
    /// Passes a report on; reports of calls that have ended are dropped.
    pub fn pass(&self, progress: ProgressNotificationParam) {
        if let Some(route) = self.all().get(&progress.progress_token.0) {
            let _ = route.send(progress);
        }
    }

    pub fn all(&self) -> MutexGuard<'_, HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub enum CallError {
    /// The server refused it.
    Refused {
        code: i32,
        message: String,
    },
    Aborted,
    TimedOut(Duration),
    /// The connection is gone; the text says what is known.
    Lost(String),
    /// What the server sent is no answer.
    Unusable(String),
}

impl CallError {
    /// Whether the same request may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        matches!(self, CallError::Lost(_))
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::Refused { code, message } => write!(f, "{message} ({code})"),
            CallError::Aborted => f.write_str(ABORTED),
            CallError::TimedOut(limit) => write!(f, "no answer within {} s", limit.as_secs_f64()),
            CallError::Lost(why) | CallError::Unusable(why) => f.write_str(why),
        }
    }
}
