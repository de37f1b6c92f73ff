//! A hook that sees, and may change, every tool call.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::link::Call;
use crate::{Tool, ToolOutput};

/// Sees every call before it runs, and every result before anything else does.
pub trait ToolCallHook: Send + Sync {
    /// Decides whether a call may run, and with which arguments. Called for one call after another, before any of them
    /// runs.
    fn admit<'a>(&'a self, call: &'a Call, arguments: Map<String, Value>) -> BoxFuture<'a, Verdict>;

    /// Returns when an admitted call may start; `Err` is its output if it may not. The other calls of the answer run
    /// meanwhile, and a call that waits here does not count as a running one.
    fn permit<'a>(
        &'a self,
        _call: &'a Call,
        _tool: &'a dyn Tool,
        _arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<(), ToolOutput>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns whether `permit` decides about calls, and not only prepares them.
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

/// What happens to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Run it with these arguments, which are not checked again.
    Run(Map<String, Value>),
    /// Do not run it; this is its output.
    Refuse(ToolOutput),
}
