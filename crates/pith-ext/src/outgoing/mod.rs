//! The requests of extensions to the agent.
//!
//! Everything is sent as a [`FromExtension`] on one channel. Requests that need an answer carry the means to give it;
//! dropping that rejects the promise, so extension code never waits for nothing.

mod answer;
mod read;
mod transfer;
mod view;

pub use answer::{Answer, QueryReply};
pub(crate) use read::{read_ask, read_query, read_send};
pub use transfer::{FetchHead, FetchReply, FetchRequest, ModelReply, ModelRequest, ToolReply, ToolRequest};
pub use view::{ContextUsage, PromptView, ProviderView, SessionView, StateView, ToolsView};

use pith_protocol::host::{UiAnswer, UiRequest};
use pith_protocol::{Block, Content};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error in extension code; hosts see it as `extension_error`.
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

/// A request of an extension. Sent in the order in which they are made.
#[derive(Debug)]
pub enum FromExtension {
    /// Reports an error to the host.
    Error(ExtensionError),

    /// Asks the user of the host something.
    Dialog {
        request: UiRequest,
        answer: Answer<UiAnswer>,
    },
    /// Withdraws the dialog with this id (timeout, abort, end of its session).
    DialogWithdrawn {
        id: String,
    },
    /// Changes what the host displays; there is no answer.
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
    /// Appends a `custom` session entry.
    AppendEntry {
        custom_type: String,
        data: Option<Value>,
    },
    SetSessionName {
        name: String,
    },
    /// Sets or, with `None`, removes a label.
    SetLabel {
        entry_id: String,
        label: Option<String>,
    },
    /// Sets the active tools, from the next model request on. The session drops unknown names.
    SetActiveTools {
        names: Vec<String>,
    },
    /// Selects a model. Answered with `false` if there are no credentials for it.
    SetModel {
        model: Value,
        answer: Answer<bool>,
    },
    SetThinkingLevel {
        level: String,
    },
    /// Stops the run.
    Abort,
    /// Ends the process once the current command or run is done, with an exit status if the extension names one.
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

    /// Asks for key and headers for a model, or for a provider alone.
    ModelAuth {
        provider: String,
        model: Option<Value>,
        answer: Answer<ModelAuth>,
    },
    RefreshModels {
        answer: Answer<()>,
    },
    /// Sends one request to a model of the agent.
    Stream {
        request: ModelRequest,
        reply: ModelReply,
    },
    /// Sends an HTTP request.
    Fetch {
        request: FetchRequest,
        reply: FetchReply,
    },
    /// Runs a built-in tool that an extension wraps.
    RunTool {
        request: ToolRequest,
        reply: ToolReply,
    },

    /// Looks something up. The engine's thread waits, so answer at once.
    Query(Query),
}

/// Questions that are answered from the session's state alone.
#[derive(Debug)]
pub enum Query {
    State(QueryReply<StateView>),
    /// Entries from index `from` on, if `session_id` is still the session's; all of them otherwise.
    Session {
        session_id: Option<String>,
        from: usize,
        reply: QueryReply<SessionView>,
    },
    SystemPrompt(QueryReply<PromptView>),
    /// The prompt that edited options would give.
    BuildPrompt {
        options: Value,
        reply: QueryReply<String>,
    },
    /// The context as it would be with these drafts applied.
    Boundary {
        event: String,
        entries: Vec<Value>,
        reply: QueryReply<Value>,
    },
    Tools(QueryReply<ToolsView>),
    /// Extension commands, prompt templates and skills, as `get_commands` lists them.
    Commands(QueryReply<Vec<Value>>),
    Model {
        provider: String,
        id: String,
        reply: QueryReply<Option<Value>>,
    },
    Models {
        only_available: bool,
        reply: QueryReply<Vec<Value>>,
    },
    Provider {
        provider: Option<String>,
        reply: QueryReply<ProviderView>,
    },
}

/// A message of an extension for the conversation.
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

/// A prompt of an extension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDraft {
    pub text: String,
    pub images: Vec<Block>,
    pub deliver_as: Option<Delivery>,
    /// Whether templates, skills and commands in the text are expanded.
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

/// The outcome of replacing the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// Whether a handler refused.
    pub cancelled: bool,
}

/// What is needed to call a provider.
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
    /// `name`, `baseUrl`, `apiKey`, `api`, `headers`, `authHeader`, `models`; absent keys keep their values.
    pub config: Value,
    /// Whether the extension implements the models itself; see [`crate::ExtensionModels`].
    pub streams: bool,
    pub oauth: Option<ProviderLogin>,
    /// Whether the extension looks for the key itself and has found none.
    #[serde(default)]
    pub lacks_key: bool,
    /// Whether the extension can fetch a newer list of models.
    pub refreshes: bool,
}

/// A login that an extension offers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderLogin {
    pub name: String,
    pub is_subscription: bool,
    /// Whether the login changes the list of models.
    #[serde(default)]
    pub modifies: bool,
}
