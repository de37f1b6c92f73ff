//! Older shapes of a settings file, turned into today's. The file itself is left alone.

use serde_json::{Map, Value};

/// Rewrites what older releases wrote. Newer keys win over older ones.
pub(super) fn migrate(document: &mut Map<String, Value>) {
    if let Some(mode) = document.shift_remove("queueMode") {
        document.entry("steeringMode").or_insert(mode);
    }
    if let Some(Value::Bool(websockets)) = document.get("websockets") {
        let transport = if *websockets { "websocket" } else { "sse" };
        document.shift_remove("websockets");
        document.entry("transport").or_insert_with(|| transport.into());
    }
    skills(document);
    if let Some(Value::Object(retry)) = document.get_mut("retry")
        && let Some(delay) = retry.shift_remove("maxDelayMs")
        && let Value::Object(provider) = retry.entry("provider").or_insert_with(|| Value::Object(Map::new()))
    {
        provider.entry("maxRetryDelayMs").or_insert(delay);
    }
}

/// `skills` was an object with directories and a switch.
fn skills(document: &mut Map<String, Value>) {
    let Some(Value::Object(old)) = document.get_mut("skills") else { return };
    let switch = old.shift_remove("enableSkillCommands");
    let directories = old.shift_remove("customDirectories");
    match directories {
        Some(directories) => document.insert("skills".into(), directories),
        None => document.shift_remove("skills"),
    };
    if let Some(switch) = switch {
        document.entry("enableSkillCommands").or_insert(switch);
    }
}
