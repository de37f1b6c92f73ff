//! How a server introduces itself: its answer to `initialize` or `server/discover`. rmcp reads that strictly, so what
//! odd servers get wrong in it is removed first; only the version of the protocol is needed.

use rmcp::model::{DiscoverResult, InitializeResult};
use serde_json::{Map, Value, json};

/// No version is longer; what is shown of one that is.
const MAX_VERSION: usize = 40;

/// Reads the answer to `initialize`. One without a version that could be one says so in its place, and is refused for
/// that like every version nobody knows.
pub fn read_initialize(result: Value) -> Result<InitializeResult, String> {
    let mut result = if let Value::Object(result) = result { result } else { Map::new() };
    let version = match result.get("protocolVersion") {
        Some(Value::String(version)) => version.clone(),
        None | Some(Value::Null) => "no version".to_owned(),
        Some(other) => other.to_string(),
    };
    let version: String = version.chars().take(MAX_VERSION).collect();
    result.insert("protocolVersion".to_owned(), json!(version));
    mend(&mut result);
    mend_server_info(&mut result);
    serde_json::from_value(Value::Object(result)).map_err(|error| format!("initialize: {error}"))
}

/// Reads the answer to `server/discover`.
pub fn read_discover(result: Value) -> Result<DiscoverResult, String> {
    let Value::Object(mut result) = result else { return Err("server/discover: its answer is no object".to_owned()) };
    mend(&mut result);
    for (member, fits, otherwise) in [
        ("resultType", Value::is_string as fn(&Value) -> bool, json!("complete")),
        ("ttlMs", Value::is_u64, json!(0)),
        ("cacheScope", |scope| scope == "public" || scope == "private", json!("private")),
    ] {
        if !result.get(member).is_some_and(fits) {
            result.insert(member.to_owned(), otherwise);
        }
    }
    if let Some(Value::Array(versions)) = result.get_mut("supportedVersions") {
        versions.retain(Value::is_string);
    }
    serde_json::from_value(Value::Object(result)).map_err(|error| format!("server/discover: {error}"))
}

/// Removes what is not of its type from what both answers have.
fn mend(result: &mut Map<String, Value>) {
    keep_if(result, "instructions", Value::is_string);
    keep_if(result, "_meta", Value::is_object);
    let capabilities = result.entry("capabilities").or_insert_with(|| json!({}));
    let Value::Object(capabilities) = capabilities else {
        *capabilities = json!({});
        return;
    };
    capabilities.retain(|_, capability| !capability.is_null() && *capability != Value::Bool(false));
    for (name, capability) in capabilities {
        match capability {
            Value::Object(settings) if name == "experimental" || name == "extensions" => {
                settings.retain(|_, setting| setting.is_object());
            }
            Value::Object(settings) => {
                keep_if(settings, "listChanged", Value::is_boolean);
                keep_if(settings, "subscribe", Value::is_boolean);
            }
            // `true`, or the empty object of PHP, which is a list.
            other => *other = json!({}),
        }
    }
}

fn mend_server_info(result: &mut Map<String, Value>) {
    let info = result.entry("serverInfo").or_insert(Value::Null);
    if !info.is_object() {
        *info = json!({});
    }
    let Value::Object(info) = info else { return };
    info.retain(|key, value| value.is_string() && key != "icons");
    for needed in ["name", "version"] {
        info.entry(needed).or_insert_with(|| json!(""));
    }
}

fn keep_if(members: &mut Map<String, Value>, name: &str, fits: fn(&Value) -> bool) {
    if members.get(name).is_some_and(|value| !fits(value)) {
        members.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a good answer in which one member is another.
    fn with(pointer: &str, value: &Value) -> Value {
        let mut answer = json!({"protocolVersion": "2025-11-25", "instructions": "Be kind.", "_meta": {},
            "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "logging": {}, "experimental": {}, "resources": {"subscribe": true}},
            "serverInfo": {"name": "test", "version": "1", "title": "T", "icons": []}});
        *answer.pointer_mut(pointer).expect("a member") = value.clone();
        answer
    }

    #[test]
    fn an_odd_member_fails_no_server() {
        let odd =
            [json!(null), json!(true), json!(false), json!(7), json!("yes"), json!([]), json!([1]), json!({"a": 1})];
        for pointer in [
            "/instructions",
            "/_meta",
            "/capabilities",
            "/capabilities/tools",
            "/capabilities/tools/listChanged",
            "/capabilities/prompts",
            "/capabilities/logging",
            "/capabilities/experimental",
            "/capabilities/resources",
            "/capabilities/resources/subscribe",
            "/serverInfo",
            "/serverInfo/name",
            "/serverInfo/version",
            "/serverInfo/title",
            "/serverInfo/icons",
        ] {
            for value in &odd {
                let read = read_initialize(with(pointer, value));
                assert!(read.is_ok(), "{pointer} {value}: {read:?}");
                let mut answer = with(pointer, value);
                answer["supportedVersions"] = json!(["2026-07-28", 7]);
                let read = read_discover(answer);
                assert!(read.is_ok(), "{pointer} {value}: {read:?}");
            }
        }
        let has_tools = |value: Value| {
            let read = read_initialize(with("/capabilities/tools", &value)).expect("readable");
            read.capabilities.tools.is_some()
        };
        let given = [json!(true), json!([]), json!({"listChanged": "yes"}), json!(null), json!(false)];
        assert_eq!(given.map(has_tools), [true, true, true, false, false]);
    }

    #[test]
    fn what_is_no_version_is_shown_as_it_is() {
        let version = |answer: Value| read_initialize(answer).expect("readable").protocol_version.to_string();
        assert_eq!(version(with("/protocolVersion", &json!(7))), "7");
        assert_eq!(version(with("/protocolVersion", &json!(null))), "no version");
        assert_eq!(version(json!("ok")), "no version");
        assert_eq!(version(with("/protocolVersion", &json!("9".repeat(1 << 20)))).len(), MAX_VERSION);
    }
}
