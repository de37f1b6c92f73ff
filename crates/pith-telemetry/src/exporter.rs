//! The exporter: one for all sessions of a process.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::resource::{ResourceDetector, SdkProvidedResourceDetector};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use pith_agent::Tracer;

use crate::config::{Config, Signal};
use crate::metrics::Instruments;
use crate::names;
use crate::place::HostPlace;
use crate::spans::{Redact, SessionTracer};
use crate::transport::{Line, Sender};

/// How long the end of the process waits for what has not been sent.
const LAST_FLUSH: Duration = Duration::from_secs(1);

/// Telemetry that is on.
pub struct Telemetry {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    core: Arc<Core>,
}

/// What all spans need.
pub(crate) struct Core {
    pub tracer: SdkTracer,
    pub instruments: Instruments,
    pub has_content: bool,
    pub version: &'static str,
}

impl Telemetry {
    /// Starts the exporter. `version` is that of pith; `proxy` is used where the environment names none. The error says
    /// why there is none.
    pub fn start(config: &Config, version: &'static str, proxy: Option<String>) -> Result<Self, String> {
        let line = Arc::new(Line::start(proxy).map_err(|error| format!("no thread could be started: {error}"))?);
        let sender = |signal: &Signal| Sender { line: line.clone(), timeout: signal.timeout };
        let resource = resource(version);
        let mut traces = SdkTracerProvider::builder().with_resource(resource.clone());
        if let Some(signal) = &config.traces {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_protocol(signal.protocol)
                .with_timeout(signal.timeout)
                .with_http_client(sender(signal))
                .build();
            traces = traces.with_batch_exporter(exporter.map_err(|error| error.to_string())?);
        }
        let mut metrics = SdkMeterProvider::builder().with_resource(resource);
        if let Some(signal) = &config.metrics {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_protocol(signal.protocol)
                .with_timeout(signal.timeout)
                .with_http_client(sender(signal))
                .build();
            metrics = metrics.with_periodic_exporter(exporter.map_err(|error| error.to_string())?);
        }
        Ok(Telemetry::with(traces.build(), metrics.build(), config.has_content, version))
    }

    pub(crate) fn with(
        traces: SdkTracerProvider,
        metrics: SdkMeterProvider,
        has_content: bool,
        version: &'static str,
    ) -> Self {
        let scope = || {
            InstrumentationScope::builder(names::PITH).with_version(version).with_schema_url(names::SCHEMA_URL).build()
        };
        let meter: Meter = metrics.meter_with_scope(scope());
        let core = Core {
            tracer: traces.tracer_with_scope(scope()),
            instruments: Instruments::new(&meter),
            has_content,
            version,
        };
        Telemetry { traces, metrics, core: Arc::new(core) }
    }

    /// Returns what a session reports to. `redact` takes secrets out of texts.
    pub fn tracer(&self, host: HostPlace, redact: Redact) -> Arc<dyn Tracer> {
        Arc::new(SessionTracer::new(self.core.clone(), host.0, redact))
    }

    /// Sends what is left and stops; a collector that does not answer in time does not get it.
    pub fn end(&self) {
        let deadline = Instant::now() + LAST_FLUSH;
        let (told, done) = mpsc::channel();
        let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
        let ends: [Box<dyn FnOnce() + Send>; 2] = [
            Box::new(move || drop(traces.shutdown_with_timeout(LAST_FLUSH))),
            Box::new(move || drop(metrics.shutdown_with_timeout(LAST_FLUSH))),
        ];
        let mut n_running = 0;
        for end in ends {
            let told = told.clone();
            let run = move || {
                end();
                // Nobody listens any more if the time is up.
                let _ = told.send(());
            };
            n_running += usize::from(std::thread::Builder::new().name("telemetry-end".to_owned()).spawn(run).is_ok());
        }
        for _ in 0..n_running {
            if done.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
                return;
            }
        }
    }
}

/// Who sends: what the environment says, and pith where it says nothing.
fn resource(version: &'static str) -> Resource {
    let builder = Resource::builder().with_attribute(KeyValue::new(names::SERVICE_VERSION, version));
    let detected = SdkProvidedResourceDetector.detect();
    let is_named = detected.iter().any(|(_, name)| !name.as_str().starts_with("unknown_service"));
    if is_named { builder.build() } else { builder.with_service_name(names::PITH).build() }
}
