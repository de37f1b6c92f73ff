//! What a tool is to the loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pith_protocol::{Block, ToolSpec, Usage};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// Something the model can ask for.
pub trait Tool: Send + Sync {
    /// Name, description and parameters as the model sees them.
    fn spec(&self) -> &ToolSpec;

    /// Short name for people.
    fn label(&self) -> &str {
        &self.spec().name
    }

    /// One line for the system prompt's tool list.
    fn snippet(&self) -> Option<&str> {
        None
    }

    /// Rules for the system prompt while the tool is active.
    fn rules(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Calls of a batch with such a tool run one after the other.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Calls run programs, and it is nothing but chance which of several quick ones ends first.
    fn runs_programs(&self) -> bool {
        false
    }

    /// Mends argument shapes models are known to get wrong, before validation.
    fn adapt(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// The same where the mending takes waiting, before `adapt`; `None` where it does not. `Err` is what the model reads.
    fn prepare(&self, _arguments: &Map<String, Value>) -> Option<Waits<'_, Result<Map<String, Value>, String>>> {
        None
    }

    /// Runs the call. Must return soon after `context.cancel` fires, with its abort text.
    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> Waits<'static, ToolOutput>;
}

/// Something that takes time, behind a trait.
pub type Waits<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a running call is given.
#[derive(Clone)]
pub struct ToolContext {
    pub call_id: Arc<str>,
    /// Fires on abort and shutdown.
    pub cancel: CancellationToken,
    /// Takes progress; each update replaces the one before.
    pub update: ToolUpdate,
}

/// Receives the cumulative result so far. Cheap to call, never blocks.
pub type ToolUpdate = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// The result of a call, or the part of it known so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Block>,
    pub details: Option<Value>,
    pub is_error: bool,
    /// Ends the run after this batch if every result of it says so.
    pub terminate: bool,
    /// Model usage spent inside the tool.
    pub usage: Option<Usage>,
}

impl ToolOutput {
    /// A plain success.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { content: vec![Block::text(text)], ..ToolOutput::default() }
    }

    /// A failure the model reads; failures carry empty details.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput {
            content: vec![Block::text(text)],
            details: Some(Value::Object(Map::new())),
            is_error: true,
            ..ToolOutput::default()
        }
    }

    /// The same with details for hosts.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}
