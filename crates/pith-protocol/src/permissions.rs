//! Permissions: modes, verdicts, what silence means, the rules that hold, and how a host is asked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::Answer;
use crate::fields::{Field, FieldError, Place, read_word};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant),* }

        impl $name {
            /// Wire words and their meaning.
            pub const WORDS: &[(&str, $name)] = &[$(($word, $name::$variant)),*];

            /// Returns the wire word.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Returns what a word means.
            pub fn parse(word: &str) -> Option<$name> {
                $name::WORDS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
            }
        }
    )*};
}

words! {
    /// What becomes of calls that no rule is about: all run; reads and changes inside the workspace run, the rest is
    /// asked about; only reads run, the rest is asked about; only reads run, the rest is refused; none runs.
    #[derive(Default)]
    PermissionMode { #[default] Allow = "allow", Write = "write", Ask = "ask", ReadOnly = "read-only", Deny = "deny" }

    /// The modes of a session as editors name them: a [`PermissionMode`] each, all but `deny`.
    ApprovalMode { Full = "full", Write = "write", Ask = "ask", ReadOnly = "read-only" }

    /// What becomes of a call, the strictest last.
    Verdict { Allow = "allow", Ask = "ask", Deny = "deny" }

    /// What silence means.
    #[derive(Default)]
    Unattended { #[default] Deny = "deny", Allow = "allow" }
}

impl ApprovalMode {
    /// Returns the name of a mode, if it has one.
    pub fn of(mode: PermissionMode) -> Option<ApprovalMode> {
        ApprovalMode::WORDS.iter().map(|(_, named)| *named).find(|named| PermissionMode::from(*named) == mode)
    }
}

impl From<ApprovalMode> for PermissionMode {
    fn from(mode: ApprovalMode) -> Self {
        match mode {
            ApprovalMode::Full => PermissionMode::Allow,
            ApprovalMode::Write => PermissionMode::Write,
            ApprovalMode::Ask => PermissionMode::Ask,
            ApprovalMode::ReadOnly => PermissionMode::ReadOnly,
        }
    }
}

impl Field for ApprovalMode {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<ApprovalMode>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        read_word(value, place, ApprovalMode::WORDS)
    }
}

impl Field for PermissionMode {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<PermissionMode>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        read_word(value, place, PermissionMode::WORDS)
    }
}

/// Answer of `get_permissions` and `set_permissions`: what holds now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Permissions {
    pub mode: PermissionMode,
    pub deny: Vec<PermissionRule>,
    /// What the user has answered; comes before `ask`.
    pub granted: Vec<PermissionRule>,
    pub ask: Vec<PermissionRule>,
    pub allow: Vec<PermissionRule>,
    /// What silence means.
    pub unattended: Unattended,
    /// How long a question waits, if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

impl Answer for Permissions {}

/// A rule, and who made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionRule {
    pub rule: String,
    /// A file, a flag, or words.
    pub from: String,
}

/// A question whether a tool call may run, and its withdrawal, for hosts that accept them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(clippy::large_enum_variant, reason = "there is one question at a time")]
pub enum PermissionFrame {
    PermissionRequest {
        id: String,
        tool_call_id: String,
        tool_name: String,
        /// As they would be used.
        arguments: Map<String, Value>,
        cwd: String,
        /// Why it is asked, for people.
        reason: String,
        /// The simple commands of a shell command.
        parts: Vec<CommandPart>,
        /// What of a shell command is not understood.
        opaque: Vec<String>,
        /// Files that redirections of a shell command write.
        writes: Vec<String>,
        /// The profile of the sandbox it would run in; `off` without one.
        sandbox: String,
        options: Vec<PermissionOption>,
        /// Milliseconds after which nobody is waited for any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    PermissionCancelled {
        id: String,
    },
}

/// A simple command, and what is thought of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandPart {
    pub words: Vec<String>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// An answer that is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionOption {
    pub id: OptionId,
    pub kind: OptionKind,
    /// What it would allow from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

words! {
    /// What an answer means: this call; what the option's rule says, or else this very call again, in this session; what
    /// its rule says in this project; similar calls in this project, as its rule says; not this call; not this call, and
    /// the run ends.
    OptionId {
        Once = "once",
        Session = "session",
        Project = "project",
        Similar = "similar",
        Deny = "deny",
        Stop = "stop",
    }

    /// What kind of answer it is, in the words of the Agent Client Protocol.
    OptionKind {
        AllowOnce = "allow_once",
        AllowAlways = "allow_always",
        RejectOnce = "reject_once",
        RejectAlways = "reject_always",
    }
}

impl OptionId {
    /// Returns what kind of answer it is.
    pub fn kind(self) -> OptionKind {
        match self {
            OptionId::Once => OptionKind::AllowOnce,
            OptionId::Session | OptionId::Project | OptionId::Similar => OptionKind::AllowAlways,
            OptionId::Deny => OptionKind::RejectOnce,
            OptionId::Stop => OptionKind::RejectAlways,
        }
    }
}
