//! The errors of the protocol, as pith uses them.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use serde_json::json;

fn of(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// The line is no JSON.
pub fn parse(message: impl Into<String>) -> Error {
    of(ErrorCode::ParseError, message)
}

/// The frame is JSON, but no request that can be served.
pub fn invalid_request(message: impl Into<String>) -> Error {
    of(ErrorCode::InvalidRequest, message)
}

/// There is no such method.
pub fn unknown_method(method: &str) -> Error {
    of(ErrorCode::MethodNotFound, format!("Method not found: {method}"))
}

/// A parameter is missing or wrong; `data` names it.
pub fn invalid_params(field: &str, message: impl Into<String>) -> Error {
    of(ErrorCode::InvalidParams, message).data(json!({ "field": field }))
}

/// The session is not open, or there is no file of it.
pub fn no_session(id: &str) -> Error {
    of(ErrorCode::ResourceNotFound, format!("Session not found: {id}")).data(json!({ "sessionId": id }))
}

/// Something failed on pith's side.
pub fn internal(message: impl Into<String>) -> Error {
    of(ErrorCode::InternalError, message)
}

/// A key is needed, or was refused.
pub fn auth_required(message: impl Into<String>) -> Error {
    of(ErrorCode::AuthRequired, message)
}

/// The client has withdrawn the request.
pub fn cancelled() -> Error {
    Error::request_cancelled()
}
