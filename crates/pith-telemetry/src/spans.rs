//! What a session reports to, and what all of its spans share.

use std::sync::{Arc, OnceLock};

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind};
use pith_agent::Tracer;
use pith_agent::trace::{ChatParent, ChatSpan, CompactionSpan, WorkSpan, WorkStart};
use pith_protocol::{AssistantMessage, CompactionReason, LlmCall, StopReason, Usage};

use crate::chat::Chat;
use crate::compaction::Compaction;
use crate::exporter::Core;
use crate::open_span::OpenSpan;
use crate::work::Work;
use crate::{content, names, place};

/// Takes secrets out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The spans of one session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionTracer {
    pub core: Arc<Core>,
    /// Where the process that started pith stands.
    host: SpanContext,
    redact: Redact,
    /// What was wrong with a prompt's place, the first time.
    problem: Arc<OnceLock<String>>,
}

impl SessionTracer {
    pub fn new(core: Arc<Core>, host: SpanContext, redact: Redact) -> Self {
        SessionTracer { core, host, redact, problem: Arc::default() }
    }

    pub fn begin(&self, name: String, kind: SpanKind, attributes: Vec<KeyValue>, parent: &SpanContext) -> OpenSpan {
        OpenSpan::begin(&self.core.tracer, name, kind, attributes, parent)
    }

    /// Sets a text of the conversation, if those may leave pith.
    pub fn set_content(&self, span: &mut OpenSpan, name: &'static str, text: impl FnOnce() -> String) {
        if self.core.has_content && span.is_recording() {
            span.set(name, content::cut((self.redact)(&text())));
        }
    }

    /// The place a prompt names, else that of the process.
    fn parent(&self, traceparent: Option<&str>) -> SpanContext {
        let Some(text) = traceparent else { return self.host.clone() };
        place::read(text, None).unwrap_or_else(|| {
            self.problem.get_or_init(|| place::malformed("prompt: traceparent", text));
            self.host.clone()
        })
    }
}

impl ChatParent for SessionTracer {
    fn chat(&self, call: &LlmCall) -> Box<dyn ChatSpan> {
        Box::new(Chat::begin(self.clone(), call, &self.host, None))
    }
}

impl Tracer for SessionTracer {
    fn work(&self, start: WorkStart<'_>) -> Arc<dyn WorkSpan> {
        let parent = self.parent(start.traceparent);
        Arc::new(Work::begin(self.clone(), start, &parent))
    }

    fn compaction(&self, reason: CompactionReason) -> Arc<dyn CompactionSpan> {
        Arc::new(Compaction::begin(self.clone(), reason, &self.host, None))
    }

    fn problem(&self) -> Option<String> {
        self.problem.get().cloned()
    }
}

/// Returns the kind of failure of an answer, if it failed.
pub(crate) fn failure(answer: &AssistantMessage) -> Option<String> {
    match answer.stop_reason {
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => None,
        StopReason::Aborted => Some(names::ABORTED.to_owned()),
        StopReason::Error => {
            let kind = answer.error.as_ref().and_then(|failure| serde_json::to_value(failure.kind).ok());
            Some(kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_else(|| names::OTHER.to_owned()))
        }
    }
}

/// All tokens that went in: providers count cached ones apart, the conventions do not.
pub(crate) fn input_tokens(usage: &Usage) -> u64 {
    usage.input + usage.cache_read + usage.cache_write
}

/// Sets what was spent.
pub(crate) fn set_usage(span: &mut OpenSpan, usage: &Usage) {
    span.set(names::USAGE_INPUT, count(input_tokens(usage)));
    span.set(names::USAGE_OUTPUT, count(usage.output));
    span.set(names::USAGE_CACHE_READ, count(usage.cache_read));
    span.set(names::USAGE_CACHE_CREATION, count(usage.cache_write));
    if let Some(reasoning) = usage.reasoning {
        span.set(names::USAGE_REASONING, count(reasoning));
    }
}

/// Returns a number as attributes carry it.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
