//! Calls of host tools that the host has not answered yet.

use std::sync::Arc;

use pith_agent::{ToolOutput, ToolUpdate};
use tokio::sync::oneshot;

/// The error of pending calls when the host disconnects.
pub(crate) const DISCONNECTED: &str = "RPC client disconnected before host tool execution completed";

/// The pending calls.
#[derive(Default)]
pub(crate) struct PendingCalls {
    calls: Vec<PendingCall>,
}

/// A call that the host has not answered.
pub(crate) struct PendingCall {
    /// The id of the `host_tool_call` frame, which is not the id of the tool call.
    pub id: String,
    pub tool: Arc<str>,
    /// Receives progress.
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

    /// Removes a call: later replies to it are ignored.
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
    /// Sends the result to the tool, if it still waits.
    pub fn end(self, output: ToolOutput) {
        let _ = self.answer.send(output);
    }
}
