//! The one frame every command gets.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{CommandError, ErrorCode};

/// A response. Key order is the peers'.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Response<'a> {
    /// The command's, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
    pub id: Option<Cow<'a, RawValue>>,
    #[serde(rename = "type")]
    kind: Kind,
    pub command: Cow<'a, str>,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
    pub data: Option<Cow<'a, RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// What kind of failure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Stands in for `id` where a dialect drops it.
    #[serde(default, rename = "requestId", skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
    pub request_id: Option<Cow<'a, RawValue>>,
}

/// The one word that `type` can be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "response")]
    Response,
}

impl<'a> Response<'a> {
    /// A success, with data if the command has any.
    pub fn success(id: Option<&'a RawValue>, command: &'a str, data: Option<&'a RawValue>) -> Self {
        let data = data.map(Cow::Borrowed);
        Response { success: true, data, error: None, code: None, ..Response::to(id, command) }
    }

    /// A failure; the text says what and, where known, what to do.
    pub fn failure(id: Option<&'a RawValue>, command: &'a str, error: &'a CommandError) -> Self {
        Response { error: Some(Cow::Borrowed(&error.text)), code: Some(error.code), ..Response::to(id, command) }
    }

    fn to(id: Option<&'a RawValue>, command: &'a str) -> Self {
        Response {
            id: id.map(Cow::Borrowed),
            kind: Kind::Response,
            command: Cow::Borrowed(command),
            success: false,
            data: None,
            error: None,
            code: None,
            request_id: None,
        }
    }
}

/// Keeps `null`, which is a value here.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'static, RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(|raw| Some(Cow::Owned(raw)))
}
