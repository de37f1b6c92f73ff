//! Decodes the parameters of a request; errors name the parameter.

use agent_client_protocol_schema::v1::Error;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::invalid_params;

/// Reads the parameters as the type of the method.
pub fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    let params = match params {
        Value::Null => Value::Object(Map::new()),
        Value::Object(_) => params,
        _ => return Err(invalid_params("params", "Invalid params: expected an object")),
    };
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let why = error.inner().to_string();
        let missing = why.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        match (missing, path.as_str()) {
            (Some(name), "." | "") => invalid_params(name, format!("Missing parameter: {name}")),
            (Some(name), path) => {
                invalid_params(&format!("{path}.{name}"), format!("Missing parameter: {path}.{name}"))
            }
            (None, "." | "") => invalid_params("params", format!("Invalid params: {why}")),
            (None, path) => invalid_params(path, format!("Invalid parameter {path}: {why}")),
        }
    })
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
    fn what_real_clients_leave_out_or_add_is_taken() {
        read::<InitializeRequest>(json!({"protocolVersion": 1})).expect("nothing but a version");
        let older = json!({"protocolVersion": 1, "clientCapabilities": {"fs": null, "mystery": 1}, "clientInfo": null});
        read::<InitializeRequest>(older).expect("unknown members and nulls");
        read::<NewSessionRequest>(json!({"cwd": "/w", "mcpServers": null, "_meta": {"systemPrompt": "Be short"}}))
            .expect("acpx");
    }
}
