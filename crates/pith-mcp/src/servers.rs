//! All servers of a session. Nothing is read or started before somebody asks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_agent::Tool;
use pith_ai::{Renewals, Web};
use pith_config::{Diagnostic, Environment, ProjectTrust};
use pith_protocol::answers::McpServerState;
use pith_secrets::Secrets;
use pith_tools::process::{Jobs, Supervisor};
use pith_tools::sandbox::CurrentSandbox;
use pith_tools::shell::OutputDir;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::cache::Cache;
use crate::config::{Given, Places, Read, Registered, ServerConfig, Source, is_same, read_all, read_host};
use crate::launch::Launch;
use crate::names::name_all;
use crate::pool::Pool;
use crate::questions::User;
use crate::resources::{self, ResourceTool};
use crate::sampling::Sample;
use crate::server::{Server, Wanted};
use crate::shown::state_of;
use crate::state::State;
use crate::tool::McpTool;

/// What the servers of a session are made of.
pub struct Options {
    pub places: Places,
    pub given: Given,
    /// Whether the files of a directory may be used.
    pub trust: Box<dyn Fn(&Path) -> ProjectTrust + Send + Sync>,
    /// Whether the user wants no servers of files and extensions in a directory.
    pub is_off: Box<dyn Fn(&Path) -> bool + Send + Sync>,
    /// Returns the variables with keys of models.
    pub hidden: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Learns the credentials of servers.
    pub secrets: Arc<Secrets>,
    /// Renews the sign-ins to servers. Whoever ends the servers waits for it.
    pub renewals: Arc<Renewals>,
    /// The way to servers at an address.
    pub web: Web,
    /// Guards the programs.
    pub supervisor: Option<Supervisor>,
    /// The programs that sessions of this process share, if this one does.
    pub pool: Option<Pool>,
    /// What the programs are held to.
    pub sandbox: CurrentSandbox,
    /// Is told whenever the state of a server has changed.
    pub report: Arc<dyn Fn(McpServerState) + Send + Sync>,
    /// Who answers questions of servers, if anybody does.
    pub user: Option<Arc<dyn User>>,
    /// Asks the session's model, if there is a session.
    pub sample: Option<Sample>,
    /// Further directories that the session works in.
    pub additional_roots: Vec<PathBuf>,
    /// How long the beginning of work waits for servers whose tools are not known.
    pub startup_wait: Duration,
    /// Below it, what is too large for a result is kept.
    pub temp: PathBuf,
}

/// Where servers report changes.
#[derive(Clone)]
pub struct Updates {
    /// Tells the session.
    report: Arc<dyn Fn(McpServerState) + Send + Sync>,
    /// Counts changes of what is offered.
    version: Arc<AtomicU64>,
}

impl Updates {
    pub(crate) fn state_changed(&self, config: &ServerConfig, state: State, error: Option<&str>) {
        (self.report)(state_of(config, state, error.map(str::to_owned)));
    }

    pub(crate) fn offers_changed(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

impl From<Arc<Shared>> for Servers {
    fn from(shared: Arc<Shared>) -> Self {
        Servers(shared)
    }
}

/// The servers of a session. Clones are the same servers.
#[derive(Clone)]
pub struct Servers(Arc<Shared>);

/// What the servers of a session share.
pub struct Shared {
    options: Options,
    jobs: Arc<Jobs>,
    output_dir: Arc<OutputDir>,
    updates: Updates,
    /// What the user has said that servers need.
    answers: Arc<Answers>,
    collection: Mutex<Collection>,
}

#[derive(Default)]
struct Collection {
    /// The session's directory.
    cwd: PathBuf,
    is_loaded: bool,
    host: Vec<ServerConfig>,
    registered: Registered,
    servers: Vec<Arc<Server>>,
    diagnostics: Vec<Diagnostic>,
}

impl Servers {
    /// Creates the servers of a session. Reads nothing.
    pub fn new(options: Options) -> Self {
        let shared = Shared {
            jobs: Arc::new(Jobs::new(options.supervisor.clone(), false)),
            output_dir: Arc::new(OutputDir::below(options.temp.clone())),
            updates: Updates { report: options.report.clone(), version: Arc::default() },
            answers: Arc::default(),
            collection: Mutex::new(Collection { cwd: options.places.cwd.clone(), ..Collection::default() }),
            options,
        };
        Servers(Arc::new(shared))
    }

    /// Counts changes of what is offered; 0 as long as nothing was read.
    pub fn version(&self) -> u64 {
        self.0.updates.version.load(Ordering::Relaxed)
    }

    /// The tools of all servers that are switched on.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let offered = self.offered();
        let names: Vec<(&str, &str)> =
            offered.iter().map(|(server, tool)| (server.config.name.as_str(), tool.name.as_str())).collect();
        let named = name_all(&names).into_iter().zip(&offered);
        let tool = |(name, (server, tool)): (String, &(Arc<Server>, crate::offer::OfferedTool))| {
            let tool = McpTool::new(name, tool, server.clone(), self.0.output_dir.clone());
            Arc::new(tool) as Arc<dyn Tool>
        };
        let mut tools: Vec<Arc<dyn Tool>> = named.map(tool).collect();
        if resources::has_any(self) {
            tools.extend(ResourceTool::all(&self.0));
        }
        tools
    }

    /// What is wrong with the configuration.
    pub(crate) fn findings(&self) -> Vec<Diagnostic> {
        self.collection().diagnostics.clone()
    }

    pub(crate) fn offered(&self) -> Vec<(Arc<Server>, crate::offer::OfferedTool)> {
        let mut offered = Vec::new();
        for server in self.all() {
            let snapshot = server.snapshot();
            let Some(offer) = snapshot.offer.filter(|_| snapshot.state != State::Disabled) else { continue };
            let tools = offer.tools.iter().filter(|tool| server.config.offers(&tool.name));
            offered.extend(tools.map(|tool| (server.clone(), tool.clone())));
        }
        offered
    }

    /// Replaces the servers of the host. Those whose entry is unchanged stay as they are.
    pub fn set_host(&self, servers: &Map<String, Value>) -> Result<(), String> {
        let servers = read_host(servers)?;
        self.collection().host = servers;
        self.read();
        Ok(())
    }

    /// Takes what extensions say about servers; `false` if they have said so before.
    pub fn set_registered(&self, registered: Registered) -> bool {
        {
            let mut collection = self.collection();
            if collection.registered == registered {
                return false;
            }
            collection.registered = registered;
            if !collection.is_loaded {
                return true;
            }
        }
        self.read();
        true
    }

    /// Reads the configuration unless that has happened.
    pub fn load(&self) {
        if !self.is_loaded() {
            self.read();
        }
    }

    /// Reads the configuration again. Servers whose entry is unchanged stay as they are; the others end.
    pub fn read(&self) {
        let shared = &self.0;
        let (places, read) = self.read_files();
        read.remember(&places);
        let mut collection = self.collection();
        let cwd = collection.cwd.clone();
        let launch = Arc::new(Launch {
            jobs: shared.jobs.clone(),
            pool: shared.options.pool.clone().map(|pool| {
                let jobs = pool.jobs(shared.options.supervisor.as_ref());
                (pool, jobs)
            }),
            sandbox: shared.options.sandbox.clone(),
            environment: shared.options.places.environment.clone(),
            web: shared.options.web.clone(),
            hidden: (shared.options.hidden)(),
            secrets: shared.options.secrets.clone(),
            renewals: shared.options.renewals.clone(),
            sign_ins: shared.options.places.agent_dir.path().join("mcp-auth.json"),
            user: shared.options.user.clone(),
            answers: shared.answers.clone(),
            sample: shared.options.sample.clone(),
            cwd,
            additional_roots: shared.options.additional_roots.clone(),
            is_approved: shared.options.given.is_approved,
        });
        let cache = Cache::of(&places);
        let mut before = std::mem::take(&mut collection.servers);
        for config in read.servers {
            let same = before.iter().position(|server| server.config == config && server.launch.cwd == launch.cwd);
            collection.servers.push(match same {
                Some(at) => before.swap_remove(at),
                None => Server::new(config, launch.clone(), cache.clone(), shared.updates.clone()),
            });
        }
        collection.diagnostics = read.diagnostics;
        collection.is_loaded = true;
        drop(collection);
        shared.updates.offers_changed();
        for server in before {
            tokio::spawn(async move { server.stop().await });
        }
    }

    pub(crate) fn read_files(&self) -> (Places, Read) {
        let options = &self.0.options;
        let (cwd, given) = {
            let collection = self.collection();
            let (host, registered) = (collection.host.clone(), collection.registered.clone());
            (collection.cwd.clone(), Given { host, registered, ..options.given.clone() })
        };
        let given = Given { no_files: given.no_files || (options.is_off)(&cwd), ..given };
        let trust = (options.trust)(&cwd);
        let places = Places { cwd, ..options.places.clone() };
        let read = read_all(&places, &given, trust);
        (places, read)
    }

    /// Makes the servers those of a session in another directory, or of a new session in the same one: all end, and
    /// the configuration is read when it is needed.
    pub fn begin_session(&self, cwd: &Path) {
        let servers = {
            let mut collection = self.collection();
            cwd.clone_into(&mut collection.cwd);
            collection.is_loaded = false;
            std::mem::take(&mut collection.servers)
        };
        if servers.is_empty() {
            return;
        }
        self.0.updates.offers_changed();
        for server in servers {
            tokio::spawn(async move { server.stop().await });
        }
    }

    /// Starts servers, all at once, and waits for the outcome: the named one, or all that are switched on.
    pub async fn connect(&self, name: Option<&str>) {
        self.connect_those(|config| name.is_none_or(|name| is_same(name, &config.name))).await;
    }

    /// Starts the servers of the host, all at once, and waits for the outcome.
    pub async fn connect_host(&self) {
        self.connect_those(|config| config.source == Source::Host).await;
    }

    async fn connect_those(&self, is_meant: impl Fn(&ServerConfig) -> bool) {
        let mut starting = JoinSet::new();
        for server in self.all() {
            if is_meant(&server.config) && server.snapshot().state != State::Disabled {
                starting.spawn(async move { server.connect(Wanted::Asked).await.map(drop) });
            }
        }
        while starting.join_next().await.is_some() {}
    }

    /// Returns the server of a name.
    pub fn find(&self, name: &str) -> Option<Arc<Server>> {
        self.load();
        self.all().into_iter().find(|server| is_same(&server.config.name, name))
    }

    /// Ends all servers.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut self.collection().servers);
        let mut ending = JoinSet::new();
        for server in servers {
            ending.spawn(async move { server.stop().await });
        }
        while ending.join_next().await.is_some() {}
        // What was just being started.
        if self.0.jobs.count() > 0 {
            self.0.jobs.shutdown_all(Duration::from_millis(500)).await;
        }
    }

    /// Whether there is anything to end.
    pub fn has_servers(&self) -> bool {
        !self.collection().servers.is_empty() || self.0.jobs.count() > 0
    }

    pub(crate) fn output_dir(&self) -> &OutputDir {
        &self.0.output_dir
    }

    /// Whether the configuration was read.
    pub(crate) fn is_loaded(&self) -> bool {
        self.collection().is_loaded
    }

    /// How long the session waits for servers whose tools are not known.
    pub(crate) fn startup_wait(&self) -> Duration {
        self.0.options.startup_wait
    }

    pub(crate) fn all(&self) -> Vec<Arc<Server>> {
        self.collection().servers.clone()
    }

    fn collection(&self) -> MutexGuard<'_, Collection> {
        self.0.collection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where files are looked for.
    pub fn environment(&self) -> &Environment {
        &self.0.options.places.environment
    }
}
