//! Decodes the parameters of a request; errors name the parameter.

use agent_client_protocol_schema::v1::{
    Error, McpServerHttp, McpServerSse, McpServerStdio, SetSessionConfigOptionRequest,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::invalid_params;

/// Reads the parameters as the type of the method.
pub fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    let mut params = match params {
        Value::Null => Value::Object(Map::new()),
        Value::Object(_) => params,
        _ => return Err(invalid_params("params", "Invalid params: expected an object")),
    };
    if let Some(Value::Array(servers)) = params.get_mut("mcpServers") {
        servers.iter_mut().enumerate().try_for_each(|(index, server)| check_server(index, server))?;
    }
    if let Some(Value::Array(blocks)) = params.get("prompt") {
        blocks.iter().enumerate().try_for_each(|(index, block)| check_resource(index, block))?;
    }
    decode(params, "")
}

/// Reads the parameters that change a config option. The type of its value cannot say what is wrong with it.
pub fn read_option(params: Value) -> Result<SetSessionConfigOptionRequest, Error> {
    let wrong = |why: &str| Err(invalid_params("value", format!("Invalid parameter value: {why}")));
    let is_switch = params.get("type").is_some_and(|kind| kind == "boolean");
    match params.get("value") {
        None | Some(Value::Null) if params.is_object() => Err(invalid_params("value", "Missing parameter: value")),
        Some(Value::Bool(_)) if !is_switch => wrong("a boolean needs \"type\": \"boolean\""),
        Some(Value::Number(_) | Value::Array(_) | Value::Object(_)) => wrong("expected a string or a boolean"),
        Some(Value::String(_)) if is_switch => wrong("expected a boolean"),
        _ => read(params),
    }
}

/// Decodes a value that stands at `place` in the parameters.
fn decode<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let below = error.path().to_string();
        let path = match (place, below.as_str()) {
            (place, "." | "") => place.to_owned(),
            ("", below) => below.to_owned(),
            (place, below) => format!("{place}.{below}"),
        };
        let why = error.inner().to_string();
        let missing = why.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        match (missing, path.as_str()) {
            (Some(name), "") => invalid_params(name, format!("Missing parameter: {name}")),
            (Some(name), path) => {
                invalid_params(&format!("{path}.{name}"), format!("Missing parameter: {path}.{name}"))
            }
            (None, "") => invalid_params("params", format!("Invalid params: {why}")),
            (None, path) => invalid_params(path, format!("Invalid parameter {path}: {why}")),
        }
    })
}

/// Checks the content of a resource in a prompt, for the same reason as [`check_server`].
fn check_resource(index: usize, block: &Value) -> Result<(), Error> {
    let Some(Value::Object(resource)) = block.get("resource").filter(|_| block["type"] == "resource") else {
        return Ok(());
    };
    let place = format!("prompt[{index}].resource");
    let field = |key: &str| resource.get(key).filter(|value| !value.is_null());
    for key in ["uri", "text", "blob", "mimeType"] {
        if field(key).is_some_and(|value| !value.is_string()) {
            let path = format!("{place}.{key}");
            return Err(invalid_params(&path, format!("Invalid parameter {path}: expected a string")));
        }
    }
    if field("uri").is_none() {
        return Err(invalid_params(&format!("{place}.uri"), format!("Missing parameter: {place}.uri")));
    }
    if field("text").or(field("blob")).is_none() {
        return Err(invalid_params(&place, format!("Invalid parameter {place}: expected text or blob")));
    }
    Ok(())
}

/// Checks an MCP server by its type, because the type of all of them cannot say what is wrong with one. Lists that are
/// left out are empty.
fn check_server(index: usize, server: &mut Value) -> Result<(), Error> {
    let place = format!("mcpServers[{index}]");
    let Value::Object(entry) = server else {
        return Err(invalid_params(&place, format!("Invalid parameter {place}: expected an object")));
    };
    let kind = match entry.get("type") {
        None | Some(Value::Null) => "stdio".to_owned(),
        Some(Value::String(kind)) => kind.clone(),
        Some(other) => other.to_string(),
    };
    let lists: &[&str] = if kind == "stdio" { &["args", "env"] } else { &["headers"] };
    for list in lists {
        entry.entry(*list).or_insert_with(|| Value::Array(Vec::new()));
    }
    match kind.as_str() {
        "stdio" => decode::<McpServerStdio>(server.clone(), &place).map(drop),
        "http" => decode::<McpServerHttp>(server.clone(), &place).map(drop),
        "sse" => decode::<McpServerSse>(server.clone(), &place).map(drop),
        _ => {
            let why = format!("Unknown type of MCP server: {kind}. There are: stdio, http, sse");
            Err(invalid_params(&format!("{place}.type"), why))
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest};
    use serde_json::json;

    use super::*;

    fn refusal<T: DeserializeOwned + std::fmt::Debug>(params: Value) -> (String, String) {
        let error = read::<T>(params).expect_err("it is refused");
        (error.data.expect("data")["field"].as_str().expect("a name").to_owned(), error.message)
    }

    #[test]
    fn errors_name_the_parameter() {
        let check = |found: (String, String), field: &str, message: &str| {
            assert_eq!((found.0.as_str(), found.1.as_str()), (field, message));
        };
        check(refusal::<NewSessionRequest>(json!({"mcpServers": []})), "cwd", "Missing parameter: cwd");
        check(refusal::<NewSessionRequest>(Value::Null), "cwd", "Missing parameter: cwd");
        check(refusal::<NewSessionRequest>(json!([1])), "params", "Invalid params: expected an object");
        let (field, _) = refusal::<LoadSessionRequest>(json!({"cwd": "/", "mcpServers": [], "sessionId": 5}));
        assert_eq!(field, "sessionId");
        let (field, message) = refusal::<PromptRequest>(json!({"sessionId": "s", "prompt": [{"type": "dance"}]}));
        assert!(field.starts_with("prompt") && message.contains("dance"), "{field}: {message}");
    }

    #[test]
    fn errors_name_the_value_of_an_option() {
        let check = |given: Value, message: &str| {
            let mut params = json!({"sessionId": "s", "configId": "mode"});
            params.as_object_mut().expect("an object").extend(given.as_object().expect("an object").clone());
            let error = read_option(params).expect_err("it is refused");
            assert_eq!((error.data, &*error.message), (Some(json!({"field": "value"})), message), "{given}");
        };
        check(json!({}), "Missing parameter: value");
        check(json!({"value": null}), "Missing parameter: value");
        check(json!({"value": 5}), "Invalid parameter value: expected a string or a boolean");
        check(json!({"value": {}}), "Invalid parameter value: expected a string or a boolean");
        check(json!({"value": false}), "Invalid parameter value: a boolean needs \"type\": \"boolean\"");
        check(json!({"value": "x", "type": "boolean"}), "Invalid parameter value: expected a boolean");
        let missing = read_option(json!({"configId": "mode", "value": "ask"})).expect_err("it is refused");
        assert_eq!(missing.message, "Missing parameter: sessionId");
        assert_eq!(read_option(json!([])).expect_err("it is refused").message, "Invalid params: expected an object");
    }

    #[test]
    fn errors_name_the_field_of_a_resource() {
        let check = |resource: Value, field: &str, message: &str| {
            let prompt = json!([{"type": "text", "text": "hi"}, {"type": "resource", "resource": resource}]);
            let found = refusal::<PromptRequest>(json!({"sessionId": "s", "prompt": prompt}));
            assert_eq!((found.0.as_str(), found.1.as_str()), (field, message));
        };
        let place = "prompt[1].resource";
        check(json!({"uri": "file:///a"}), place, "Invalid parameter prompt[1].resource: expected text or blob");
        check(json!({"text": "x"}), "prompt[1].resource.uri", "Missing parameter: prompt[1].resource.uri");
        let why = "Invalid parameter prompt[1].resource.text: expected a string";
        check(json!({"uri": "file:///a", "text": 5}), "prompt[1].resource.text", why);
        let blob = json!([{"type": "resource", "resource": {"uri": "file:///a", "text": null, "blob": "eA=="}}]);
        read::<PromptRequest>(json!({"sessionId": "s", "prompt": blob})).expect("null is nothing");
    }

    #[test]
    fn errors_name_the_field_of_an_mcp_server() {
        let check = |server: Value, field: &str, message: &str| {
            let found = refusal::<NewSessionRequest>(json!({"cwd": "/", "mcpServers": [server]}));
            assert_eq!((found.0.as_str(), found.1.as_str()), (field, message));
        };
        check(json!(7), "mcpServers[0]", "Invalid parameter mcpServers[0]: expected an object");
        let kind = "Unknown type of MCP server: acp. There are: stdio, http, sse";
        check(json!({"type": "acp", "name": "a"}), "mcpServers[0].type", kind);
        check(json!({"name": "a"}), "mcpServers[0].command", "Missing parameter: mcpServers[0].command");
        let url = json!({"type": "http", "name": "a", "url": 7});
        let why = "Invalid parameter mcpServers[0].url: invalid type: integer `7`, expected a string";
        check(url, "mcpServers[0].url", why);
        let header = json!({"type": "sse", "name": "a", "url": "https://a", "headers": [{"name": "H"}]});
        let field = "mcpServers[0].headers[0].value";
        check(header, field, &format!("Missing parameter: {field}"));
        let servers =
            json!([{"name": "a", "command": "a", "type": "stdio"}, {"name": "b", "url": "u", "type": "http"}]);
        let taken =
            read::<NewSessionRequest>(json!({"cwd": "/", "mcpServers": servers})).expect("lists may be left out");
        assert_eq!(taken.mcp_servers.len(), 2);
    }

    #[test]
    fn what_real_clients_leave_out_or_add_is_taken() {
        read::<InitializeRequest>(json!({"protocolVersion": 1})).expect("nothing but a version");
        let older = json!({"protocolVersion": 1, "clientCapabilities": {"fs": null, "mystery": 1}, "clientInfo": null});
        read::<InitializeRequest>(older).expect("unknown members and nulls");
        read::<NewSessionRequest>(json!({"cwd": "/w", "mcpServers": null, "_meta": {"systemPrompt": "Be short"}}))
            .expect("acpx");
    }
}
