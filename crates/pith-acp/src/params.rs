//! Decodes the parameters of a request; errors name the parameter.

use agent_client_protocol_schema::v1::{Error, McpServerHttp, McpServerSse, McpServerStdio};
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
    decode(params, "")
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
