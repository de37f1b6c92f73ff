//! Someone with a say in every tool call.

use serde_json::{Map, Value};

use crate::ToolOutput;
use crate::link::Call;
use crate::tool::Waits;

/// Sees every call that could run before it does, and every result before anyone else.
pub trait ToolCallHook: Send + Sync {
    /// Whether a call may run. Asked for one call after another, before any of them runs.
    fn admit<'a>(&'a self, call: &'a Call, arguments: Map<String, Value>) -> Waits<'a, Verdict>;

    /// Whether results are of interest. If not, nothing is kept for `amend`.
    fn amends(&self) -> bool;

    /// What a call that ran with these arguments gave instead; `None` leaves it as it is.
    fn amend<'a>(
        &'a self,
        call: &'a Call,
        input: Map<String, Value>,
        output: &'a ToolOutput,
    ) -> Waits<'a, Option<ToolOutput>>;
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It runs, with these arguments. They are not checked again.
    Run(Map<String, Value>),
    /// It ends with this output and does not run.
    Refuse(ToolOutput),
}
