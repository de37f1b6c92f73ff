//! MCP servers of a session, and `pith mcp`.

mod arguments;
mod command;
mod file;
mod inputs;
mod login;
mod questions;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pith_agent::{BoxFuture, Tool};
use pith_ai::{Registry, Web};
use pith_config::settings::ResourceLists;
use pith_config::{AgentDir, Diagnostic, Environment, ProjectTrust, Settings};
use pith_ext::discovery::{built_in, switches_built_in};
use pith_ext::registry::McpServerInfo;
use pith_mcp::config::{Given, KnownServers, Places, Registered, RegisteredServer};
use pith_mcp::{Options, PendingSignIn, Pool, PromptCommand, Servers, UnlistedServer, Wanted};
use pith_protocol::answers::{McpServer, McpServerState};
use pith_secrets::Secrets;
use pith_session::{FromMcp, McpInput, McpPage, McpPrompt, McpServers, McpSetup, McpUnlisted};
use pith_tools::sandbox::Oversight;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::cli::Cli;
use crate::project::Project;

pub use command::run;

/// Whether somebody can be asked what servers want to know, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Absent,
    /// Sees one dialog after the other.
    Dialogs,
    /// Is given whole forms, too.
    Forms,
}

impl User {
    /// The user of a host that may be there, and may take whole forms.
    pub fn of(is_there: bool, sees_forms: bool) -> Self {
        match (is_there, sees_forms) {
            (false, _) => User::Absent,
            (true, false) => User::Dialogs,
            (true, true) => User::Forms,
        }
    }
}

/// What pi calls the extension that is its client of servers.
const BUILT_IN: &str = "mcp";

/// The servers, as the session uses them.
struct SessionServers(Servers);

/// Where and for whom a session uses servers.
pub struct Surroundings<'a> {
    pub places: Places,
    pub project: Arc<Mutex<Project>>,
    pub registry: Arc<Registry>,
    pub settings: &'a Settings,
    pub web: &'a Web,
    pub oversight: Oversight,
    /// Further directories that the session works in.
    pub additional_roots: Vec<PathBuf>,
    pub user: User,
    /// The programs of servers that sessions of this process share.
    pub pool: Pool,
}

/// What a session gets to use MCP servers. Reads nothing.
pub fn setup(cli: &Cli, surroundings: Surroundings<'_>) -> McpSetup {
    let Surroundings { places, project, registry, settings, web, oversight, additional_roots, user, pool } =
        surroundings;
    let settings_of = project.clone();
    let switch = Switch::of(cli);
    let is_off = move |cwd: &Path| {
        switch.is_off(|| settings_of.lock().unwrap_or_else(PoisonError::into_inner).settings(cwd).settings)
    };
    let trust = move |cwd: &Path| project.lock().unwrap_or_else(PoisonError::into_inner).trust_in_servers(cwd);
    let renewals = registry.renewals().clone();
    let hidden = move || registry.credential_variables();
    let (to_session, from_servers) = mpsc::unbounded_channel();
    let states = to_session.clone();
    let servers = Servers::new(Options {
        web: web.patient(),
        // A session that has ended needs to know nothing.
        report: Arc::new(move |state| drop(states.send(FromMcp::State(state)))),
        user: questions::user(user, to_session.clone()),
        sample: Some(questions::sample(to_session)),
        additional_roots,
        startup_wait: settings.mcp.startup_wait,
        pool: settings.mcp.share.then_some(pool),
        is_off: Box::new(is_off),
        renewals,
        ..options(cli, places, Box::new(trust), Box::new(hidden), oversight)
    });
    McpSetup { servers: Arc::new(SessionServers(servers)), from_servers }
}

/// How servers that nobody named are switched on and off, in the words of pi: there they are an extension.
#[derive(Clone, Copy)]
enum Switch {
    /// `-e builtin:mcp`
    On,
    /// `--no-extensions`
    Off,
    /// The `extensions` of the project or the user decide.
    BySettings,
}

impl Switch {
    fn of(cli: &Cli) -> Self {
        if cli.extensions.iter().any(|source| built_in(source) == Some(Ok(BUILT_IN))) {
            Switch::On
        } else if cli.no_extensions {
            Switch::Off
        } else {
            Switch::BySettings
        }
    }

    fn is_off(self, settings: impl FnOnce() -> Settings) -> bool {
        match self {
            Switch::On => false,
            Switch::Off => true,
            Switch::BySettings => {
                let Settings { project_resources, user_resources, .. } = settings();
                let said = |lists: &ResourceLists| switches_built_in(&lists.extensions, BUILT_IN);
                said(&project_resources).or_else(|| said(&user_resources)) == Some(false)
            }
        }
    }
}

/// What the command line says about servers.
pub fn given(cli: &Cli) -> Given {
    Given {
        configs: cli.mcp_configs.clone(),
        no_files: cli.no_mcp,
        is_approved: cli.approve == Some(true),
        ..Given::default()
    }
}

fn options(
    cli: &Cli,
    places: Places,
    trust: Box<dyn Fn(&Path) -> ProjectTrust + Send + Sync>,
    hidden: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    oversight: Oversight,
) -> Options {
    Options {
        places,
        given: given(cli),
        trust,
        is_off: Box::new(|_| false),
        hidden,
        secrets: Secrets::of_process().clone(),
        renewals: Arc::default(),
        web: Web::default().patient(),
        supervisor: oversight.supervisor,
        sandbox: oversight.sandbox,
        report: Arc::new(|_| {}),
        pool: None,
        user: None,
        sample: None,
        additional_roots: Vec::new(),
        startup_wait: pith_config::settings::Mcp::default().startup_wait,
        temp: std::env::temp_dir(),
    }
}

/// Lets a project start the servers that its files name now.
pub fn accept_project(agent_dir: AgentDir, environment: Environment, cwd: &Path) {
    KnownServers::accept(&Places { agent_dir, environment, cwd: cwd.to_owned() });
}

impl McpServers for SessionServers {
    fn begin_work(&self, found: &dyn Fn() -> Vec<String>) -> Option<BoxFuture<'static, ()>> {
        self.0.begin_work(found)
    }

    fn begin_search(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.begin_search()
    }

    fn start_eager(&self) {
        self.0.start_eager();
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.tools()
    }

    fn unlisted(&self) -> Vec<McpUnlisted> {
        let unlisted = |UnlistedServer { name, about, why }| McpUnlisted { name, about, why };
        self.0.unlisted().into_iter().map(unlisted).collect()
    }

    fn prompts(&self) -> Vec<McpPrompt> {
        let prompt = |prompt: PromptCommand| McpPrompt {
            name: prompt.name,
            description: prompt.description,
            path: prompt.path,
            is_of_project: prompt.is_of_project,
        };
        self.0.prompts().into_iter().map(prompt).collect()
    }

    fn instructions(&self) -> Vec<(String, String)> {
        self.0.instructions()
    }

    fn expand(&self, text: &str) -> Option<BoxFuture<'static, Result<McpInput, String>>> {
        let expanding = self.0.expand(text)?;
        Some(Box::pin(async move {
            expanding.await.map(|expanded| McpInput { text: expanded.text, images: expanded.images })
        }))
    }

    fn load(&self) {
        self.0.load();
    }

    fn reload(&self) {
        self.0.read();
    }

    fn set_host(&self, servers: &Map<String, Value>) -> Result<(), String> {
        self.0.set_host(servers)
    }

    fn set_extensions(&self, servers: &[McpServerInfo], has_client: bool) -> bool {
        let registered = |server: &McpServerInfo| RegisteredServer {
            name: server.name.clone(),
            entry: server.config.clone(),
            extension: server.extension_path.clone().into(),
        };
        self.0.set_registered(Registered { servers: servers.iter().map(registered).collect(), has_client })
    }

    fn connect(&self) -> BoxFuture<'static, ()> {
        let servers = self.0.clone();
        Box::pin(async move { servers.connect(None).await })
    }

    fn connect_host(&self) -> BoxFuture<'static, ()> {
        let servers = self.0.clone();
        Box::pin(async move { servers.connect_host().await })
    }

    fn reconnect(&self, name: &str) -> Option<BoxFuture<'static, ()>> {
        let server = self.0.find(name)?;
        Some(Box::pin(async move {
            server.retire();
            server.stop().await;
            // What comes of it is the state of the server.
            let _ = server.connect(Wanted::Asked).await;
        }))
    }

    fn begin_login(&self, name: &str) -> Option<BoxFuture<'static, Result<McpPage, String>>> {
        let (servers, server) = (self.0.clone(), self.0.find(name)?);
        Some(Box::pin(async move {
            let PendingSignIn { url, done } = servers.begin_login(server).await?;
            Ok(McpPage { url, done })
        }))
    }

    fn set_enabled(&self, name: &str, is_enabled: bool) -> Option<BoxFuture<'static, ()>> {
        let server = self.0.find(name)?;
        Some(Box::pin(async move { server.set_enabled(is_enabled).await }))
    }

    fn states(&self) -> Vec<McpServerState> {
        self.0.states()
    }

    fn shown(&self) -> Vec<McpServer> {
        self.0.shown()
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        self.0.diagnostics()
    }

    fn begin_session(&self, cwd: &Path) {
        self.0.begin_session(cwd);
    }

    fn close(&self) -> Option<BoxFuture<'static, ()>> {
        let servers = self.0.clone();
        self.0.has_servers().then(|| Box::pin(async move { servers.close().await }) as BoxFuture<'static, ()>)
    }
}
