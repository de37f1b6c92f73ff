//! Questions put to the host that it has not answered yet: who waits, and for what.

use std::sync::Arc;

use pith_agent::{ToolOutput, ToolUpdate};
use tokio::sync::oneshot;

/// What a pending call ends with when the host is gone.
pub(crate) const DISCONNECTED: &str = "RPC client disconnected before host tool execution completed";

/// Calls of host tools without a result.
#[derive(Default)]
pub(crate) struct PendingCalls {
    calls: Vec<PendingCall>,
}

/// One call in the host's hands.
pub(crate) struct PendingCall {
    /// The id of the question, which is not the id of the tool call.
    pub id: String,
    pub tool: Arc<str>,
    /// Takes progress.
    pub update: ToolUpdate,
    /// Received by the tool; closed when it has given up waiting.
    pub answer: oneshot::Sender<ToolOutput>,
}

impl PendingCalls {
    pub fn add(&mut self, call: PendingCall) {
        self.calls.push(call);
    }

    pub fn get(&self, id: &str) -> Option<&PendingCall> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// Takes a call out: what the host says about it later is ignored.
    pub fn take(&mut self, id: &str) -> Option<PendingCall> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.swap_remove(at))
    }

    /// Ends all calls with the same failure.
    pub fn fail_all(&mut self, why: &str) {
        self.calls.drain(..).for_each(|call| call.end(ToolOutput::error(why)));
    }
}

impl PendingCall {
    /// Hands the result over; a tool that no longer waits needs none.
    pub fn end(self, output: ToolOutput) {
        let _ = self.answer.send(output);
    }
}
