//! Opens a session: turns a request into the parts a session is made of. Reads files, but nothing of the process, and
//! sends no network request.
//!
//! A request names the directory, the environment, the arguments and with them the session. [`Shared`] is what several
//! sessions of one process have in common.

mod checkpoints;
mod model;
mod options;
mod request;
mod shared;
pub(crate) mod tools;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pith_ai::select::Start;
use pith_ai::{Providers, Registry};
use pith_config::settings::{self, LoadedSettings};
use pith_config::{AgentDir, Environment};
use pith_ext::Discovery;
use pith_mcp::config::Places;
use pith_protocol::ThinkingLevel;
use pith_secrets::Secrets;
use pith_session::{
    Contributed, Outbox, ProjectFiles, ReloadReason, RunningExtensions, SessionParts, SessionPlaces, ToolChoice,
};
use pith_store::SessionStore;
use pith_tools::image;
use pith_tools::sandbox::Oversight;
use serde_json::Value;

use crate::check::check_tools;
use tracing::info;

use crate::cli::{Cli, Mode, ResolvedFlags, UnknownFlags};
use crate::dialect::Dialect;
use crate::extensions::{Extensions, Loader, Search};
use crate::mcp::{self, User};
use crate::project::Project;
use crate::sandbox::Sandboxes;
use crate::secrets_file;
use crate::sessions::{self, SessionName};
use crate::telemetry::SessionTelemetry;
use crate::{permissions, warn};
pub use model::WrongModel;
use model::{choose_model, scripts};
use options::Choices;
pub use request::OpenRequest;
pub use shared::Shared;
use shared::client_options;
use tools::ToolMaker;

/// Said where files of a project are left out.
const REFUSED: &str = "this project's own settings, extensions and skills are not used: it is not trusted (pith trust)";

/// A session that is ready to be served: everything but the outbox.
pub struct OpenedSession {
    cli: Cli,
    environment: Environment,
    store: SessionStore,
    places: SessionPlaces,
    tool_maker: ToolMaker,
    registry: Arc<Registry>,
    project: Project,
    files: ProjectFiles,
    client: Providers,
    start: Start,
    choices: Choices,
    extensions: Extensions,
    running: Option<RunningExtensions>,
    extension_flags: HashMap<String, Value>,
    agent_dir: AgentDir,
    oversight: Oversight,
    /// Whether MCP servers can ask somebody.
    user: User,
    /// The programs of MCP servers that sessions share.
    mcp_pool: pith_mcp::Pool,
    telemetry: SessionTelemetry,
}

/// Opens the session; an error means that there is none.
pub async fn open(shared: &Shared, request: OpenRequest) -> anyhow::Result<OpenedSession> {
    let OpenRequest {
        cwd,
        environment,
        arguments: cli,
        defaults,
        dialect,
        mode,
        ask,
        supervisor,
        additional_roots,
        takes_forms,
        is_replaceable,
        trust_answer_limit,
        shares_thread,
    } = request;
    let agent_dir = agent_dir(dialect, &environment);
    let project = Project::new(&cli, &agent_dir, &environment, ask)
        .with_rules(dialect.has_stream_rules && !cli.no_rules)
        .with_trust_decisions(shared.trust_decisions.clone());
    let has_user = matches!(mode, pith_ext::Mode::Rpc | pith_ext::Mode::Tui);
    let sandboxes = Sandboxes::new(&cli, &environment, &agent_dir, supervisor)?;
    let mut project = project.held_by(sandboxes.oversight().sandbox.clone());
    let extensions = Extensions::new(&cli, &agent_dir, &environment, mode).watched_by(sandboxes.oversight().clone());
    let serves_host = cli.mode.is_some_and(Mode::serves_host);
    let unknown_flags = if serves_host { UnknownFlags::Warn } else { UnknownFlags::Error };
    if !cli.extension_flags.is_empty() {
        // Flags that no extension can know are refused before anything is opened.
        let found = extensions.find(&cwd, project.inspect(&cwd).user_settings(), Search::Trusted);
        if found.sources.is_empty() && cli.sessions.open.is_none() && cli.sessions.resume.is_none() {
            cli.extension_flags.resolve(&[], unknown_flags).map_err(anyhow::Error::msg)?;
        }
    }
    // The session directory is read before the question whether the project is trusted.
    let setting = settings::session_dir(&agent_dir, &cwd);
    let places = sessions::places(cli.session_dir.clone(), &environment, setting.as_deref(), &agent_dir, &cwd);
    let (opened, copy) = if shares_thread {
        let (flags, places, cwd, environment) = (cli.sessions.clone(), places.clone(), cwd, environment.clone());
        tokio::task::spawn_blocking(move || flags.open(&places, &cwd, &environment)).await??
    } else {
        cli.sessions.open(&places, &cwd, &environment)?
    };
    // Dropped before `copy`, which would otherwise find its file in use.
    let mut store = opened;
    // A session belongs to a directory, wherever it is opened from.
    let cwd = store.cwd().to_owned();
    // Before anything of the project runs, and before the first frame.
    sandboxes.enter(&cwd)?;
    let mut loader = Loader::new(&extensions, &cwd);
    let loaded = decide_trust_and_load(&extensions, &mut loader, &mut project, &cwd).await;
    loader.check()?;
    // Hosts may name tools that they register later.
    if !serves_host {
        let tools: Vec<String> = loader.loaded().iter().flat_map(|extension| extension.tools.clone()).collect();
        check_tools(&cli, &tools, !loader.loaded().is_empty()).map_err(anyhow::Error::msg)?;
    }
    let registered = loader.registry();
    let flags = registered.as_deref().map_or(&[][..], |registry| &registry.flags);
    let ResolvedFlags { values: extension_flags, warnings } =
        cli.extension_flags.resolve(flags, unknown_flags).map_err(anyhow::Error::msg)?;
    warnings.iter().for_each(|warning| warn(&format!("Warning: {warning}")));
    loaded.diagnostics.iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    let choices = Choices::new(&cli, dialect, &environment, mode)?
        .replaceable(is_replaceable)
        .answering_trust_within(trust_answer_limit);
    let mut files =
        project.read_with_settings(&cwd, loaded, &Contributed::default(), |settings| choices.options(settings));
    files.diagnostics.extend(sandboxes.findings(&cwd));
    let registry = Registry::load(&agent_dir, environment.clone(), &files.settings).telling(Secrets::of_process());
    secrets_file::learn(&agent_dir);
    registry.diagnostics().iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    let telemetry = shared.telemetry.session(&files.settings, &environment, &registry);
    telemetry.problems.iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    files.diagnostics.extend(telemetry.problems.iter().cloned());
    loader.bind(&extension_flags, &registry).await;
    let clients = shared.clients(files.settings.http_proxy.as_ref());
    let scripts = scripts(&cli, &registry)?;
    let client =
        Providers::with_clients(registry.clone(), client_options(&files.settings, &registry), scripts, clients);
    let start = choose_model(&cli, defaults, &registry, &files.settings, &store, &mut loader, &extension_flags).await?;
    let running = loader.into_running();
    let recorded = store.settings().thinking_level.as_deref().and_then(ThinkingLevel::parse);
    let is_kept = recorded.is_some() && defaults.thinking;
    if store.n_messages() > 0 && cli.thinking.is_some() && !is_kept && recorded != Some(start.thinking) {
        store.append_thinking_level(start.thinking);
    }
    start.warnings.iter().for_each(|warning| warn(&format!("Warning: {warning}")));
    let (path, model) = (store.path(), start.model.as_ref().map(|model| format!("{}/{}", model.provider, model.id)));
    info!(target: "pith::session", id = store.id(), ?path, ?cwd, model, dialect = dialect.name, "opened");
    let oversight = sandboxes.oversight().clone();
    let tool_maker = ToolMaker {
        environment: environment.clone(),
        agent_dir: agent_dir.clone(),
        registry: registry.clone(),
        sandboxes,
        additional_roots,
        is_offline: cli.offline,
        mutations: shared.mutations.clone(),
    };
    copy.keep();
    Ok(OpenedSession {
        cli,
        environment,
        store,
        places,
        tool_maker,
        registry,
        project,
        files,
        client,
        start,
        choices,
        extensions,
        running,
        extension_flags,
        agent_dir,
        oversight,
        user: User::of(has_user, takes_forms),
        mcp_pool: shared.mcp.clone(),
        telemetry,
    })
}

/// Loads the extensions of a directory after deciding whether it is trusted, which some of them may do.
pub async fn decide_trust_and_load(
    extensions: &Extensions,
    loader: &mut Loader<'_>,
    project: &mut Project,
    cwd: &Path,
) -> LoadedSettings {
    let undecided = project.inspect(cwd);
    let (mut decision, mut search) = (None, None);
    if project.is_open(cwd, &undecided) {
        let before = extensions.find(cwd, undecided.user_settings(), Search::Untrusted);
        if before.sources.is_empty() && before.errors.is_empty() {
            search = Some(Search::OnlyProject);
        } else {
            // What is missing now may be in the project.
            loader.load(Discovery { errors: Vec::new(), ..before }, undecided.user_settings()).await;
            decision = loader.project_trust().await;
        }
    }
    let loaded = project.decide_trust(cwd, undecided, decision);
    let search = match (search, project.trusts(cwd)) {
        (Some(Search::OnlyProject), false) => return loaded,
        (Some(search), true) => search,
        (_, is_trusted) => Search::all(is_trusted),
    };
    let found = extensions.find(cwd, &loaded.settings, search);
    if extensions.serves_host() {
        loader.load_for_host(found, &loaded.settings).await;
    } else {
        loader.load(found, &loaded.settings).await;
    }
    loaded
}

/// The user's directory in the layout of a dialect.
pub fn agent_dir(dialect: &Dialect, environment: &Environment) -> AgentDir {
    AgentDir::locate(dialect.layout, environment)
}

impl OpenedSession {
    /// Converts to the parts of the session, with the outbox its frames go to.
    pub fn into_parts(self, out: Box<dyn Outbox>) -> SessionParts {
        let (workbench, tools) = self.tool_maker.make(self.store.cwd(), &self.files.settings, None);
        // Shared by the functions that read directories again.
        let project = Arc::new(Mutex::new(self.project));
        let extensions = {
            let project = project.clone();
            let (flags, settings) = (self.extension_flags, &self.files.settings);
            self.extensions.setup(self.running, flags, self.client.web(), settings, move |extensions, cwd| {
                let mut project = project.lock().unwrap_or_else(PoisonError::into_inner);
                let settings = project.settings(cwd).settings;
                extensions.find(cwd, &settings, Search::all(project.trusts(cwd))).sources
            })
        };
        let (agent_dir, environment, cwd) = (self.agent_dir, self.environment, self.store.cwd().to_owned());
        let permissions = permissions::sources(&self.cli, &agent_dir, &environment, &cwd, self.files.is_trusted);
        let places = Places { agent_dir, environment, cwd };
        let web = self.client.web();
        let surroundings = mcp::Surroundings {
            places,
            project: project.clone(),
            registry: self.registry.clone(),
            settings: &self.files.settings,
            web: &web,
            oversight: self.oversight,
            additional_roots: self.tool_maker.additional_roots.clone(),
            user: self.user,
            pool: self.mcp_pool,
        };
        let mcp = mcp::setup(&self.cli, surroundings);
        let choices = self.choices;
        let SessionTelemetry { tracer, problems } = self.telemetry;
        let (changed, reread) = (self.tool_maker.sandboxes.clone(), self.tool_maker.sandboxes.clone());
        SessionParts {
            out,
            store: self.store,
            places: self.places,
            make_tools: self.tool_maker.into_function(),
            hosts: changed.oversight().hosts.clone(),
            change_sandbox: Box::new(move |cwd, call| changed.change(cwd, call)),
            client: Arc::new(self.client),
            registry: self.registry,
            tools,
            workbench,
            tool_choice: ToolChoice {
                only: self.cli.tools,
                none: self.cli.no_tools || self.cli.no_builtin_tools,
                no_extension_tools: self.cli.no_tools,
                exclude: self.cli.exclude_tools,
                defaults: self.files.settings.default_tools.clone(),
                additional: Vec::new(),
                unlisted: Vec::new(),
            },
            files: self.files,
            load_project: Box::new(move |cwd, reason, contributed| {
                let mut project = project.lock().unwrap_or_else(PoisonError::into_inner);
                if reason == ReloadReason::Trusted {
                    project.accept(cwd);
                }
                let mut files = project.read(cwd, contributed, |settings| choices.options(settings));
                files.diagnostics.extend(reread.findings_now(cwd));
                files.diagnostics.extend(problems.iter().cloned());
                files
            }),
            start: self.start,
            extensions,
            mcp,
            permissions,
            tracer,
            on_rest: Box::new(|| {}),
        }
    }

    /// Asks local servers for their models in the background, if `models.json` says so.
    pub fn discover(&self) {
        let is_offline = self.cli.offline || self.environment.get("PI_OFFLINE").is_some_and(|value| is_truthy(&value));
        if is_offline || !self.registry.has_discovery() {
            return;
        }
        let (registry, fetch) = (self.registry.clone(), self.client.fetch());
        tokio::spawn(async move {
            for found in registry.discover(&fetch).await {
                warn(&format!("Warning: {}", found.message));
            }
        });
    }

    /// The first line of the session's file.
    pub fn header(&self) -> &[u8] {
        &self.store.tree().header().line
    }

    /// The id of the session, and its file unless it is kept in memory.
    pub fn session_name(&self) -> SessionName {
        SessionName {
            id: self.store.id().to_owned(),
            file: self.store.path().map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// The directory the session works in.
    pub fn cwd(&self) -> &Path {
        self.store.cwd()
    }

    /// The models that the command line narrows the choice to, by provider and id; none if it leaves them all.
    pub fn named_models(&self) -> Vec<(String, String)> {
        let named = self.cli.models.iter().flat_map(|_| &self.start.scope.models);
        named.map(|scoped| (scoped.model.provider.clone(), scoped.model.id.clone())).collect()
    }

    /// What images of the first prompt may be like.
    pub fn image_rules(&self) -> image::Rules {
        image::Rules { auto_resize: self.files.settings.images.auto_resize, limits: image::Limits::default() }
    }

    /// Problems with the resources, and what is not used of them, for the user.
    pub fn resource_problems(&self) -> Vec<String> {
        let one = |found: &pith_config::Diagnostic| match &found.path {
            Some(path) => format!("{}: {}", path.display(), found.message),
            None => found.message.clone(),
        };
        let is_refused = !self.files.is_trusted && self.project.has_own_files(self.store.cwd());
        let refused = is_refused.then(|| REFUSED.to_owned());
        let mistyped = self.project.mistyped_keys(self.store.cwd());
        self.files.resources.diagnostics().iter().map(one).chain(mistyped).chain(refused).collect()
    }
}

fn is_truthy(value: &str) -> bool {
    ["1", "true", "yes"].iter().any(|word| value.eq_ignore_ascii_case(word))
}
