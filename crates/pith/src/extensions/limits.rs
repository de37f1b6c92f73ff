//! The limits for extension code, from the settings.

use std::time::Duration;

use pith_config::settings::ExtensionLimits;
use pith_ext::Limits;

/// The least memory an engine can be started with.
const LEAST_MEMORY_MB: u64 = 16;

/// Returns the limits of the settings, with defaults; no limit can be zero.
pub fn of(settings: &ExtensionLimits) -> Limits {
    let or = |wanted: Option<Duration>, default: Duration| wanted.filter(|limit| !limit.is_zero()).unwrap_or(default);
    let default = Limits::default();
    let megabytes = settings.memory_mb.map(|wanted| wanted.clamp(LEAST_MEMORY_MB, 1 << 20) as usize);
    Limits {
        slice: or(settings.execution, default.slice),
        handler: or(settings.handler, default.handler),
        observer: or(settings.observer, default.observer),
        factory: or(settings.factory, default.factory),
        shutdown: or(settings.shutdown, default.shutdown),
        abort_grace: or(settings.abort, default.abort_grace),
        hang_grace: or(settings.hang, default.hang_grace),
        memory: megabytes.map_or(default.memory, |megabytes| megabytes << 20),
        ..default
    }
}
