//! Bounds on extension code, as far as settings say something about them.

use std::time::Duration;

use pith_config::settings::ExtensionLimits;
use pith_ext::Limits;

/// The least memory an engine can be started with.
const LEAST_MEMORY_MB: u64 = 16;

/// What settings say, where they say something; no limit can be zero.
pub fn of(settings: &ExtensionLimits) -> Limits {
    let or = |wanted: Option<Duration>, usual: Duration| wanted.filter(|limit| !limit.is_zero()).unwrap_or(usual);
    let usual = Limits::default();
    let megabytes = settings.memory_mb.map(|wanted| wanted.clamp(LEAST_MEMORY_MB, 1 << 20) as usize);
    Limits {
        slice: or(settings.execution, usual.slice),
        handler: or(settings.handler, usual.handler),
        observer: or(settings.observer, usual.observer),
        factory: or(settings.factory, usual.factory),
        shutdown: or(settings.shutdown, usual.shutdown),
        abort_grace: or(settings.abort, usual.abort_grace),
        hang_grace: or(settings.hang, usual.hang_grace),
        memory: megabytes.map_or(usual.memory, |megabytes| megabytes << 20),
        ..usual
    }
}
