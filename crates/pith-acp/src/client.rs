//! What a client can show and do, and what it is told of pith.

use std::path::Path;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, ClientCapabilities, Implementation,
    InitializeRequest, InitializeResponse, McpCapabilities, Meta, PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionForkCapabilities, SessionListCapabilities, SessionResumeCapabilities, SessionStatusCapabilities,
    SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities,
    SessionTitleCapabilities,
};
use serde_json::{Value, json};

/// A client as it introduced itself.
#[derive(Clone, Debug, Default)]
pub struct Client {
    capabilities: ClientCapabilities,
}

impl Client {
    /// Takes the client's introduction.
    pub fn of(request: InitializeRequest) -> Self {
        Client { capabilities: request.client_capabilities }
    }

    /// Whether it shows notices beside the conversation.
    pub fn shows_notices(&self) -> bool {
        self.capabilities.session.as_ref().is_some_and(|session| session.notices.is_some())
    }

    /// Whether it shows compactions as such.
    pub fn shows_compactions(&self) -> bool {
        self.capabilities.session.as_ref().is_some_and(|session| session.compaction.is_some())
    }

    /// Whether config options may be switches.
    pub fn takes_booleans(&self) -> bool {
        let options = self.capabilities.session.as_ref().and_then(|session| session.config_options.as_ref());
        options.is_some_and(|options| options.boolean.is_some())
    }

    /// Whether it tells the text of files as its buffers have it.
    pub fn reads_files(&self) -> bool {
        self.capabilities.fs.read_text_file
    }

    /// Whether it changes files in its buffers.
    pub fn writes_files(&self) -> bool {
        self.capabilities.fs.write_text_file
    }

    /// Whether it runs commands in terminals of its own.
    pub fn has_terminals(&self) -> bool {
        self.capabilities.terminal
    }

    /// Whether it asks its user with forms.
    pub fn shows_forms(&self) -> bool {
        self.capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.supports_form())
    }

    /// Whether it opens pages for its user.
    pub fn opens_pages(&self) -> bool {
        self.capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.supports_url())
    }

    /// Whether it shows the output of commands in a terminal of its own, fed by updates (Zed).
    pub fn shows_terminal_output(&self) -> bool {
        self.meta("terminal_output") == Some(&Value::Bool(true))
    }

    /// How its user can sign in: by `arguments` in a terminal, if it opens one for that. `program` is where pith is.
    pub fn auth_methods(&self, program: &Path, arguments: &[&str]) -> Vec<AuthMethod> {
        let words = arguments.iter().map(|&word| word.to_owned()).collect();
        if self.capabilities.auth.terminal {
            vec![AuthMethod::Terminal(AuthMethodTerminal::new(SETUP, SETUP_NAME).args(words))]
        } else if self.meta("terminal-auth") == Some(&Value::Bool(true)) {
            // Older editors know no such method, but start what stands here.
            let start = json!({"terminal-auth": {"command": program, "args": arguments, "label": SETUP_NAME}});
            vec![AuthMethod::Agent(AuthMethodAgent::new(SETUP, SETUP_NAME).meta(meta(start)))]
        } else {
            Vec::new()
        }
    }

    /// Whether it wants notifications of pith's own, `_pith/…`.
    pub fn wants_own_events(&self) -> bool {
        self.meta("pith").and_then(|own| own.get("events")) == Some(&Value::Bool(true))
    }

    fn meta(&self, key: &str) -> Option<&Value> {
        self.capabilities.meta.as_ref()?.get(key)
    }
}

/// The only method of signing in.
pub const SETUP: &str = "setup";

const SETUP_NAME: &str = "Set up a model provider";

/// Answers `initialize`: constants only.
pub fn greeting(version: &str, auth_methods: Vec<AuthMethod>) -> InitializeResponse {
    let system_prompt =
        SessionSystemPromptModeCapabilities::new().override_(SessionSystemPromptOverrideCapabilities::new());
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .title(SessionTitleCapabilities::new())
        .status(SessionStatusCapabilities::new())
        .system_prompt(SessionSystemPromptCapabilities::new().mode(system_prompt));
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_info(Implementation::new("pith", version).title("pith".to_owned()))
        .agent_capabilities(capabilities)
        .auth_methods(auth_methods)
        .meta(meta(json!({"steering": {"supported": true}, "pith": {"version": 1, "promptQueueing": true}})))
}

/// The object as `_meta`.
pub(crate) fn meta(value: Value) -> Meta {
    match value {
        Value::Object(object) => object,
        _ => Meta::new(),
    }
}
