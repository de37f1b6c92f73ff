//! `chat`: one request to a model and its answer.

use std::sync::PoisonError;

use opentelemetry::trace::{SpanContext, SpanKind};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use pith_agent::trace::ChatSpan;
use pith_protocol::{AssistantMessage, LlmCall, StopReason};
use url::Url;

use crate::open_span::OpenSpan;
use crate::provider_names::provider_name;
use crate::spans::{SessionTracer, count, failure, input_tokens, set_usage};
use crate::work::Spent;
use crate::{content, metrics, names};

pub(crate) struct Chat {
    tracer: SessionTracer,
    span: OpenSpan,
    /// What its measurements have in common.
    attributes: Vec<KeyValue>,
    spent: Option<Spent>,
}

impl Chat {
    /// Begins the span; what the answer uses is added to `spent`.
    pub fn begin(tracer: SessionTracer, call: &LlmCall, parent: &SpanContext, spent: Option<Spent>) -> Self {
        let model = &call.model;
        let mut attributes = vec![
            KeyValue::new(names::OPERATION_NAME, names::CHAT),
            KeyValue::new(names::PROVIDER_NAME, provider_name(&model.provider).to_owned()),
            KeyValue::new(names::REQUEST_MODEL, model.id.clone()),
        ];
        attributes.extend(server(&model.base_url));
        let mut of_span = attributes.clone();
        of_span.push(KeyValue::new(names::REQUEST_STREAM, true));
        let max_tokens = call.max_tokens.or(Some(model.max_tokens)).filter(|most| *most > 0);
        of_span.extend(max_tokens.map(|most| KeyValue::new(names::REQUEST_MAX_TOKENS, count(most))));
        let name = format!("{} {}", names::CHAT, model.id);
        let mut span = tracer.begin(name, SpanKind::Client, of_span, parent);
        tracer.set_content(&mut span, names::SYSTEM_INSTRUCTIONS, || content::instructions(&call.system_prompt));
        tracer.set_content(&mut span, names::INPUT_MESSAGES, || content::newest(&call.messages));
        Chat { tracer, span, attributes, spent }
    }
}

impl ChatSpan for Chat {
    fn first_chunk(&mut self) {
        metrics::record(&self.tracer.core.instruments.first_chunk, self.span.age(), self.attributes.clone(), None);
    }

    fn end(mut self: Box<Self>, answer: &AssistantMessage) {
        let model = answer.response_model.as_ref().unwrap_or(&answer.model);
        if !model.is_empty() {
            self.span.set(names::RESPONSE_MODEL, model.clone());
            self.attributes.push(KeyValue::new(names::RESPONSE_MODEL, model.clone()));
        }
        if let Some(id) = &answer.response_id {
            self.span.set(names::RESPONSE_ID, id.clone());
        }
        if let Some(reason) = finish_reason(answer.stop_reason) {
            let reasons = Value::Array(Array::String(vec![StringValue::from(reason)]));
            self.span.set(names::RESPONSE_FINISH_REASONS, reasons);
        }
        let usage = &answer.usage;
        set_usage(&mut self.span, usage);
        if let Some(spent) = &self.spent {
            spent.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
        }
        self.tracer.set_content(&mut self.span, names::OUTPUT_MESSAGES, || content::answer(answer));
        let error = failure(answer);
        let took = self.span.finish(error.as_deref());
        let instruments = &self.tracer.core.instruments;
        for (kind, tokens) in [("input", input_tokens(usage)), ("output", usage.output)] {
            // Nothing was counted if there was no answer.
            if tokens > 0 {
                let kind = KeyValue::new(names::TOKEN_TYPE, kind);
                instruments.tokens.record(tokens, &[&self.attributes[..], &[kind]].concat());
            }
        }
        metrics::record(&instruments.operation, took, std::mem::take(&mut self.attributes), error.as_deref());
    }
}

/// Returns the conventions' word for the end of an answer; an answer that was cut off has none.
pub(crate) fn finish_reason(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::Stop => Some("stop"),
        StopReason::Length => Some("length"),
        StopReason::ToolUse => Some("tool_call"),
        StopReason::Error => Some("error"),
        StopReason::Aborted => None,
    }
}

/// Returns host and port of an address.
fn server(address: &str) -> Vec<KeyValue> {
    let Ok(url) = Url::parse(address) else { return Vec::new() };
    let Some(host) = url.host_str() else { return Vec::new() };
    let mut found = vec![KeyValue::new(names::SERVER_ADDRESS, host.to_owned())];
    found.extend(url.port_or_known_default().map(|port| KeyValue::new(names::SERVER_PORT, i64::from(port))));
    found
}
