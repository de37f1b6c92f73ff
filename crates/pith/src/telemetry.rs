//! Telemetry: whether it is on, and the one exporter of the process.
//!
//! Off, nothing is made: a session is given no tracer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pith_agent::Tracer;
use pith_ai::Registry;
use pith_config::{Diagnostic, Environment, Settings};

/// The exporter of the sessions of a process. Made by the first that wants it.
#[derive(Clone, Default)]
pub(crate) struct Exporter(Arc<Mutex<Option<imp::Telemetry>>>);

/// What a session gets of it.
#[derive(Default)]
pub(crate) struct SessionTelemetry {
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Why there is no tracer though there should be, or what it ignores.
    pub problems: Vec<Diagnostic>,
}

impl Exporter {
    /// Returns what a session reports to. If telemetry is off that is nothing, and nothing is started.
    pub fn session(&self, settings: &Settings, environment: &Environment, registry: &Registry) -> SessionTelemetry {
        if !is_on(settings, environment) {
            return SessionTelemetry::default();
        }
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems = Vec::new();
        let tracer = imp::session(&mut running, settings, environment, registry, &mut problems);
        let shown = |text| Diagnostic { path: None, ..Diagnostic::warning("telemetry", PathBuf::new(), text) };
        SessionTelemetry { tracer, problems: problems.into_iter().map(shown).collect() }
    }

    /// Sends what has not been sent. Called at the end of the process; takes a second at most.
    pub fn end(&self) {
        if let Some(telemetry) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            telemetry.end();
        }
    }
}

/// The variable decides, else the setting.
fn is_on(settings: &Settings, environment: &Environment) -> bool {
    match environment.get("PITH_OTEL") {
        Some(value) => ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str()),
        None => settings.telemetry.enabled,
    }
}

#[cfg(feature = "otel")]
mod imp {
    use std::sync::Arc;

    use pith_agent::Tracer;
    use pith_ai::Registry;
    use pith_config::{Environment, Settings};
    pub use pith_telemetry::Telemetry;
    use pith_telemetry::{Config, HostPlace};

    /// Variables with headers for the collector, whose values are keys.
    const HEADERS: [&str; 3] =
        ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];

    pub fn session(
        running: &mut Option<Telemetry>,
        settings: &Settings,
        environment: &Environment,
        registry: &Registry,
        problems: &mut Vec<String>,
    ) -> Option<Arc<dyn Tracer>> {
        if running.is_none() {
            *running = start(settings, environment).unwrap_or_else(|why| {
                problems.push(why);
                None
            });
        }
        let telemetry = running.as_ref()?;
        let host = HostPlace::of(environment).unwrap_or_else(|why| {
            problems.push(why);
            HostPlace::none()
        });
        let secrets = registry.secrets();
        HEADERS.iter().filter_map(|name| environment.get(name)).for_each(|list| {
            let values = list.split(',').filter_map(|header| header.split_once('='));
            values.for_each(|(_, value)| secrets.remember(value.trim()));
        });
        Some(telemetry.tracer(host, Arc::new(move |text| secrets.redact(text).into_owned())))
    }

    fn start(settings: &Settings, environment: &Environment) -> Result<Option<Telemetry>, String> {
        let Some(config) = Config::read(environment)? else { return Ok(None) };
        let started = Telemetry::start(&config, env!("CARGO_PKG_VERSION"), settings.http_proxy.clone());
        started.map(Some).map_err(|why| format!("telemetry is off: {why}"))
    }
}

#[cfg(not(feature = "otel"))]
mod imp {
    use std::sync::Arc;

    use pith_agent::Tracer;
    use pith_ai::Registry;
    use pith_config::{Environment, Settings};

    /// Never made.
    pub enum Telemetry {}

    impl Telemetry {
        pub fn end(&self) {
            match *self {}
        }
    }

    pub fn session(
        _running: &mut Option<Telemetry>,
        _settings: &Settings,
        _environment: &Environment,
        _registry: &Registry,
        problems: &mut Vec<String>,
    ) -> Option<Arc<dyn Tracer>> {
        problems.push("telemetry is off: this pith was built without it (feature \"otel\")".to_owned());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_decides_before_the_setting() {
        let is_on = |enabled: bool, variables: &[(&'static str, &'static str)]| {
            let mut settings = Settings::default();
            settings.telemetry.enabled = enabled;
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            is_on(&settings, &Environment::of_variables("/", variables))
        };
        assert!(!is_on(false, &[]) && is_on(true, &[]));
        assert!(is_on(false, &[("PITH_OTEL", "1")]) && !is_on(true, &[("PITH_OTEL", "0")]));
        // Hosts set these for themselves.
        assert!(!is_on(false, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), ("TRACEPARENT", "x")]));
    }
}
