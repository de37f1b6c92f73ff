//! `invoke_agent`: work on a prompt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind};
use pith_agent::trace::{
    ChatParent, ChatSpan, CheckpointSpan, CompactionSpan, ToolSpan, ToolStart, WorkSpan, WorkStart,
};
use pith_protocol::{AssistantMessage, CompactionReason, LlmCall, Usage};

use crate::chat::Chat;
use crate::compaction::{Checkpoint, Compaction};
use crate::open_span::OpenSpan;
use crate::provider_names::provider_name;
use crate::spans::{SessionTracer, failure, set_usage};
use crate::tool::ToolCall;
use crate::{metrics, names};

/// What the answers of a piece of work have used.
pub(crate) type Spent = Arc<Mutex<Usage>>;

pub(crate) struct Work {
    tracer: SessionTracer,
    /// Held for a few lines.
    span: Mutex<OpenSpan>,
    /// Where its parts begin.
    place: SpanContext,
    model: Option<String>,
    spent: Spent,
}

impl Work {
    pub fn begin(tracer: SessionTracer, start: WorkStart<'_>, parent: &SpanContext) -> Self {
        let mut attributes = vec![
            KeyValue::new(names::OPERATION_NAME, names::INVOKE_AGENT),
            KeyValue::new(names::AGENT_NAME, names::PITH),
            KeyValue::new(names::AGENT_VERSION, tracer.core.version),
            KeyValue::new(names::CONVERSATION_ID, start.session.to_owned()),
        ];
        if let Some(model) = start.model {
            attributes.push(KeyValue::new(names::PROVIDER_NAME, provider_name(&model.provider).to_owned()));
            attributes.push(KeyValue::new(names::REQUEST_MODEL, model.id.clone()));
        }
        let name = format!("{} {}", names::INVOKE_AGENT, names::PITH);
        let span = tracer.begin(name, SpanKind::Internal, attributes, parent);
        Work {
            place: span.context().clone(),
            span: Mutex::new(span),
            model: start.model.map(|model| model.id.clone()),
            spent: Spent::default(),
            tracer,
        }
    }

    fn span(&self) -> MutexGuard<'_, OpenSpan> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatParent for Work {
    fn chat(&self, call: &LlmCall) -> Box<dyn ChatSpan> {
        Box::new(Chat::begin(self.tracer.clone(), call, &self.place, Some(self.spent.clone())))
    }
}

impl WorkSpan for Work {
    fn tool(&self, start: ToolStart<'_>) -> Box<dyn ToolSpan> {
        Box::new(ToolCall::begin(self.tracer.clone(), start, &self.place))
    }

    fn compaction(&self, reason: CompactionReason) -> Arc<dyn CompactionSpan> {
        Arc::new(Compaction::begin(self.tracer.clone(), reason, &self.place, Some(self.spent.clone())))
    }

    fn checkpoint(&self) -> Box<dyn CheckpointSpan> {
        Box::new(Checkpoint::begin(&self.tracer, &self.place))
    }

    fn limit_reached(&self, limit: &str) {
        self.tracer.core.instruments.limits.add(1, &[KeyValue::new(names::LIMIT_NAME, limit.to_owned())]);
    }

    fn denied(&self, what: &str) {
        self.tracer.core.instruments.denials.add(1, &[KeyValue::new(names::DENIED_KIND, what.to_owned())]);
    }

    fn end(&self, was_aborted: bool, answer: Option<&AssistantMessage>) {
        let aborted = was_aborted.then(|| names::ABORTED.to_owned());
        let error = aborted.or_else(|| answer.and_then(failure));
        let mut span = self.span();
        set_usage(&mut span, &self.spent.lock().unwrap_or_else(PoisonError::into_inner));
        let took = span.finish(error.as_deref());
        let mut attributes = vec![KeyValue::new(names::AGENT_NAME, names::PITH)];
        attributes.extend(self.model.iter().map(|model| KeyValue::new(names::REQUEST_MODEL, model.clone())));
        metrics::record(&self.tracer.core.instruments.agent, took, attributes, error.as_deref());
    }
}
