//! What extensions want from the agent.
//!
//! Everything leaves as a [`FromExtension`] on one channel. Requests that need
//! an answer carry the means to give it; dropping it answers with a failure, so
//! extension code is never left waiting by accident.

mod answer;
mod read;
mod transfer;
mod view;

pub use answer::{Answer, Asked};
pub(crate) use read::{read_ask, read_query, read_send};
pub use transfer::{FetchHead, FetchReply, FetchRequest, ModelReply, ModelRequest, ToolReply, ToolRequest};
pub use view::{ContextUsage, PromptView, ProviderView, SessionView, StateView, ToolsView};

use pith_protocol::host::{UiAnswer, UiRequest};
use pith_protocol::{Block, Content};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A failure somewhere in extension code; hosts see it as `extension_error`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ExtensionError {
    #[serde(rename = "extensionPath")]
    pub path: String,
    pub event: String,
    pub error: String,
    /// For the log, never for the wire.
    #[serde(default)]
    pub stack: Option<String>,
}

/// One wish of an extension, in the order they were made.
#[derive(Debug)]
pub enum FromExtension {
    /// Something went wrong; the host is told.
    Error(ExtensionError),

    /// A question for the person in front of the host.
    Dialog {
        request: UiRequest,
        answer: Answer<UiAnswer>,
    },
    /// The dialog with this id is no longer of interest (timeout, abort, end of its session).
    DialogWithdrawn {
        id: String,
    },
    /// A display change; nobody waits.
    Display(UiRequest),

    /// Tools, commands or flags changed after the session began. [`crate::ExtensionHandle::registry`] has the new ones.
    RegistryChanged,
    RegisterProvider(ProviderRegistration),
    UnregisterProvider {
        name: String,
    },

    /// `pi.sendMessage`.
    SendMessage {
        message: CustomDraft,
        answer: Answer<()>,
    },
    /// `pi.sendUserMessage`.
    SendUserMessage {
        message: UserDraft,
        answer: Answer<()>,
    },
    /// A `custom` session entry.
    AppendEntry {
        custom_type: String,
        data: Option<Value>,
    },
    SetSessionName {
        name: String,
    },
    /// `None` removes the label.
    SetLabel {
        entry_id: String,
        label: Option<String>,
    },
    /// Unknown names are dropped by the session; takes effect with the next model request.
    SetActiveTools {
        names: Vec<String>,
    },
    /// Answered with `false` when there are no credentials for it.
    SetModel {
        model: Value,
        answer: Answer<bool>,
    },
    SetThinkingLevel {
        level: String,
    },
    /// Stop the run.
    Abort,
    /// Leave once the current command or run is done, with an exit status if the extension has named one.
    Shutdown {
        status: Option<u8>,
    },
    /// Answered with the compaction's result.
    Compact {
        custom_instructions: Option<String>,
        answer: Answer<Value>,
    },

    WaitForIdle {
        answer: Answer<()>,
    },
    NewSession {
        parent_session: Option<String>,
        entries: Vec<Value>,
        answer: Answer<Replaced>,
    },
    Fork {
        entry_id: String,
        position: ForkPosition,
        answer: Answer<Replaced>,
    },
    SwitchSession {
        path: String,
        answer: Answer<Replaced>,
    },
    NavigateTree {
        navigation: Navigation,
        answer: Answer<Replaced>,
    },
    Reload {
        answer: Answer<()>,
    },

    /// Key and headers for a model, or for a provider alone.
    ModelAuth {
        provider: String,
        model: Option<Value>,
        answer: Answer<ModelAuth>,
    },
    RefreshModels {
        answer: Answer<()>,
    },
    /// One request to a model of the agent's own.
    Stream {
        request: ModelRequest,
        reply: ModelReply,
    },
    /// An HTTP request.
    Fetch {
        request: FetchRequest,
        reply: FetchReply,
    },
    /// A built-in tool, called by an extension that wraps it.
    RunTool {
        request: ToolRequest,
        reply: ToolReply,
    },

    /// Something to look up. The extension's thread waits, so answer at once.
    Query(Query),
}

/// Questions answered from the session's state alone.
#[derive(Debug)]
pub enum Query {
    State(Asked<StateView>),
    /// Entries from index `from` on, if `session_id` is still the session's; all of them otherwise.
    Session {
        session_id: Option<String>,
        from: usize,
        reply: Asked<SessionView>,
    },
    SystemPrompt(Asked<PromptView>),
    /// The prompt that edited options would give.
    BuildPrompt {
        options: Value,
        reply: Asked<String>,
    },
    /// What the context would be if these drafts were applied.
    Boundary {
        event: String,
        entries: Vec<Value>,
        reply: Asked<Value>,
    },
    Tools(Asked<ToolsView>),
    /// Extension commands, prompt templates and skills, as `get_commands` lists them.
    Commands(Asked<Vec<Value>>),
    Model {
        provider: String,
        id: String,
        reply: Asked<Option<Value>>,
    },
    Models {
        only_available: bool,
        reply: Asked<Vec<Value>>,
    },
    Provider {
        provider: Option<String>,
        reply: Asked<ProviderView>,
    },
}

/// A message for the conversation, placed by an extension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomDraft {
    pub custom_type: String,
    pub content: Content,
    pub display: bool,
    pub details: Option<Value>,
    pub trigger_turn: Option<bool>,
    pub deliver_as: Option<Delivery>,
}

/// A prompt written by an extension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDraft {
    pub text: String,
    pub images: Vec<Block>,
    pub deliver_as: Option<Delivery>,
    /// Templates, skills and commands in the text are carried out.
    pub expand: bool,
}

/// When a message of an extension reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    Steer,
    FollowUp,
    NextTurn,
}

/// Where a fork starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForkPosition {
    Before,
    At,
}

/// A move within the session's tree.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigation {
    pub target_id: String,
    pub summarize: bool,
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    pub label: Option<String>,
}

/// Outcome of replacing the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// A handler refused.
    pub cancelled: bool,
}

/// What is needed to talk to a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAuth {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

/// A provider registered by an extension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRegistration {
    pub name: String,
    pub extension_path: String,
    /// `name`, `baseUrl`, `apiKey`, `api`, `headers`, `authHeader`, `models`; absent keys keep what there is.
    pub config: Value,
    /// The extension answers for the models itself; see [`crate::ExtensionModels`].
    pub streams: bool,
    pub oauth: Option<ProviderLogin>,
    /// The extension can fetch a newer list of models.
    pub refreshes: bool,
}

/// A log-in an extension offers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderLogin {
    pub name: String,
    pub is_subscription: bool,
    /// The log-in decides about the models.
    #[serde(default)]
    pub modifies: bool,
}
