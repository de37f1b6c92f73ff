//! A tool of a server, as the agent loop sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pith_agent::{BoxFuture, Exposure, Origin, Tool, ToolContext, ToolOutput, ToolUpdate};
use pith_protocol::ToolSpec;
use pith_tools::shell::OutputDir;
use rmcp::model::ProgressNotificationParam;
use serde_json::{Map, Value, json};

use crate::config;
use crate::offer::OfferedTool;
use crate::result::Call;
use crate::server::Server;

/// Progress is passed on at most so often.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A tool that calls its server.
pub struct McpTool {
    spec: ToolSpec,
    label: String,
    /// As the server calls it.
    tool: String,
    server: Arc<Server>,
    /// What the server is good for: as the user says, else the first line of its instructions.
    about: Option<String>,
    output_dir: Arc<OutputDir>,
}

impl McpTool {
    pub fn new(name: String, tool: &OfferedTool, server: Arc<Server>, output_dir: Arc<OutputDir>) -> Self {
        let label = tool.title.clone().unwrap_or_else(|| format!("{}: {}", server.config.name, tool.name));
        let spec = ToolSpec {
            name: name.into(),
            description: tool.description.clone().into(),
            parameters: Arc::new(tool.parameters.clone()),
            prefer_strict: false,
        };
        let instructions = server.snapshot().offer.and_then(|offer| offer.instructions.clone());
        let first_line = instructions.and_then(|text| text.lines().next().map(str::to_owned));
        let about = server.config.description.clone().or(first_line);
        McpTool { spec, label, tool: tool.name.clone(), server, about, output_dir }
    }

    async fn call(&self, arguments: Map<String, Value>, context: ToolContext) -> ToolOutput {
        let began = Instant::now();
        let result = self.result(arguments, &context).await;
        let server = &self.server.config.name;
        let call = Call { server, tool: &self.tool, duration: began.elapsed(), output_dir: &self.output_dir };
        match result {
            Ok(result) => call.output(&result),
            Err(why) => call.failure(&why),
        }
    }

    async fn result(&self, arguments: Map<String, Value>, context: &ToolContext) -> Result<Value, String> {
        let server = &self.server.config.name;
        let (_slot, connection) = self.server.ready(&context.cancel).await?;
        let offer = self.server.snapshot().offer;
        if !offer.is_some_and(|offer| offer.tools.iter().any(|tool| tool.name == self.tool)) {
            return Err(format!("{} is no longer offered by {server}", self.tool));
        }
        self.server.count_call();
        let mut reports = Reports { update: context.update.clone(), last: None };
        let called = connection.call(&self.tool, arguments, &context.cancel, |step| reports.pass(&step)).await;
        called.map_err(|error| self.server.explain(&error))
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn exposure(&self) -> Exposure {
        match self.server.config.exposure_of(&self.tool) {
            // Hidden tools are not offered.
            config::Exposure::Direct | config::Exposure::Hidden => Exposure::Direct,
            config::Exposure::Auto => Exposure::Auto,
            config::Exposure::Deferred => Exposure::Deferred,
        }
    }

    fn origin(&self) -> Option<Origin<'_>> {
        Some(Origin { server: &self.server.config.name, about: self.about.as_deref() })
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move { self.call(arguments, context).await })
    }
}

/// Passes progress on, not too often.
struct Reports {
    update: ToolUpdate,
    last: Option<Instant>,
}

impl Reports {
    fn pass(&mut self, step: &ProgressNotificationParam) {
        if self.last.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        self.last = Some(Instant::now());
        let mut text = step.progress.to_string();
        if let Some(total) = step.total {
            text.push_str(&format!("/{total}"));
        }
        if let Some(message) = &step.message {
            text.push_str(&format!(" {message}"));
        }
        let details = json!({"progress": step.progress, "total": step.total});
        (self.update)(ToolOutput::text(text).with_details(details));
    }
}
