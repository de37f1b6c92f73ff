//! Older shapes of a settings file, turned into today's. The file itself is left alone.

use serde_json::{Map, Value};

/// Rewrites what older releases wrote. Newer keys win over older ones.
pub(super) fn migrate(document: &mut Map<String, Value>) {
    if let Some(mode) = document.shift_remove("queueMode") {
        document.entry("steeringMode").or_insert(mode);
    }
    skills(document);
    if let Some(Value::Object(retry)) = document.get_mut("retry")
        && let Some(delay) = retry.shift_remove("maxDelayMs")
        && let Value::Object(provider) = retry.entry("provider").or_insert_with(|| Value::Object(Map::new()))
    {
        provider.entry("maxRetryDelayMs").or_insert(delay);
    }
}

/// Turns an old `skills` object into the list of its directories.
fn skills(document: &mut Map<String, Value>) {
    let Some(Value::Object(old)) = document.get_mut("skills") else { return };
    match old.shift_remove("customDirectories") {
        Some(directories) => document.insert("skills".into(), directories),
        None => document.shift_remove("skills"),
    };
}
