//! Places in a trace, as the W3C has them written.

use std::collections::HashMap;

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use pith_agent::TraceContext;
use pith_config::Environment;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// Where the process that started pith stands in a trace.
pub struct HostPlace(pub(crate) SpanContext);

impl HostPlace {
    /// Reads the variables. The error says what is wrong with them.
    pub fn of(environment: &Environment) -> Result<Self, String> {
        let [parent, state] = TraceContext::VARIABLES.map(|name| environment.get(name));
        match parent {
            None => Ok(HostPlace::none()),
            Some(parent) => {
                read(&parent, state.as_deref()).map(HostPlace).ok_or_else(|| malformed("TRACEPARENT", &parent))
            }
        }
    }

    /// Nowhere: what begins is a trace of its own.
    pub fn none() -> Self {
        HostPlace(SpanContext::empty_context())
    }
}

/// Reads a place; `None` if it is malformed.
pub(crate) fn read(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    let mut carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    carrier.extend(tracestate.map(|state| (TRACESTATE.to_owned(), state.to_owned())));
    let found = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    let place = found.span().span_context().clone();
    place.is_valid().then_some(place)
}

/// Says that a place was ignored.
pub(crate) fn malformed(name: &str, value: &str) -> String {
    format!("{name} is malformed and ignored: {value:?}; expected 00-TRACE-SPAN-FLAGS")
}

/// Writes a place for others.
pub(crate) fn write(place: &SpanContext) -> TraceContext {
    let mut carrier = HashMap::new();
    let context = Context::new().with_remote_span_context(place.clone());
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    let mut take = |name: &str| carrier.remove(name).unwrap_or_default();
    TraceContext { traceparent: take(TRACEPARENT), tracestate: take(TRACESTATE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_place_is_read_and_written() {
        let place = read(PLACE, Some("a=1")).expect("a place");
        assert_eq!(write(&place), TraceContext { traceparent: PLACE.to_owned(), tracestate: "a=1".to_owned() });
        assert_eq!(write(&read(PLACE, None).expect("a place")).tracestate, "");
    }

    #[test]
    fn malformed_places_are_none() {
        for text in [
            "",
            "x",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert!(read(text, None).is_none(), "{text:?}");
        }
    }

    #[test]
    fn the_environment_names_the_place_of_the_host() {
        let of = |value| HostPlace::of(&Environment::of("/", [("TRACEPARENT", value)]));
        assert!(of(PLACE).is_ok_and(|place| place.0.is_valid()));
        assert!(HostPlace::of(&Environment::of("/", [])).is_ok_and(|place| !place.0.is_valid()));
        let why = of("nonsense").err().expect("a problem");
        assert_eq!(why, "TRACEPARENT is malformed and ignored: \"nonsense\"; expected 00-TRACE-SPAN-FLAGS");
    }
}
