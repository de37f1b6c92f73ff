//! The session as extensions can query it.

use std::sync::Arc;

use pith_protocol::Model;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Small values that change often.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateView {
    pub model: Option<Arc<Model>>,
    pub thinking_level: String,
    pub is_idle: bool,
    pub has_pending_messages: bool,
    pub is_project_trusted: bool,
    pub context_usage: Option<ContextUsage>,
    /// `{model, thinkingLevel?}` of the models in scope.
    pub scoped_models: Vec<Value>,
    pub session_name: Option<String>,
}

/// How full the context window is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// `None` right after a compaction.
    pub tokens: Option<u64>,
    pub context_window: u64,
    pub percent: Option<f64>,
}

/// The session file, or its new part.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    pub session_id: String,
    pub session_file: Option<String>,
    pub session_dir: String,
    pub cwd: String,
    pub name: Option<String>,
    pub leaf_id: Option<String>,
    pub header: Value,
    /// The index of the first entry in `entries`; the requested one, unless the session is another one.
    pub from: usize,
    /// An array, as text: long sessions are not parsed on the way.
    pub entries: Box<RawValue>,
}

/// The current system prompt and what it is made of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PromptView {
    pub text: String,
    pub options: Value,
}

/// The names of the active tools, and all tools.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolsView {
    pub active: Vec<String>,
    /// `{name, description, parameters, promptGuidelines, sourceInfo}`, built-ins included.
    pub all: Vec<Value>,
}

/// What is known of a provider without a request to it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderView {
    pub name: Option<String>,
    pub has_auth: bool,
    pub is_o_auth: bool,
    /// Where the credentials come from.
    pub source: Option<String>,
    pub label: Option<String>,
    /// Why the list of models could not be read.
    pub error: Option<String>,
}
