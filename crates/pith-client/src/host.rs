//! What a host lends to pith: tools, and answers to dialogs.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pith_protocol::host::{UiAnswer, UiRequest};
use pith_protocol::host_tool::HostToolInput;
use pith_protocol::{Block, HostReply};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::connection::encode;

type Handler<A> = Pin<Box<dyn Future<Output = A> + Send>>;
/// Answers a dialog.
pub(crate) type Dialog = Arc<dyn Fn(UiRequest) -> Handler<UiAnswer> + Send + Sync>;
type Function = Arc<dyn Fn(Map<String, Value>, ToolContext) -> Handler<Result<ToolOutput, String>> + Send + Sync>;

/// A function of this program that the model can call.
#[derive(Clone)]
pub struct HostTool {
    name: String,
    description: String,
    parameters: Value,
    label: Option<String>,
    pub(crate) call: Function,
}

impl HostTool {
    /// Makes a tool. `parameters` is a JSON Schema; arguments that do not fit never arrive. An error is a failed call,
    /// which the model is told. A call that is withdrawn drops the future.
    pub fn new<F, A, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        call: F,
    ) -> HostTool
    where
        F: Fn(Map<String, Value>, ToolContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<ToolOutput>,
        E: Display,
    {
        let call: Function = Arc::new(move |arguments, context| {
            let result = call(arguments, context);
            Box::pin(async move { result.await.map(Into::into).map_err(|error| error.to_string()) })
        });
        HostTool { name: name.into(), description: description.into(), parameters, label: None, call }
    }

    /// Sets what people see instead of the name.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tool as `set_host_tools` takes it.
    pub(crate) fn definition(&self) -> HostToolInput {
        HostToolInput {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            label: self.label.clone(),
            hidden: false,
        }
    }
}

/// What a tool gives back: content blocks, most often one text.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput(pub Vec<Block>);

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        ToolOutput(vec![Block::text(text)])
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        ToolOutput(vec![Block::text(text)])
    }
}

impl From<Vec<Block>> for ToolOutput {
    fn from(blocks: Vec<Block>) -> Self {
        ToolOutput(blocks)
    }
}

impl ToolOutput {
    pub(crate) fn into_result(self) -> Value {
        json!({"content": self.0})
    }
}

/// What a tool can do while it runs.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The call, as `tool_execution_start` names it.
    pub tool_call_id: String,
    /// As pith knows the call.
    pub(crate) id: String,
    /// To the writer. Weak, because a tool that still runs must not keep stdin open.
    pub(crate) outgoing: mpsc::WeakUnboundedSender<Vec<u8>>,
}

impl ToolContext {
    /// Reports progress: the whole result so far.
    pub fn update(&self, result: impl Into<ToolOutput>) {
        let partial_result = Some(result.into().into_result());
        if let Some(outgoing) = self.outgoing.upgrade() {
            // The writer is gone only when pith is.
            outgoing.send(encode(&HostReply::ToolUpdate { id: Some(self.id.clone()), partial_result })).ok();
        }
    }
}
