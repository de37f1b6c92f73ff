//! How an answer grows: the frame of one step.

use serde::{Deserialize, Serialize};

use crate::{Block, Message, Usage};

/// The growth of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageUpdate {
    /// Tokens counted so far.
    pub usage: Usage,
    pub assistant_message_event: Growth,
    /// The whole message so far; only with stream updates `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// One step in which an answer grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    #[serde(flatten)]
    pub step: Step,
    /// Which block of the content grows.
    pub content_index: usize,
    /// The whole message so far; only with stream updates `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Message>,
}

/// What is new. Concatenated, the deltas of a block are its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Step {
    TextStart,
    TextDelta {
        delta: String,
    },
    TextEnd {
        content: String,
    },
    ThinkingStart,
    ThinkingDelta {
        delta: String,
    },
    ThinkingEnd {
        content: String,
    },
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        id: String,
        tool_name: String,
    },
    /// A piece of the argument text.
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        delta: String,
    },
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        tool_call: Block,
    },
}
