//! Tools of extensions, as the agent loop sees them.

use std::sync::Arc;

use pith_agent::{ABORTED, BoxFuture, Tool, ToolContext, ToolOutput};
use pith_protocol::{Block, ToolSpec, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::handle::{EngineWait, ExtensionHandle, read};
use crate::registry::{ExecutionMode, ToolInfo};
use crate::shared::{CallError, Progress};

/// A tool registered by an extension.
pub struct ExtensionTool {
    handle: ExtensionHandle,
    info: Arc<ToolInfo>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsOutput {
    #[serde(default)]
    content: Vec<Block>,
    /// `null` is a valid value that a tool can return.
    #[serde(default, deserialize_with = "present")]
    details: Option<Value>,
    usage: Option<Usage>,
    #[serde(default)]
    terminate: bool,
    #[serde(default)]
    is_error: bool,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl From<JsOutput> for ToolOutput {
    fn from(output: JsOutput) -> Self {
        ToolOutput {
            content: output.content,
            details: output.details,
            is_error: output.is_error,
            terminate: output.terminate,
            usage: output.usage,
        }
    }
}

impl ExtensionTool {
    /// Creates a tool from the handle's registry.
    pub fn new(handle: ExtensionHandle, info: Arc<ToolInfo>) -> Self {
        let spec = ToolSpec {
            name: info.name.as_str().into(),
            description: info.description.as_str().into(),
            parameters: info.parameters.clone(),
            prefer_strict: info.strict,
        };
        ExtensionTool { handle, info, spec }
    }

    /// Returns everything the extension registered about it.
    pub fn info(&self) -> &Arc<ToolInfo> {
        &self.info
    }
}

impl Tool for ExtensionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        &self.info.label
    }

    fn snippet(&self) -> Option<&str> {
        self.info.prompt_snippet.as_deref()
    }

    fn rules(&self) -> Vec<&str> {
        self.info.prompt_guidelines.iter().map(String::as_str).collect()
    }

    fn prepare(&self, arguments: &Map<String, Value>) -> Option<BoxFuture<'_, Result<Map<String, Value>, String>>> {
        let arguments = self.info.prepares.then(|| arguments.clone())?;
        Some(Box::pin(self.handle.prepare_arguments(&self.info.name, arguments)))
    }

    fn is_sequential(&self) -> bool {
        self.info.execution_mode == ExecutionMode::Sequential
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let update = context.update.clone();
            let report = move |output: ToolOutput| update(output);
            self.handle.run_tool(&self.info.name, &context.call_id, arguments, &context.cancel, report).await
        })
    }
}

impl ExtensionHandle {
    /// Returns all tools registered now.
    pub fn tools(&self) -> Vec<Arc<ExtensionTool>> {
        let registry = self.registry();
        registry.tools.iter().map(|info| Arc::new(ExtensionTool::new(self.clone(), info.clone()))).collect()
    }

    /// Calls `prepareArguments` of a tool. Must be called before the arguments are checked, if [`ToolInfo::prepares`].
    pub async fn prepare_arguments(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let args = json!({ "name": tool, "args": arguments });
        self.call("prepare", &args, EngineWait::Handler).await.map_err(|error| error.to_string())
    }

    /// Runs a tool. Progress goes to `update`, which is never called after the result.
    pub async fn run_tool(
        &self,
        name: &str,
        call_id: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
        update: impl Fn(ToolOutput),
    ) -> ToolOutput {
        let (progress, mut updates) = watch::channel(String::new());
        let args = json!({ "name": name, "toolCallId": call_id, "params": arguments });
        let call = self.open("tool", &args, Some(Progress::Newest(progress)));
        let outcome = call.finish_or_abort(cancel);
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Ok(()) = updates.changed() => {
                    let text = updates.borrow_and_update().clone();
                    if let Ok(output) = read::<JsOutput>(&text) {
                        update(output.into());
                    }
                }
                outcome = &mut outcome => break outcome,
            }
        };
        match outcome.and_then(|text| read::<JsOutput>(&text)) {
            Ok(output) => output.into(),
            Err(CallError::Timeout) => ToolOutput::error(ABORTED),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }

    /// Runs a shell command through operations that a `user_bash` handler returned. Returns the exit code.
    pub async fn run_operations(
        &self,
        operations: u64,
        command: &str,
        cwd: &str,
        cancel: &CancellationToken,
        data: impl Fn(&str),
    ) -> Result<Option<i32>, String> {
        #[derive(Deserialize)]
        struct Data {
            data: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Ended {
            exit_code: Option<i32>,
        }
        let (progress, mut pieces) = mpsc::unbounded_channel();
        let args = json!({ "operations": operations, "command": command, "cwd": cwd });
        let outcome = self.open("bash_operations", &args, Some(Progress::Pieces(progress))).finish_or_abort(cancel);
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(text) = pieces.recv() => {
                    if let Ok(piece) = read::<Data>(&text) {
                        data(&piece.data);
                    }
                }
                outcome = &mut outcome => break outcome,
            }
        };
        let ended = outcome.and_then(|text| read::<Ended>(&text)).map_err(|error| error.to_string())?;
        Ok(ended.exit_code)
    }
}
