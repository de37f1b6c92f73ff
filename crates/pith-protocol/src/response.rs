//! The one frame every command gets.

use serde::Serialize;
use serde_json::value::RawValue;

/// A response. Key order is the peers'.
#[derive(Clone, Debug, Serialize)]
pub struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: &'static str,
    pub command: &'a str,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// Stands in for `id` where a dialect drops it.
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a RawValue>,
}

impl<'a> Response<'a> {
    /// A success, with data if the command has any.
    pub fn success(id: Option<&'a RawValue>, command: &'a str, data: Option<&'a RawValue>) -> Self {
        Response { id, kind: "response", command, success: true, data, error: None, request_id: None }
    }

    /// A failure; the text says what and, where known, what to do.
    pub fn failure(id: Option<&'a RawValue>, command: &'a str, error: &'a str) -> Self {
        Response { id, kind: "response", command, success: false, data: None, error: Some(error), request_id: None }
    }
}
