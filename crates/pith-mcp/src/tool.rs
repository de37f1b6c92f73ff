//! A tool of a server, as the agent loop sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pith_agent::{
    BoxFuture, Exposure, Hints, Origin, Tool, ToolContext, ToolOutput, ToolUpdate, is_checkable, mismatch,
};
use pith_protocol::{ToolSpec, Usage};
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
    annotations: Option<Map<String, Value>>,
    /// As the server wrote it; the model may get a simpler one.
    input_schema: Arc<Value>,
    output_schema: Option<Value>,
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
        let input_schema = tool.input_schema.clone().map_or_else(|| spec.parameters.clone(), Arc::new);
        McpTool {
            spec,
            label,
            tool: tool.name.clone(),
            server,
            annotations: tool.annotations.clone(),
            input_schema,
            output_schema: tool.output_schema.clone(),
            output_dir,
        }
    }

    /// A project's server is believed nothing: somebody else has written it.
    fn hints(&self) -> Hints {
        let config = &self.server.config;
        let says = |key: &str| self.annotations.as_ref().and_then(|all| all.get(key)).and_then(Value::as_bool);
        let is_believed = !config.source.is_of_project();
        let is_read_only = is_believed && says("readOnlyHint") == Some(true);
        let is_harmless = is_believed && says("destructiveHint") == Some(false);
        Hints { is_read_only, is_destructive: !(is_read_only || is_harmless), is_approved: config.approves(&self.tool) }
    }

    async fn call(&self, arguments: Map<String, Value>, context: ToolContext) -> ToolOutput {
        let began = Instant::now();
        let mut usage = None;
        if !is_checkable(&self.input_schema, &Value::Object(arguments.clone())) {
            self.note_unchecked("its arguments", "inputSchema");
        }
        let result = self.result(arguments, &context, &mut usage).await;
        let server = &self.server.config.name;
        let call = Call { server, tool: &self.tool, duration: began.elapsed(), output_dir: &self.output_dir };
        let output = match result {
            Ok(result) => {
                self.check(&result);
                call.output(&result)
            }
            Err(why) => call.failure(&why),
        };
        ToolOutput { usage, ..output }
    }

    /// Notes a result that is not what the tool promises; the model gets it all the same.
    fn check(&self, result: &Value) {
        let Some(schema) = &self.output_schema else { return };
        if result.get("isError") == Some(&Value::Bool(true)) {
            return;
        }
        let why = match result.get("structuredContent").filter(|content| !content.is_null()) {
            Some(content) if !is_checkable(schema, content) => {
                return self.note_unchecked("structuredContent", "outputSchema");
            }
            Some(content) => mismatch(schema, content),
            None => Some("it is missing".to_owned()),
        };
        if let Some(why) = why {
            let tool = &self.tool;
            self.server
                .note_problem(format!("tool \"{tool}\": structuredContent does not fit its outputSchema: {why}"));
        }
    }

    /// Notes what had to be accepted as it is.
    fn note_unchecked(&self, what: &str, schema: &str) {
        let tool = &self.tool;
        self.server.note_problem(format!("tool \"{tool}\": checking {what} against its {schema} would take too long"));
    }

    /// Calls the server. `usage` gets what it spent on the model meanwhile.
    async fn result(
        &self,
        arguments: Map<String, Value>,
        context: &ToolContext,
        usage: &mut Option<Usage>,
    ) -> Result<Value, String> {
        let server = &self.server.config.name;
        let (_slot, connection) = self.server.ready(&context.cancel).await?;
        let offer = self.server.snapshot().offer;
        if !offer.is_some_and(|offer| offer.tools.iter().any(|tool| tool.name == self.tool)) {
            return Err(format!("{} is no longer offered by {server}", self.tool));
        }
        self.server.count_call();
        let mut reports = Reports { update: context.update.clone(), last: None };
        let trace = context.trace.as_deref();
        let caller = self.server.caller(Some(context.call_id.clone()));
        let report = |step| reports.pass(&step);
        let called = connection.call(&caller, &self.tool, arguments, trace, &context.cancel, report).await;
        *usage = caller.inputs.take_usage();
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

    fn argument_schema(&self) -> &Arc<Value> {
        &self.input_schema
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
        Some(Origin {
            server: &self.server.config.name,
            tool: &self.tool,
            about: self.server.about(),
            keywords: &self.server.config.search_keywords,
            annotations: self.annotations.as_ref(),
            hints: self.hints(),
        })
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
