//! The instruments.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::names;

/// What is counted and measured. Without a meter that exports they do nothing.
pub(crate) struct Instruments {
    pub tokens: Histogram<u64>,
    pub operation: Histogram<f64>,
    pub first_chunk: Histogram<f64>,
    pub agent: Histogram<f64>,
    pub tool: Histogram<f64>,
    pub limits: Counter<u64>,
    pub denials: Counter<u64>,
}

impl Instruments {
    pub fn new(meter: &Meter) -> Self {
        let seconds =
            |name, bounds: &[f64]| meter.f64_histogram(name).with_unit("s").with_boundaries(bounds.to_vec()).build();
        Instruments {
            tokens: meter
                .u64_histogram(names::CLIENT_TOKEN_USAGE)
                .with_unit("{token}")
                .with_boundaries(names::TOKEN_BOUNDS.to_vec())
                .build(),
            operation: seconds(names::CLIENT_OPERATION_DURATION, &names::OPERATION_BOUNDS),
            first_chunk: seconds(names::CLIENT_TIME_TO_FIRST_CHUNK, &names::OPERATION_BOUNDS),
            agent: seconds(names::INVOKE_AGENT_DURATION, &names::AGENT_BOUNDS),
            tool: seconds(names::EXECUTE_TOOL_DURATION, &names::OPERATION_BOUNDS),
            limits: meter.u64_counter(names::LIMIT_REACHED).build(),
            denials: meter.u64_counter(names::SANDBOX_DENIED).build(),
        }
    }
}

/// Records a duration, with the kind of error if there was one.
pub(crate) fn record(
    histogram: &Histogram<f64>,
    duration: Duration,
    mut attributes: Vec<KeyValue>,
    error: Option<&str>,
) {
    attributes.extend(error.map(|error| KeyValue::new(names::ERROR_TYPE, error.to_owned())));
    histogram.record(duration.as_secs_f64(), &attributes);
}
