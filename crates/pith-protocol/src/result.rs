//! The last line of `--mode json`: what came of the work, for scripts that want no events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ErrorKind, StopReason, Usage};

/// What came of all prompts of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "result", rename_all = "camelCase")]
pub struct ResultRecord {
    /// The text of the last answer.
    pub text: String,
    /// Why the last answer ended; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The answer as a value, if `--output-schema` was given and it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The first thing that failed; absent if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
    /// Tokens of all answers, of tools that asked models and of compactions.
    pub usage: Usage,
    /// US dollars, the same as `usage.cost.total`.
    pub cost: f64,
    /// Answers that did not fail.
    pub turns: u32,
    pub session_id: String,
    /// Absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}

/// Why the work failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResultError {
    /// For people.
    pub message: String,
    /// Absent if no model call failed: a refused prompt, an answer that does not fit its schema, an interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The HTTP status of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}
