//! What a host is told about the sandbox of a session.

use serde::{Deserialize, Serialize};

/// What is enforced. Absent from `get_state` if no sandbox was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// `read-only`, `workspace-write` or `custom`; `unknown` if the settings that name it cannot be read.
    pub profile: String,
    /// Whether tools run; if not, `error` says why each call is refused.
    pub enforced: bool,
    /// `full`, `strict` or `best-effort`.
    pub require: String,
    /// The level of Landlock that this kernel offers.
    pub landlock_abi: u32,
    pub seccomp: bool,
    pub namespaces: bool,
    /// Who holds commands to the policy: `kernel`.
    pub filesystem: String,
    /// Who holds file tools to the policy: `kernel`.
    pub file_tools: String,
    /// `restored`: a protected path that a command changes is put back at once and the command ends.
    pub protected_paths: String,
    /// `on` or `off`.
    pub network: String,
    /// `on` or `off`.
    pub unix_sockets: String,
    pub writable: Vec<String>,
    /// Gaps that stay open on this kernel.
    pub missing: Vec<String>,
    /// What runs with the rights of the user all the same.
    pub unconfined: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
