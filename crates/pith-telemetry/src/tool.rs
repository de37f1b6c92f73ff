//! `execute_tool`: one tool call.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind};
use pith_agent::trace::{ToolEnd, ToolSpan, ToolStart};
use pith_agent::{ToolOutput, TraceContext};
use pith_protocol::audit::{PermissionBy, PermissionDecision};

use crate::open_span::OpenSpan;
use crate::spans::SessionTracer;
use crate::{content, metrics, names, place};

pub(crate) struct ToolCall {
    tracer: SessionTracer,
    span: OpenSpan,
    /// What its measurement carries.
    attributes: Vec<KeyValue>,
}

impl ToolCall {
    pub fn begin(tracer: SessionTracer, start: ToolStart<'_>, parent: &SpanContext) -> Self {
        let ToolStart { call, is_remote, sandbox } = start;
        let kind = if is_remote { "extension" } else { "function" };
        let attributes =
            vec![KeyValue::new(names::TOOL_NAME, call.name.clone()), KeyValue::new(names::TOOL_TYPE, kind)];
        let mut of_span = attributes.clone();
        of_span.extend([
            KeyValue::new(names::OPERATION_NAME, names::EXECUTE_TOOL),
            KeyValue::new(names::TOOL_CALL_ID, call.id.to_string()),
            KeyValue::new(names::SANDBOX_PROFILE, sandbox.as_str()),
        ]);
        let name = format!("{} {}", names::EXECUTE_TOOL, call.name);
        let mut span = tracer.begin(name, SpanKind::Internal, of_span, parent);
        tracer.set_content(&mut span, names::TOOL_CALL_ARGUMENTS, || content::json(&call.arguments));
        ToolCall { tracer, span, attributes }
    }
}

impl ToolSpan for ToolCall {
    fn context(&self) -> Arc<TraceContext> {
        Arc::new(place::write(self.span.context()))
    }

    fn decided(&mut self, decision: PermissionDecision, by: PermissionBy, wait: Duration) {
        self.span.set(names::PERMISSION_DECISION, decision.as_str());
        self.span.set(names::PERMISSION_BY, by.as_str());
        self.span.set(names::PERMISSION_WAIT, wait.as_secs_f64());
    }

    fn end(mut self: Box<Self>, end: ToolEnd, output: &ToolOutput) {
        let error = match end {
            ToolEnd::Ran => output.is_error.then_some(names::TOOL_ERROR),
            ToolEnd::Stopped => Some(names::ABORTED),
            ToolEnd::Refused => Some(names::NOT_PERMITTED),
            ToolEnd::Unfit => Some(names::UNFIT_CALL),
        };
        self.tracer.set_content(&mut self.span, names::TOOL_CALL_RESULT, || content::result(output));
        let took = self.span.finish(error);
        let attributes = std::mem::take(&mut self.attributes);
        metrics::record(&self.tracer.core.instruments.tool, took, attributes, error);
    }
}
