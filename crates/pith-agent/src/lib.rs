//! The agent loop: one answer of the model, its tool calls, and again.
//!
//! Knows nothing of HTTP, files, JSON lines or settings; it is driven through the traits here and can be tested with
//! closures.

pub mod run;

mod answer;
pub mod arguments;
mod batch;
pub mod blocking;
pub mod control;
mod layer;
pub mod link;
mod prepare;
mod progress;
mod references;
pub mod tool;
pub mod tool_call_hook;
pub mod toolset;
pub mod trace;

pub use arguments::{ArgumentSchema, is_checkable, mismatch};
pub use blocking::blocking;
pub use control::{CallControl, Hold};
pub use futures_util::future::BoxFuture;
pub use layer::ToolLayer;
pub use link::{CallOverrides, Link, ModelClient, Queue, RunEvent, Turn};
pub use prepare::ABORTED;
pub use references::References;
pub use run::{Opening, run};
pub use tool::{Effect, Exposure, Hints, Origin, Reach, Tool, ToolContext, ToolOutput, ToolUpdate, is_named_by};
pub use tool_call_hook::{PendingVerdict, ToolCallHook, Verdict};
pub use toolset::Toolset;
pub use trace::{TraceContext, Tracer};

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds, as messages carry them.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
}
