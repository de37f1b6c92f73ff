//! Why a command failed: a text for people, a code for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// Stable names of failures. The text of a failure may change, its code does not; hosts ignore codes they do
        /// not know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ErrorCode { $($(#[doc = $doc])* #[serde(rename = $word)] $name),* }

        impl ErrorCode {
            /// Every code and what it means.
            pub const ALL: &[(ErrorCode, &str, &str)] = &[$((ErrorCode::$name, $word, concat!($($doc),*))),*];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$name => $word),* }
            }
        }
    };
}

codes! {
    /// The line is no JSON object with a `type`, or too long or too deep.
    Parse = "parse_error",
    /// There is no such command.
    UnknownCommand = "unknown_command",
    /// A required field is absent.
    MissingField = "missing_field",
    /// A field has a type or value the command cannot use.
    InvalidField = "invalid_field",
    /// The model works, and the command did not say how to join in.
    Busy = "busy",
    /// A summary is being written.
    Compacting = "compacting",
    /// No model is selected.
    NoModel = "no_model",
    /// There is no such model, or no credential for it.
    ModelNotFound = "model_not_found",
    /// The model cannot be used: no credential, or an API that pith does not speak.
    ModelUnusable = "model_unusable",
    /// The host has aborted it.
    Aborted = "aborted",
    /// The session is ending.
    Closing = "closing",
    /// The session is too small, or was compacted just now.
    NothingToCompact = "nothing_to_compact",
    /// An extension or the host cancelled the compaction.
    Cancelled = "cancelled",
    /// The model could not write the summary.
    SummaryFailed = "summary_failed",
    /// There is no such session file.
    SessionNotFound = "session_not_found",
    /// The file is no session, damaged beyond use, too large or of a newer format.
    SessionInvalid = "session_invalid",
    /// Another process is running on the session.
    SessionInUse = "session_in_use",
    /// The working directory of the session does not exist.
    DirectoryMissing = "directory_missing",
    /// There is no such entry, or none that the command can be used on.
    EntryNotFound = "entry_not_found",
    /// There is no such checkpoint.
    CheckpointNotFound = "checkpoint_not_found",
    /// The session has nothing yet that could be copied or exported, or is in memory only.
    NothingThere = "nothing_there",
    /// A file could not be read or written.
    Io = "io_error",
    /// Commands of extensions cannot be queued.
    NotQueueable = "not_queueable",
    /// The tools of the host cannot be taken as they are.
    HostTool = "host_tool_refused",
    /// The sandbox cannot be changed like that.
    Sandbox = "sandbox_refused",
    /// A limit of the user is reached, or cannot be read.
    Limit = "limit_reached",
    /// There is no such MCP server, or it cannot be taken as it is.
    Mcp = "mcp_refused",
    /// An extension has failed, or refused.
    Extension = "extension_failed",
    /// The shell command could not be run.
    Shell = "shell_failed",
    /// A defect of pith.
    Internal = "internal_error",
}

/// A failure of a command. `Display` is the text on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    pub code: ErrorCode,
    pub text: String,
}

impl CommandError {
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        CommandError { code, text: text.into() }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for CommandError {}

impl From<CommandError> for String {
    fn from(error: CommandError) -> String {
        error.text
    }
}

impl From<crate::fields::FieldError> for CommandError {
    fn from(error: crate::fields::FieldError) -> Self {
        CommandError { code: error.code(), text: error.to_string() }
    }
}
