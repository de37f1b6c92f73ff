//! The audit: what was asked, allowed, refused or limited, as entries of the session file that pi keeps and ignores.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answers::SkippedFile;
use crate::commands::Answer;
use crate::events::SandboxDenial;
use crate::limits::{Amount, LimitName};

/// The `customType` of the entries.
pub const AUDIT: &str = "pith.audit";

/// One thing that happened. A `kind` of a later version is kept as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AuditRecord {
    /// A tool call was allowed or refused.
    Permission(PermissionRecord),
    /// The host has changed the sandbox.
    Sandbox(SandboxRecord),
    /// The sandbox has refused a tool call something.
    Denied(DeniedRecord),
    /// A limit was reached.
    Limit(LimitRecord),
    /// Files were put back.
    Restore(RestoreRecord),
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// A sandbox from the moment on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxRecord {
    pub profile: String,
    pub enforced: bool,
}

/// What a tool call did not get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeniedRecord {
    pub tool_call_id: String,
    pub tool: String,
    pub denied: SandboxDenial,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What a host was refused by, as its command was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who decided about a tool call, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRecord {
    pub tool_call_id: String,
    pub tool: String,
    pub decision: PermissionDecision,
    pub by: PermissionBy,
    /// How long an answer of the user holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<PermissionScope>,
    /// The rule that decided, or that the answer has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How long the call waited for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
}

/// Which limit ended something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LimitRecord {
    pub limit: LimitName,
    pub used: Amount,
    pub max: Amount,
    /// The call it ended; absent if it ended the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// Which files went back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RestoreRecord {
    pub restored: Vec<String>,
    pub skipped: Vec<SkippedFile>,
    /// The checkpoint that takes it back.
    pub undo_id: String,
}

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant),* }

        impl $name {
            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
        }
    )*};
}

words! {
    /// Whether the call ran.
    PermissionDecision { Allow = "allow", Deny = "deny" }

    /// Who decided.
    PermissionBy {
        /// The host's user.
        User = "user",
        /// A rule of the settings, the command line or an earlier answer.
        Rule = "rule",
        /// The mode, because no rule matched.
        Mode = "mode",
        /// Nobody answered in time, so `permissions.unattended` decided.
        Timeout = "timeout",
        /// Nobody could be asked, so `permissions.unattended` decided.
        Unattended = "unattended",
        Extension = "extension",
        /// The question was withdrawn: the run was stopped, or the session ended or gave way to another.
        Abort = "abort",
    }

    /// For what an answer holds.
    PermissionScope { Once = "once", Session = "session", Project = "project" }
}

/// An entry of the audit, as the session file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "custom", rename_all = "camelCase")]
pub struct AuditEntry {
    pub id: String,
    /// The entry this one follows; `null` for a root.
    pub parent_id: Option<String>,
    /// ISO 8601, UTC.
    pub timestamp: String,
    /// Always `pith.audit`.
    pub custom_type: String,
    pub data: AuditRecord,
}

/// Answer of `get_audit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// In file order, every branch.
    pub entries: Vec<AuditEntry>,
}

impl Answer for Audit {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::to_string;

    #[test]
    fn records_are_written_as_documented() {
        let record = AuditRecord::Permission(PermissionRecord {
            tool_call_id: "toolu_1".into(),
            tool: "bash".into(),
            decision: PermissionDecision::Allow,
            by: PermissionBy::User,
            scope: Some(PermissionScope::Once),
            rule: Some("bash(git push:*)".into()),
            waited_ms: Some(4210),
        });
        let written = r#"{"kind":"permission","toolCallId":"toolu_1","tool":"bash","decision":"allow","by":"user","scope":"once","rule":"bash(git push:*)","waitedMs":4210}"#;
        assert_eq!(to_string(&record), written);
        assert_eq!(serde_json::from_str::<AuditRecord>(written).ok(), Some(record));
    }

    #[test]
    fn kinds_of_later_versions_are_kept() {
        let later = r#"{"kind":"weather","sun":true}"#;
        let record: AuditRecord = serde_json::from_str(later).expect("any object is a record");
        assert_eq!(to_string(&record), later);
    }
}
