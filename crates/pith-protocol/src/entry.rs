//! The lines of a session file, as `get_entries`, `get_tree` and `entry_appended` show them: exactly what the file has.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Content, Message, ThinkingLevel, Usage};

/// The first line of a session file. Not an entry: it has no place in the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "session", rename_all = "camelCase")]
pub struct SessionHeader {
    /// Of the format; 3 today.
    pub version: u32,
    pub id: String,
    /// ISO 8601, UTC.
    pub timestamp: String,
    pub cwd: String,
    /// The file this session was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// Any other line. Types we do not know round-trip untouched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    Message(Box<MessageEntry>),
    ModelChange(ModelChangeEntry),
    ThinkingLevelChange(ThinkingLevelChangeEntry),
    SessionInfo(SessionInfoEntry),
    Label(LabelEntry),
    Compaction(CompactionEntry),
    BranchSummary(BranchSummaryEntry),
    Custom(CustomEntry),
    CustomMessage(CustomMessageEntry),
    ContextEdit(ContextEditEntry),
    Usage(UsageEntry),
    /// Of another agent or a later version.
    #[serde(untagged)]
    Other(#[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::other_entry"))] Map<String, Value>),
}

/// What the model sees instead of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replacement {
    pub content: Content,
}

macro_rules! entries {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            pub id: String,
            /// The entry this one follows; `null` for a root.
            pub parent_id: Option<String>,
            /// ISO 8601, UTC.
            pub timestamp: String,
            $($(#[$field_meta])* pub $field: $type,)*
            /// Members of other agents.
            #[serde(flatten)]
            pub extra: Map<String, Value>,
        }
    )*};
}

entries! {
    /// A message of the conversation.
    MessageEntry {
        message: Message,
    }
    /// Another model from here on.
    ModelChangeEntry {
        provider: String,
        model_id: String,
    }
    /// Another thinking level from here on.
    ThinkingLevelChangeEntry {
        thinking_level: ThinkingLevel,
    }
    /// The name of the session; the last one in the file counts, an empty one removes it.
    SessionInfoEntry {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
    /// A bookmark on another entry; without a label it is removed.
    LabelEntry {
        target_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    }
    /// Everything before `firstKeptEntryId` is replaced by a summary.
    CompactionEntry {
        summary: String,
        first_kept_entry_id: String,
        tokens_before: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// An extension wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    }
    /// What happened on a branch that was left.
    BranchSummaryEntry {
        /// The leaf that was left, or `root`.
        from_id: String,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// An extension wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    }
    /// Data of an extension, out of the model's sight.
    CustomEntry {
        custom_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    }
    /// A message placed by an extension.
    CustomMessageEntry {
        custom_type: String,
        content: Content,
        display: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    }
    /// Changes how the model sees an earlier message; `null` hides it.
    ContextEditEntry {
        target_id: String,
        replacement: Option<Replacement>,
    }
    /// Tokens spent beside the conversation; read, never written.
    UsageEntry {
        kind: String,
        provider: String,
        model: String,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
}

impl Entry {
    /// The types pith writes or reads.
    pub const TYPES: &[&str] = &[
        "message",
        "model_change",
        "thinking_level_change",
        "session_info",
        "label",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "context_edit",
        "usage",
    ];

    /// Takes an entry as the file has it.
    pub fn from_object(object: Map<String, Value>) -> Entry {
        serde_json::from_value(Value::Object(object.clone())).unwrap_or(Entry::Other(object))
    }
}
