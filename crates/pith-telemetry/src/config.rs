//! What the environment asks for. The SDK reads the variables that are its own: endpoints, headers, samplers, batches,
//! intervals, resources.

use std::time::Duration;

use opentelemetry_otlp::Protocol;
use pith_config::Environment;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where telemetry goes and what it may hold.
#[derive(Debug, PartialEq)]
pub struct Config {
    /// `None` sends no spans.
    pub(crate) traces: Option<Signal>,
    /// `None` sends no metrics.
    pub(crate) metrics: Option<Signal>,
    /// Whether texts of the conversation go along.
    pub(crate) has_content: bool,
}

/// How spans, or metrics, are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Signal {
    pub protocol: Protocol,
    /// How long one request may take.
    pub timeout: Duration,
}

/// The variables of a signal; those of one signal go before those of all.
struct Variables {
    exporter: &'static str,
    protocol: [&'static str; 2],
    timeout: [&'static str; 2],
}

const TRACES: Variables = Variables {
    exporter: "OTEL_TRACES_EXPORTER",
    protocol: ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"],
    timeout: ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"],
};

const METRICS: Variables = Variables {
    exporter: "OTEL_METRICS_EXPORTER",
    protocol: ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"],
    timeout: ["OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"],
};

impl Config {
    /// Reads the variables. `None` means that nothing is to be sent; the error names what cannot be done.
    pub fn read(environment: &Environment) -> Result<Option<Config>, String> {
        if is_true(environment, "OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let traces = Signal::read(&TRACES, environment)?;
        let metrics = Signal::read(&METRICS, environment)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let has_content = is_true(environment, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Ok(Some(Config { traces, metrics, has_content }))
    }
}

impl Signal {
    fn read(variables: &Variables, environment: &Environment) -> Result<Option<Signal>, String> {
        let exporter = variables.exporter;
        match environment.get(exporter).as_deref().map(str::trim) {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => return Err(format!("{exporter} {other:?} is not supported; use \"otlp\" or \"none\"")),
        }
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| environment.get(name).map(|value| (name, value)))
        };
        let protocol = match first(variables.protocol) {
            None => Protocol::HttpBinary,
            Some((name, value)) => match value.trim() {
                "http/protobuf" => Protocol::HttpBinary,
                "http/json" => Protocol::HttpJson,
                other => {
                    let instead = "use \"http/json\" or \"http/protobuf\"";
                    return Err(format!("{name} {other:?} is not supported; {instead}"));
                }
            },
        };
        // The SDK passes over values that are no numbers, too.
        let timeout = first(variables.timeout).and_then(|(_, value)| value.trim().parse().ok());
        Ok(Some(Signal { protocol, timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis) }))
    }
}

fn is_true(environment: &Environment, name: &str) -> bool {
    environment.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(variables: [(&str, &str); N]) -> Result<Option<Config>, String> {
        Config::read(&Environment::of("/", variables))
    }

    #[test]
    fn without_variables_both_signals_go_out_in_the_usual_way() {
        let usual = Signal { protocol: Protocol::HttpBinary, timeout: DEFAULT_TIMEOUT };
        assert_eq!(read([]), Ok(Some(Config { traces: Some(usual), metrics: Some(usual), has_content: false })));
    }

    #[test]
    fn variables_of_one_signal_go_before_those_of_all() {
        let config = read([
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ]);
        let config = config.expect("no problem").expect("telemetry");
        let of = |signal: Option<Signal>| signal.map(|signal| (signal.protocol, signal.timeout.as_millis()));
        assert_eq!(of(config.traces), Some((Protocol::HttpJson, 250)));
        assert_eq!(of(config.metrics), Some((Protocol::HttpBinary, 10_000)));
        assert!(config.has_content);
    }

    #[test]
    fn signals_can_be_left_out() {
        assert_eq!(read([("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        assert_eq!(read([("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")]), Ok(None));
        let config = read([("OTEL_METRICS_EXPORTER", "none")]).expect("no problem").expect("telemetry");
        assert!(config.traces.is_some() && config.metrics.is_none());
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let why = |name: &str, value: &str| read([(name, value)]).expect_err("a problem");
        assert_eq!(
            why("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            "OTEL_EXPORTER_OTLP_PROTOCOL \"grpc\" is not supported; use \"http/json\" or \"http/protobuf\""
        );
        assert_eq!(
            why("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL \"grpc\" is not supported; use \"http/json\" or \"http/protobuf\""
        );
        assert_eq!(
            why("OTEL_TRACES_EXPORTER", "jaeger"),
            "OTEL_TRACES_EXPORTER \"jaeger\" is not supported; use \"otlp\" or \"none\""
        );
    }
}
