//! A tool of an extension or an MCP server whose images are converted to what the model accepts.

use std::sync::Arc;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolLayer, ToolOutput};
use pith_tools::Workbench;
use serde_json::{Map, Value};

use super::images;

/// A layer around a tool; everything but its images stays.
pub(crate) struct FittingTool {
    tool: Arc<dyn Tool>,
    /// Knows what the current model accepts.
    workbench: Arc<Workbench>,
}

impl FittingTool {
    pub fn new(tool: Arc<dyn Tool>, workbench: Arc<Workbench>) -> Self {
        FittingTool { tool, workbench }
    }
}

impl ToolLayer for FittingTool {
    fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let output = self.tool.clone().run(arguments, context).await;
            images::fit_output(output, self.workbench.image_rules()).await
        })
    }
}
