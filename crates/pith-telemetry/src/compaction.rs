//! `pith.compaction` and `pith.checkpoint`.

use std::sync::{Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind};
use pith_agent::trace::{ChatParent, ChatSpan, CheckpointSpan, CompactionFailure, CompactionSpan};
use pith_protocol::{CompactionReason, LlmCall};

use crate::chat::Chat;
use crate::names;
use crate::open_span::OpenSpan;
use crate::spans::{SessionTracer, count};
use crate::work::Spent;

pub(crate) struct Compaction {
    tracer: SessionTracer,
    /// Held for a few lines.
    span: Mutex<OpenSpan>,
    place: SpanContext,
    spent: Option<Spent>,
}

impl Compaction {
    /// Begins the span; what its requests use is added to `spent`.
    pub fn begin(tracer: SessionTracer, reason: CompactionReason, parent: &SpanContext, spent: Option<Spent>) -> Self {
        let reason = match reason {
            CompactionReason::Manual => "manual",
            CompactionReason::Threshold => "threshold",
            CompactionReason::Overflow => "overflow",
        };
        let attributes = vec![KeyValue::new(names::COMPACTION_REASON, reason)];
        let span = tracer.begin(names::COMPACTION.to_owned(), SpanKind::Internal, attributes, parent);
        Compaction { place: span.context().clone(), span: Mutex::new(span), tracer, spent }
    }
}

impl ChatParent for Compaction {
    fn chat(&self, call: &LlmCall) -> Box<dyn ChatSpan> {
        Box::new(Chat::begin(self.tracer.clone(), call, &self.place, self.spent.clone()))
    }
}

impl CompactionSpan for Compaction {
    fn end(&self, outcome: Result<(u64, u64), CompactionFailure>) {
        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        let error = match outcome {
            Ok((before, after)) => {
                span.set(names::COMPACTION_TOKENS_BEFORE, count(before));
                span.set(names::COMPACTION_TOKENS_AFTER, count(after));
                None
            }
            Err(CompactionFailure::Cancelled) => Some(names::ABORTED),
            Err(CompactionFailure::Failed) => Some(names::COMPACTION_FAILED),
        };
        span.finish(error);
    }
}

pub(crate) struct Checkpoint(OpenSpan);

impl Checkpoint {
    pub fn begin(tracer: &SessionTracer, parent: &SpanContext) -> Self {
        Checkpoint(tracer.begin(names::CHECKPOINT.to_owned(), SpanKind::Internal, Vec::new(), parent))
    }
}

impl CheckpointSpan for Checkpoint {
    fn end(mut self: Box<Self>, n_files: Option<usize>) {
        self.0.set(names::CHECKPOINT_IS_COMPLETE, n_files.is_some());
        if let Some(n_files) = n_files {
            self.0.set(names::CHECKPOINT_FILES, count(n_files as u64));
        }
        self.0.finish(None);
    }
}
