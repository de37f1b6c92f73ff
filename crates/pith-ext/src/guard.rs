//! Tools under the eyes of extensions: `tool_call` before, `tool_result` after.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pith_agent::{Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};

use crate::events::EventName;
use crate::handle::ExtensionHandle;
use crate::hooks::{ToolCallVerdict, ToolResultPatch};

/// Any tool, called only if extensions let it be called.
struct GuardedTool {
    handle: ExtensionHandle,
    inner: Arc<dyn Tool>,
}

impl ExtensionHandle {
    /// The same tool with its calls passed by the extensions. Costs nothing while nobody listens.
    pub fn guard(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        Arc::new(GuardedTool { handle: self.clone(), inner: tool })
    }
}

impl Tool for GuardedTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn label(&self) -> &str {
        self.inner.label()
    }

    fn snippet(&self) -> Option<&str> {
        self.inner.snippet()
    }

    fn rules(&self) -> &[&'static str] {
        self.inner.rules()
    }

    fn is_sequential(&self) -> bool {
        self.inner.is_sequential()
    }

    fn adapt(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.inner.adapt(arguments)
    }

    fn run(
        self: Arc<Self>,
        arguments: Map<String, Value>,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolOutput> + Send>> {
        Box::pin(async move {
            let handle = &self.handle;
            let name = self.spec().name.clone();
            let call_id = context.call_id.clone();
            let arguments = match handle.tool_call(&call_id, &name, arguments).await {
                ToolCallVerdict::Allow(arguments) => arguments,
                ToolCallVerdict::Block { reason, terminate } => {
                    return ToolOutput { terminate, ..ToolOutput::error(reason) };
                }
            };
            let input = handle.listens(EventName::ToolResult).then(|| arguments.clone());
            let output = self.inner.clone().run(arguments, context).await;
            let Some(input) = input else { return output };
            let event = json!({
                "toolCallId": call_id,
                "toolName": name,
                "input": input,
                "content": output.content,
                "details": output.details,
                "isError": output.is_error,
                "usage": output.usage,
            });
            match handle.tool_result(event).await {
                Some(patch) => patched(output, patch),
                None => output,
            }
        })
    }
}

fn patched(output: ToolOutput, patch: ToolResultPatch) -> ToolOutput {
    ToolOutput {
        content: patch.content.unwrap_or(output.content),
        details: patch.details.or(output.details),
        is_error: patch.is_error.unwrap_or(output.is_error),
        terminate: output.terminate,
        usage: patch.usage.and_then(|usage| serde_json::from_value(usage).ok()).or(output.usage),
    }
}
