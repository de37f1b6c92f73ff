//! Events of pith's parts as records. They name every value they carry, so texts are in none of them.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as Values};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::file::{DebugFile, Record};

/// Writes events to the file.
pub struct DebugLayer(pub &'static DebugFile);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for DebugLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Values<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let spans = context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()).map(|span| {
            let mut shown = Map::from_iter([("span".to_owned(), Value::from(span.name()))]);
            shown.extend(span.extensions().get::<Fields>().map(|fields| fields.values.clone()).unwrap_or_default());
            Value::Object(shown)
        });
        self.0.write(&Record::Event {
            level: event.metadata().level().as_str(),
            part: event.metadata().target(),
            spans: spans.collect(),
            what: fields.message,
            values: fields.values,
        });
    }
}

/// What an event or a span carries.
#[derive(Default)]
struct Fields {
    message: String,
    values: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.values.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.set(field, format!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}
