//! A span that has begun.

use std::time::{Duration, Instant};

use opentelemetry::trace::{Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use crate::names;

/// A span that ends once: when it is finished, else when it is dropped.
pub(crate) struct OpenSpan {
    span: Span,
    began: Instant,
    is_over: bool,
}

impl OpenSpan {
    pub fn begin(
        tracer: &SdkTracer,
        name: String,
        kind: SpanKind,
        attributes: Vec<KeyValue>,
        parent: &SpanContext,
    ) -> Self {
        let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
        // A parent that is nowhere counts as one that was not sampled.
        let root = Context::new();
        let parent = if parent.is_valid() { root.with_remote_span_context(parent.clone()) } else { root };
        OpenSpan { span: tracer.build_with_context(builder, &parent), began: Instant::now(), is_over: false }
    }

    pub fn context(&self) -> &SpanContext {
        self.span.span_context()
    }

    /// Whether anything that is set will be seen.
    pub fn is_recording(&self) -> bool {
        self.span.is_recording()
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.span.set_attribute(KeyValue::new(name, value));
    }

    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends the span and returns how long it was.
    pub fn finish(&mut self, error: Option<&str>) -> Duration {
        let age = self.age();
        if std::mem::replace(&mut self.is_over, true) {
            return age;
        }
        if let Some(error) = error {
            self.set(names::ERROR_TYPE, error.to_owned());
            self.span.set_status(Status::error(""));
        }
        self.span.end();
        age
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.finish(Some(names::ABANDONED));
    }
}
