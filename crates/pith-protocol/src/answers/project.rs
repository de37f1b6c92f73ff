//! Answers about what surrounds a session: commands, findings, changes, connections.

use serde::{Deserialize, Serialize};

/// Answer of `get_commands`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commands {
    pub commands: Vec<OfferedCommand>,
}

/// What can be sent as `/name arguments` in a prompt: the union of what older and newer hosts read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OfferedCommand {
    /// What follows the `/`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `extension`, `prompt` or `skill`.
    pub source: String,
    /// `user`, `project` or `path`; absent for extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    pub path: String,
    pub source_info: Source,
}

/// Where a command comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub path: String,
    /// `auto` for conventional directories, `local` for named paths, else who brought it.
    pub source: String,
    /// `user`, `project` or `temporary`.
    pub scope: String,
    /// `top-level` or `package`.
    pub origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

/// Answer of `get_diagnostics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostics {
    pub diagnostics: Vec<Diagnostic>,
}

/// One finding about a file, a directory or a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostic {
    #[serde(rename = "type")]
    pub kind: DiagnosticKind,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Stable name of the finding.
    pub code: String,
    /// Who lost against whom, for collisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision: Option<Collision>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticKind {
    /// Something was ignored or mended.
    Warning,
    /// Something that was asked for by name is not there.
    Error,
    /// Two resources want the same name.
    Collision,
}

/// Two resources of the same name; the first one found is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Collision {
    /// `skill` or `prompt`.
    pub resource_type: String,
    pub name: String,
    pub winner_path: String,
    pub loser_path: String,
}

/// Answer of `reload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reloaded {
    pub changes: Vec<ResourceChange>,
}

/// One difference between two readings of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceChange {
    /// `added`, `removed` or `changed`.
    pub change: String,
    /// `settings`, `skill`, `prompt`, `context_file`, `system_prompt` or `append_system_prompt`.
    pub resource: String,
    /// The skill, the template or the path of the context file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Answer of `get_integrations`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Integrations {
    pub version: String,
    pub model: Connection,
    /// pith has none; hosts of xcsh read the key.
    pub services: Vec<Service>,
}

/// What is known of the model's provider without asking it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connection {
    pub state: ConnectionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Whether a prompt to the model has a chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectionState {
    /// No model is selected.
    NoProvider,
    Connected,
    /// There is no usable credential.
    AuthError,
}

/// A service beside the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Service {
    pub name: String,
    pub state: ServiceState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Whether a service can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ServiceState {
    Connected,
    Unauthenticated,
    Unavailable,
}
