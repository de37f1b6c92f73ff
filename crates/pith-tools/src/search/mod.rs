//! The search tools: `grep`, `find` and `ls`.
//!
//! ripgrep's engine and ignore rules are linked in; no program is run. Results are sorted by path, then line, so that
//! the same call always gives the same answer, also under a limit.

mod collate;
pub mod find;
pub mod grep;
mod listing;
pub mod ls;
mod matches;
mod walk;

use std::sync::Arc;

use pith_agent::{BoxFuture, Effect, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::tool::{Outcome, output};
use crate::workbench::Workbench;

/// A tool that only reads: a plain function on a thread, which an abort abandons.
pub struct SearchTool {
    spec: ToolSpec,
    snippet: &'static str,
    workbench: Arc<Workbench>,
    search: fn(&Workbench, &Arguments, &CancellationToken) -> Outcome,
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some(self.snippet)
    }

    fn reach(&self) -> Reach {
        Reach::Nothing
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or(".");
        Effect::Read(self.workbench.base.resolve(path))
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let workbench = Arc::clone(&self.workbench);
            let work = move |cancel: &CancellationToken| (self.search)(&self.workbench, &Arguments(arguments), cancel);
            output(workbench.run_read_only(&context.cancel, work).await)
        })
    }
}
