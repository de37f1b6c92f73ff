//! A hook that sees, and may change, every tool call.

use std::pin::Pin;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::link::Call;
use crate::{Tool, ToolOutput};

/// Sees every call before it runs, and every result before anything else does.
pub trait ToolCallHook: Send + Sync {
    /// Decides whether a call may run, and with which arguments. Called for one call after another, before any of them
    /// runs.
    fn admit<'a>(&'a self, call: &'a Call, tool: &'a dyn Tool, arguments: Map<String, Value>)
    -> BoxFuture<'a, Verdict>;

    /// Returns when an admitted call may start, after what its verdict waits for; `Err` is its output if it may not.
    /// The other calls of the answer run meanwhile, and a call that waits here does not count as a running one.
    fn permit<'a>(
        &'a self,
        _call: &'a Call,
        _tool: &'a dyn Tool,
        _arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<(), ToolOutput>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns whether calls are decided about, by `admit` or `permit`, and not only prepared.
    fn decides(&self) -> bool {
        false
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

/// What a call waits for; `Err` is its output if it may not run. Dropped if the call ends before.
pub type Permission = Pin<Box<dyn Future<Output = Result<(), ToolOutput>> + Send + Sync>>;

/// What happens to a call.
pub enum Verdict {
    /// Run it with these arguments, which are not checked again.
    Run(Map<String, Value>),
    /// Run it with these arguments once this has ended well. The calls of the answer that wait for nothing run
    /// meanwhile.
    Hold(Map<String, Value>, Permission),
    /// Do not run it; this is its output.
    Refuse(ToolOutput),
}
