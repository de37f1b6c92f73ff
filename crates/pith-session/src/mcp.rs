//! MCP servers in the session: their tools for the model, commands of the host about them.

mod commands;
mod sampling;
mod tools;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_agent::{BoxFuture, Tool};
use pith_config::Diagnostic;
use pith_ext::registry::McpServerInfo;
use pith_protocol::answers::{McpServer, McpServerState};
use pith_protocol::host::{UiAnswer, UiRequest};
use pith_protocol::{AssistantMessage, Event, ImageBlock};
use pith_resources::{CommandEntry, Origin, Scope, SourceInfo};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::jobs::{Job, JobEnd};
use crate::session::Session;
use commands::Ending;
pub(crate) use commands::{McpReply, refused};
pub use sampling::McpSample;

/// The slash command of extensions that bring their own MCP client; it replaces pith's.
const EXTENSION_COMMAND: &str = "mcp";

/// The MCP servers of a session. Nothing is read or started before one of these is called.
pub trait McpServers: Send + Sync {
    /// Called when work begins: reads the configuration once and starts the servers that are needed. Returns what to
    /// wait for, if the tools of one are not known. `found` returns the names of tools that the model has found before.
    fn begin_work(&self, found: &dyn Fn() -> Vec<String>) -> Option<BoxFuture<'static, ()>>;

    /// Called when the model searches for tools: starts the servers that are not listed. Returns what to wait for, if
    /// there are any.
    fn begin_search(&self) -> Option<BoxFuture<'static, ()>>;

    /// Called once, when the first line of the host was served and the session is at rest: starts the servers that do not wait to be needed.
    fn start_eager(&self);

    /// Counts changes of what the servers offer.
    fn version(&self) -> u64;

    /// Returns the tools for the model.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the servers whose tools the model searches for and nobody knows yet.
    fn unlisted(&self) -> Vec<McpUnlisted>;

    /// Returns the prompts of servers, which users call as slash commands.
    fn prompts(&self) -> Vec<McpPrompt>;

    /// Returns names and instructions of the servers that may instruct the model.
    fn instructions(&self) -> Vec<(String, String)>;

    /// Returns what a text of the user becomes, or why it cannot be sent, if it calls a prompt of a server or mentions
    /// resources; `None` for all other texts.
    fn expand(&self, text: &str) -> Option<BoxFuture<'static, Result<McpInput, String>>>;

    /// Reads the configuration unless that has happened.
    fn load(&self);

    /// Reads the configuration again; servers whose entry is unchanged stay.
    fn reload(&self);

    /// Replaces the servers of the host; one wrong entry refuses all.
    fn set_host(&self, servers: &Map<String, Value>) -> Result<(), String>;

    /// Takes the servers that extensions have registered, and whether one of them brings its own client; `false` if
    /// that is known already.
    fn set_extensions(&self, servers: &[McpServerInfo], has_client: bool) -> bool;

    /// Starts all servers that are switched on and waits for the outcome.
    fn connect(&self) -> BoxFuture<'static, ()>;

    /// Like `connect`, for the servers of the host alone.
    fn connect_host(&self) -> BoxFuture<'static, ()>;

    /// Ends a server and starts it again; `None` if there is none of that name.
    fn reconnect(&self, name: &str) -> Option<BoxFuture<'static, ()>>;

    /// Begins a sign-in to a server; `None` if there is none of that name.
    fn begin_login(&self, name: &str) -> Option<BoxFuture<'static, Result<McpPage, String>>>;

    /// Switches a server on or off; `None` if there is none of that name.
    fn set_enabled(&self, name: &str, is_enabled: bool) -> Option<BoxFuture<'static, ()>>;

    /// Returns names and states of the servers that were read.
    fn states(&self) -> Vec<McpServerState>;

    /// Returns everything that is known of them.
    fn shown(&self) -> Vec<McpServer>;

    /// Returns what is wrong with configuration and servers.
    fn diagnostics(&self) -> Vec<Diagnostic>;

    /// Called when another session begins, perhaps in another directory: all servers end.
    fn begin_session(&self, cwd: &Path);

    /// Ends all servers; `None` if there is nothing to end.
    fn close(&self) -> Option<BoxFuture<'static, ()>>;
}

/// A prompt of a server.
pub struct McpPrompt {
    /// The slash command that calls it, without the slash.
    pub name: String,
    pub description: Option<String>,
    /// The file that the server is configured in.
    pub path: Option<PathBuf>,
    /// Whether that is a file of the project.
    pub is_of_project: bool,
}

/// A server whose tools the model searches for and nobody knows yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpUnlisted {
    pub name: String,
    /// What it is good for, in a line.
    pub about: Option<String>,
    /// Why its tools are not known.
    pub why: String,
}

/// The page of a sign-in that has begun.
pub struct McpPage {
    pub url: String,
    /// Waits for the user; over when the server has been started again, or nobody waits any more.
    pub done: BoxFuture<'static, ()>,
}

/// What the user says, with what a server has added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpInput {
    pub text: String,
    pub images: Vec<ImageBlock>,
}

/// What servers tell and ask the session.
pub enum FromMcp {
    /// The state of a server has changed.
    State(McpServerState),
    /// A server wants to know something of the user.
    Question { request: UiRequest, answer: oneshot::Sender<UiAnswer> },
    /// The server no longer waits for the answer.
    Withdrawn { id: String },
    /// A page that the user opened for a server has done its work.
    PageDone { id: String },
    /// A server asks the session's model. The receiver is dropped when it no longer waits.
    Sample { request: McpSample, answer: oneshot::Sender<Result<AssistantMessage, String>> },
}

/// What a session gets to use MCP servers.
pub struct McpSetup {
    pub servers: Arc<dyn McpServers>,
    /// What the servers tell and ask, for the whole life of the session.
    pub from_servers: mpsc::UnboundedReceiver<FromMcp>,
}

/// The servers, and what the session knows of them.
pub(crate) struct Mcp {
    servers: Arc<dyn McpServers>,
    from_servers: mpsc::UnboundedReceiver<FromMcp>,
    /// Which version of the tools the model has.
    version: u64,
    /// What servers tell the model about themselves, with their names.
    pub instructions: Vec<(String, String)>,
    /// Whether the host has used one of the commands, and so knows the event.
    is_host_interested: bool,
    eager: EagerStart,
    /// How often servers have asked the model for this prompt.
    n_samples: u32,
    /// How many commands of the host wait for servers. The servers end after the last of them was answered.
    n_waiting: usize,
    ending: Ending,
}

impl Mcp {
    pub fn new(setup: McpSetup) -> Self {
        Mcp {
            servers: setup.servers,
            from_servers: setup.from_servers,
            version: 0,
            instructions: Vec::new(),
            is_host_interested: false,
            eager: EagerStart::Waiting,
            n_samples: 0,
            n_waiting: 0,
            ending: Ending::default(),
        }
    }

    /// Takes the token that ends the session at once.
    pub fn stop_with(&mut self, stop: CancellationToken) {
        self.ending.stop = stop;
    }

    /// Waits for what servers tell or ask next. Cancel safe.
    pub async fn next(&mut self) -> Option<FromMcp> {
        self.from_servers.recv().await
    }

    pub fn states(&self) -> Vec<McpServerState> {
        self.servers.states()
    }

    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.servers.diagnostics()
    }

    pub fn unlisted(&self) -> Vec<McpUnlisted> {
        self.servers.unlisted()
    }
}

/// When servers start that do not wait to be needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EagerStart {
    /// Nothing has come from the host.
    Waiting,
    /// At the next rest.
    Due,
    Done,
}

impl Session {
    /// Called when extensions have registered something, or are gone.
    pub(crate) fn take_extension_servers(&mut self) {
        let registered = self.extension_handle().map(|handle| handle.registry()).unwrap_or_default();
        let has_client = registered.commands.iter().any(|command| is_extension_command(&command.name));
        if self.mcp.servers.set_extensions(&registered.mcp_servers, has_client) {
            self.start_added_servers();
        }
    }

    /// What is wrong with servers, and which of their tools have names that others have.
    pub(crate) fn mcp_diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.mcp.diagnostics();
        found.extend(self.tools.shadowed().filter_map(|tool| {
            let (name, server) = (&tool.spec().name, tool.origin()?.server.to_owned());
            let message = format!("server \"{server}\": another tool is called {name}, too, and is used instead");
            Some(Diagnostic { path: None, ..Diagnostic::warning("mcp_schema", "", message) })
        }));
        found
    }

    /// Called when the session is at rest, so that no answer waits for this.
    pub(crate) fn start_eager_mcp(&mut self) {
        if self.mcp.eager == EagerStart::Due {
            self.mcp.eager = EagerStart::Done;
            self.mcp.servers.start_eager();
        }
    }

    /// Called after a line of the host was served.
    pub(crate) fn schedule_eager_mcp(&mut self) {
        if self.mcp.eager == EagerStart::Waiting {
            self.mcp.eager = EagerStart::Due;
            self.schedule_rest();
        }
    }

    /// Reads which servers there are, unless that has happened.
    pub(crate) fn load_mcp(&self) {
        self.mcp.servers.load();
    }

    /// The prompts of servers, as slash commands.
    pub(crate) fn mcp_commands(&self) -> Vec<CommandEntry> {
        let entry = |prompt: McpPrompt| {
            let source_info = SourceInfo {
                path: prompt.path.unwrap_or_default(),
                source: "mcp".into(),
                scope: if prompt.is_of_project { Scope::Project } else { Scope::User },
                origin: Origin::TopLevel,
                base_dir: None,
            };
            CommandEntry::mcp(prompt.name, prompt.description, source_info)
        };
        self.mcp.servers.prompts().into_iter().map(entry).collect()
    }

    /// Returns what an input becomes if it names something of a server.
    pub(crate) fn expand_by_servers(&self, text: &str) -> Option<BoxFuture<'static, Result<McpInput, String>>> {
        if !text.contains(['/', '@']) {
            return None;
        }
        self.mcp.servers.expand(text)
    }

    /// Called when another session takes the place of this one.
    pub(crate) fn restart_mcp(&mut self) {
        self.mcp.servers.begin_session(self.store.cwd());
    }

    /// Called after the project's files were read again.
    pub(crate) fn reload_mcp(&mut self) {
        if !self.mcp.servers.states().is_empty() {
            self.mcp.servers.reload();
        }
    }

    /// Ends the servers once no command waits for them; the session waits for that.
    pub(crate) fn close_mcp(&mut self) {
        self.mcp.ending.begun.cancel();
        if self.mcp.n_waiting > 0 {
            return;
        }
        if let Some(close) = self.mcp.servers.close() {
            self.jobs.spawn(Job::Background, async move {
                close.await;
                JobEnd::Done
            });
        }
    }

    pub(crate) fn on_mcp(&mut self, message: FromMcp) {
        match message {
            FromMcp::State(update) => self.on_mcp_update(&update),
            FromMcp::Question { request, answer } => self.open_dialog(request, answer.into()),
            FromMcp::Withdrawn { id } => self.withdraw_dialog(id),
            FromMcp::PageDone { id } => self.out.page_done(&id),
            FromMcp::Sample { request, answer } => self.sample(request, answer),
        }
    }

    fn on_mcp_update(&mut self, update: &McpServerState) {
        if self.mcp.is_host_interested || self.out.follows_servers() {
            self.out.event(&Event::McpServerUpdate {
                name: Cow::Borrowed(&update.name),
                state: Cow::Borrowed(&update.state),
                error: update.error.as_deref().map(Cow::Borrowed),
            });
        }
    }
}

/// Whether a command of an extension is that of a client; the second and third of a name have a number.
fn is_extension_command(name: &str) -> bool {
    match name.strip_prefix(EXTENSION_COMMAND) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').is_some_and(|number| number.parse::<u32>().is_ok()),
        None => false,
    }
}
