//! A hook that sees, and may change, every tool call.

use std::pin::Pin;

use futures_util::future::BoxFuture;
use pith_protocol::audit::PermissionBy;
use serde_json::{Map, Value};

use crate::link::Call;
use crate::{Tool, ToolOutput};

/// Sees every call before it runs, and every result before anything else does.
pub trait ToolCallHook: Send + Sync {
    /// Decides whether a call may run, and with which arguments. Called for one call after another, before any of them
    /// runs.
    fn admit<'a>(&'a self, call: &'a Call, tool: &'a dyn Tool, arguments: Map<String, Value>)
    -> BoxFuture<'a, Verdict>;

    /// Returns when a call that may run can start; `Err` is its output if it cannot. The other calls of the answer run
    /// meanwhile, and a call that waits here does not count as a running one.
    fn before_start<'a>(
        &'a self,
        _call: &'a Call,
        _tool: &'a dyn Tool,
        _arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<(), ToolOutput>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns whether `amend` is to be called. If not, no arguments are kept for it.
    fn amends(&self) -> bool;

    /// Returns the output that replaces the result of a call with these arguments; `None` keeps it.
    fn amend<'a>(
        &'a self,
        call: &'a Call,
        input: Map<String, Value>,
        output: &'a ToolOutput,
    ) -> BoxFuture<'a, Option<ToolOutput>>;
}

/// What was decided about a call, and by whom.
pub enum Verdict {
    /// Run it with these arguments, which are not checked again. `by` is `None` if nobody decides about it.
    Run { arguments: Map<String, Value>, by: Option<PermissionBy> },
    /// Do not run it.
    Refuse { output: ToolOutput, by: PermissionBy },
    /// Somebody has yet to decide. The calls of the answer that wait for nothing run meanwhile.
    Later(PendingVerdict),
}

/// What a call waits for. Dropped if the call ends before.
pub type PendingVerdict = Pin<Box<dyn Future<Output = Verdict> + Send + Sync>>;
