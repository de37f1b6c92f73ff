//! What users configure: which servers there are, and how each is reached.

mod entry;
mod exposure;
mod fields;
mod imports;
mod known;
mod oauth;
mod places;
mod prompted;
mod registered;
mod sources;
mod values;

pub use entry::{EntryError, Lifecycle, Protocol, Remote, SamplingConsent, ServerConfig, Stdio, Transport, read_entry};
pub use exposure::{Exposure, NeededBy};
pub use imports::Program as ImportedProgram;
pub use known::KnownServers;
pub use oauth::OAuth;
pub use places::Places;
pub use prompted::Prompted;
pub use registered::{Registered, RegisteredServer};
pub use sources::{Given, Read, Source, TimeoutUnit, is_same, read_all, read_host};
pub use values::{Resolved, Unresolved, Variables, resolve};
