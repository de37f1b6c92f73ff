//! What pith does as OpenTelemetry spans and metrics, sent to a collector.
//!
//! Knows names, spans, instruments and the exporter, and nothing of sessions: those call the traits of
//! [`pith_agent::trace`]. Nothing here exists before telemetry is on, and nothing here makes a run wait: spans go into a
//! bounded queue of the SDK, whose threads send them.

mod spans;

mod chat;
mod compaction;
mod config;
mod content;
mod exporter;
mod metrics;
pub mod names;
mod open_span;
mod place;
mod provider_names;
#[cfg(test)]
mod tests;
mod tool;
mod transport;
mod work;

pub use config::Config;
pub use exporter::Telemetry;
pub use place::HostPlace;
pub use spans::Redact;
