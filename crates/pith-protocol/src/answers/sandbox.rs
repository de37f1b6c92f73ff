//! What a host is told about the sandbox of a session.

use serde::{Deserialize, Serialize};

use crate::commands::{Answer, SandboxProfile};

/// What is enforced. Absent from `get_state` if no sandbox was asked for. With profile `off`, or if the sandbox cannot be
/// had, there are only `profile`, `enforced` and perhaps `error`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// `off`, `read-only`, `workspace-write` or `custom`; `unknown` if the settings that name it cannot be read.
    pub profile: String,
    /// Whether tools are confined; if not, `error` says why each call is refused, unless the profile is `off`.
    pub enforced: bool,
    /// `full`, `strict` or `best-effort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require: Option<String>,
    /// The level of Landlock that this kernel offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock_abi: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<bool>,
    /// Whether commands run in namespaces of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<bool>,
    /// Who holds commands to the policy: `kernel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Who holds file tools to the policy: `kernel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_tools: Option<String>,
    /// `kernel`: commands cannot change a protected path. `restored`: one that a command changes is put back at once and
    /// the command ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_paths: Option<String>,
    /// `on`, `domains` or `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// `on` or `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_sockets: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable: Option<Vec<String>>,
    /// Gaps that stay open on this kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// What runs with the rights of the user all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In the answer of `set_sandbox`: the commands that still run as they were started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_commands: Vec<String>,
}

impl SandboxState {
    /// No sandbox.
    pub fn off() -> SandboxState {
        SandboxState { profile: SandboxProfile::Off.as_str().to_owned(), ..SandboxState::default() }
    }
}

impl Answer for SandboxState {}
