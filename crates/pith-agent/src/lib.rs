//! The agent loop: one model answer, its tool calls, and again.
//!
//! Knows nothing of HTTP, files, JSON lines or settings; it is driven through
//! the traits here and can be tested with closures.

pub mod arguments;
pub mod tool;

pub use arguments::ArgumentSchema;
pub use tool::{Tool, ToolContext, ToolOutput, ToolUpdate};

use pith_protocol::{AssistantEvent, LlmCall};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Whatever answers as a model.
///
/// The channel is the stream of [`AssistantEvent`]s, ended by exactly one
/// `End`. Implementations own their task: a cancelled token must lead to an
/// `End` with `stopReason` `aborted` at once. A closed channel without `End`
/// means the provider panicked.
pub trait ModelClient: Send + Sync {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent>;
}
