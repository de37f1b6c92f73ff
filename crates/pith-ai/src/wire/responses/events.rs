//! What the events of a Responses answer look like.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::common::{Bill, Count, Loose};

#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Cow<'a, str>,
    #[serde(default)]
    pub output_index: Count,
    #[serde(borrow, default)]
    pub item_id: Loose<'a>,
    #[serde(borrow, default)]
    pub delta: Loose<'a>,
    #[serde(borrow, default)]
    pub arguments: Loose<'a>,
    #[serde(borrow, default)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub message: Loose<'a>,
}

/// The parts of an item that are looked at; a reasoning item is kept whole besides.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub r#type: String,
    pub id: String,
    pub call_id: String,
    pub name: String,
    pub arguments: String,
    pub phase: Option<String>,
    pub summary: Option<Vec<Piece>>,
    pub content: Option<Vec<Piece>>,
    pub encrypted_content: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    pub text: String,
    pub refusal: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub id: String,
    pub status: Option<String>,
    pub incomplete_details: Option<Incomplete>,
    pub error: Option<ErrorBody>,
    pub usage: Option<Counts>,
    pub service_tier: Option<String>,
    pub output: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    pub reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBody {
    pub code: Option<Value>,
    pub message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub total_tokens: Count,
    pub input_tokens_details: Option<InputDetails>,
    pub output_tokens_details: Option<OutputDetails>,
    #[serde(flatten)]
    pub bill: Bill,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct InputDetails {
    pub cached_tokens: Count,
    pub cache_write_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub reasoning_tokens: Count,
}

impl Item {
    pub fn is_call(&self) -> bool {
        self.r#type == "function_call"
    }
}
