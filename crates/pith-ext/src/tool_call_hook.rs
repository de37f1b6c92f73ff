//! Shows tool calls to extensions: `tool_call` before, `tool_result` after.

use pith_agent::link::Call;
use pith_agent::{BoxFuture, Tool, ToolCallHook, ToolOutput, Verdict};
use pith_protocol::audit::PermissionBy;
use serde_json::{Map, Value, json};

use crate::events::EventName;
use crate::handle::ExtensionHandle;
use crate::hooks::{ToolCallVerdict, ToolResultPatch};

impl ToolCallHook for ExtensionHandle {
    fn admit<'a>(
        &'a self,
        call: &'a Call,
        _tool: &'a dyn Tool,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            match self.tool_call(&call.id, &call.name, arguments).await {
                ToolCallVerdict::Allow(arguments) => Verdict::Run { arguments, by: None },
                ToolCallVerdict::Block { reason, terminate } => {
                    let output = ToolOutput { terminate, ..ToolOutput::error(reason) };
                    Verdict::Refuse { output, by: PermissionBy::Extension }
                }
            }
        })
    }

    fn amends(&self) -> bool {
        self.listens(EventName::ToolResult)
    }

    fn amend<'a>(
        &'a self,
        call: &'a Call,
        input: Map<String, Value>,
        output: &'a ToolOutput,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let event = json!({
                "toolName": call.name,
                "toolCallId": call.id,
                "input": input,
                "content": output.content,
                "details": output.details,
                "isError": output.is_error,
                "usage": output.usage,
            });
            self.tool_result(event).await.map(|patch| patched(output.clone(), patch))
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
