//! A tool of an MCP server whose images are converted to what the model accepts.

use std::sync::Arc;

use pith_agent::{BoxFuture, Effect, Origin, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use pith_tools::Workbench;
use serde_json::{Map, Value};

use super::images;

/// Wraps a tool; everything but its images stays.
pub(super) struct FittingTool {
    tool: Arc<dyn Tool>,
    /// Knows what the current model accepts.
    workbench: Arc<Workbench>,
}

impl FittingTool {
    pub fn new(tool: Arc<dyn Tool>, workbench: Arc<Workbench>) -> Self {
        FittingTool { tool, workbench }
    }
}

impl Tool for FittingTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn label(&self) -> &str {
        self.tool.label()
    }

    fn rules(&self) -> Vec<&str> {
        self.tool.rules()
    }

    fn reach(&self) -> Reach {
        self.tool.reach()
    }

    fn origin(&self) -> Option<Origin<'_>> {
        self.tool.origin()
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        self.tool.effect(arguments)
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let output = self.tool.clone().run(arguments, context).await;
            images::fit_output(output, self.workbench.image_rules()).await
        })
    }
}
