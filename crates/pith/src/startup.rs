//! From command line, environment and files to the parts of a session. No network.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pith_ai::agent_dir::AgentDir;
use pith_ai::environment::Environment;
use pith_ai::registry::{Registry, Visibility};
use pith_ai::scripted::{self, SCRIPTED, TOUR};
use pith_ai::select::{self, Recorded, Start, Wanted};
use pith_ai::settings::{self, LoadedSettings, Settings};
use pith_ai::{ClientOptions, Notice, Providers, Scripts};
use pith_ext::Discovery;
use pith_protocol::{CacheRetention, InterruptMode, QueueMode, StreamUpdates, ThinkingLevel};
use pith_session::{
    Brought, Contributed, Outbox, Reading, Relocation, RetryPolicy, RunningExtensions, SessionOptions, SessionParts,
    SessionPlaces, StreamRules, ToolChoice,
};
use pith_store::SessionStore;
use pith_tools::image;
use pith_tools::process::Guard;
use pith_tools::shell::Shell;
use pith_tools::{Workbench, WorkbenchOptions, builtin_tools};
use serde_json::Value;

use crate::cli::{self, Cli, Judged, Mode, Strangers};
use crate::dialect::Dialect;
use crate::extensions::{Extensions, Loader, Search};
use crate::project::{Ask, Project};
use crate::sessions;
use crate::warn;

/// The id of the model that plays `--script FILE`.
const SCRIPT_FILE: &str = "file";

/// Everything but the outbox.
pub struct Prepared {
    cli: Cli,
    store: SessionStore,
    places: SessionPlaces,
    relocation: Relocation,
    registry: Arc<Registry>,
    project: Project,
    brought: Brought,
    client: Providers,
    start: Start,
    choices: Choices,
    rules: StreamRules,
    extensions: Extensions,
    running: Option<RunningExtensions>,
    extension_flags: HashMap<String, Value>,
}

/// What flags and variables say about the session, whatever the settings say.
#[derive(Clone)]
struct Choices {
    dialect: &'static Dialect,
    stream_updates: StreamUpdates,
    cache: CacheRetention,
    name: Option<String>,
    host_tool_timeout: Option<Duration>,
}

/// Reads what there is to read; `Err` ends the process before the first frame.
pub async fn prepare(
    cli: Cli,
    dialect: &'static Dialect,
    ask: Option<Ask>,
    mode: pith_ext::Mode,
) -> anyhow::Result<Prepared> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let cwd = std::env::current_dir()?;
    let mut project = Project::new(&cli, &agent_dir, &environment, ask);
    let extensions = Extensions::new(&cli, &agent_dir, &environment, mode);
    let strangers = if cli.mode == Some(Mode::Rpc) { Strangers::Ignored } else { Strangers::Refused };
    if !cli.extension_flags.is_empty() {
        // Where no extension can know them they are refused before anything is opened.
        let found = extensions.find(&cwd, project.look(&cwd).user_settings(), Search::Trusted);
        if found.sources.is_empty() && cli.sessions.open.is_none() && cli.sessions.resume.is_none() {
            cli.extension_flags.judge(&[], strangers).map_err(anyhow::Error::msg)?;
        }
    }
    // Where sessions are is read before anybody is asked whether the project is trusted.
    let setting = settings::session_dir(&agent_dir, &cwd);
    let places = sessions::places(cli.session_dir.clone(), &environment, setting.as_deref(), &agent_dir, &cwd);
    let mut store = cli.sessions.open(&places, &cwd, &environment)?;
    // A session belongs to a directory, wherever it is opened from.
    let cwd = store.cwd().to_owned();
    let mut loader = Loader::new(&extensions, &cwd);
    let loaded = judge_and_load(&extensions, &mut loader, &mut project, &cwd).await;
    loader.check()?;
    let registered = loader.registry();
    let flags = registered.as_deref().map_or(&[][..], |registry| &registry.flags);
    let Judged { values: extension_flags, warnings } =
        cli.extension_flags.judge(flags, strangers).map_err(anyhow::Error::msg)?;
    warnings.iter().for_each(|warning| warn(&format!("Warning: {warning}")));
    loaded.diagnostics.iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    let choices = Choices {
        dialect,
        stream_updates: stream_updates(&cli, &environment)?,
        cache: match environment.get("PI_CACHE_RETENTION").as_deref() {
            Some("long") => CacheRetention::Long,
            Some("none") => CacheRetention::None,
            _ => CacheRetention::Short,
        },
        name: cli.name.clone(),
        host_tool_timeout: cli.host_tool_timeout,
    };
    let brought = project.bring(&cwd, loaded, &Contributed::default(), |settings| choices.options(settings));
    let settings = brought.settings.clone();
    let registry = Arc::new(Registry::load(&agent_dir, environment.clone(), &settings));
    registry.diagnostics().iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    loader.bind(&extension_flags, &registry).await;
    let scripts = scripts(&cli, &registry)?;
    let client = Providers::with_scripts(registry.clone(), client_options(&settings), scripts);
    let scope: Vec<String> =
        cli.models.iter().flat_map(|list| list.split(',')).map(|name| name.trim().to_owned()).collect();
    let wanted = Wanted {
        provider: cli.script.as_ref().map(|_| SCRIPTED).or(cli.provider.as_deref()),
        model: cli.script.as_ref().map(|_| SCRIPT_FILE).or(cli.model.as_deref()),
        scope: &scope,
        thinking: cli.thinking,
        api_key: cli.api_key.as_deref(),
    };
    let recorded = store.settings().clone();
    let recorded = Recorded {
        model: recorded.model.as_ref().map(|(provider, id)| (&**provider, &**id)),
        thinking: recorded.thinking_level.as_deref().and_then(ThinkingLevel::parse),
    };
    let has_talked = store.n_messages() > 0;
    let select = || select::start(&registry, &wanted, &settings, has_talked.then_some(&recorded));
    let mut start = select();
    let is_as_wanted = |start: &Start| start.model.is_some() && start.warnings.is_empty();
    if loader.is_pending() && !start.as_ref().is_ok_and(is_as_wanted) {
        // The model may be one that an extension brings along.
        loader.finish().await;
        loader.bind(&extension_flags, &registry).await;
        start = select();
    }
    let start = start.map_err(anyhow::Error::msg)?;
    let running = loader.into_running();
    if has_talked && cli.thinking.is_some() && recorded.thinking != Some(start.thinking) {
        store.append_thinking_level(start.thinking);
    }
    start.warnings.iter().for_each(|warning| warn(&format!("Warning: {warning}")));
    let relocation: Relocation = {
        let (environment, agent_dir, registry) = (environment.clone(), agent_dir.clone(), registry.clone());
        let is_offline = cli.offline;
        Box::new(move |cwd, settings, before| {
            let options = workbench_options(cwd, &environment, settings);
            let workbench = match before.filter(|before| before.base.cwd == cwd) {
                Some(before) => before.renewed(options),
                None => Workbench::new(cwd.to_owned(), options),
            };
            set_conditions(&workbench, is_offline, &agent_dir, settings, &registry);
            let tools = builtin_tools(&workbench);
            (workbench, tools)
        })
    };
    let rules = stream_rules(&cli, dialect, &agent_dir, project.trusts(&cwd).then_some(&*cwd));
    Ok(Prepared {
        cli,
        store,
        places,
        relocation,
        registry,
        project,
        brought,
        client,
        start,
        choices,
        rules,
        extensions,
        running,
        extension_flags,
    })
}

/// Loads the extensions of a directory once it is known whether it is trusted, which some of them may decide.
pub async fn judge_and_load(
    extensions: &Extensions,
    loader: &mut Loader<'_>,
    project: &mut Project,
    cwd: &Path,
) -> LoadedSettings {
    let unjudged = project.look(cwd);
    let (mut said, mut search) = (None, None);
    if project.is_open(cwd, &unjudged) {
        let before = extensions.find(cwd, unjudged.user_settings(), Search::Untrusted);
        match before.sources.is_empty() && before.errors.is_empty() {
            true => search = Some(Search::OnlyProject),
            false => {
                // What is missing now may be in the project.
                loader.load(Discovery { errors: Vec::new(), ..before }, unjudged.user_settings()).await;
                said = loader.project_trust().await;
            }
        }
    }
    let loaded = project.judge(cwd, unjudged, said);
    let search = match (search, project.trusts(cwd)) {
        (Some(Search::OnlyProject), false) => return loaded,
        (Some(search), true) => search,
        (_, is_trusted) => Search::all(is_trusted),
    };
    let found = extensions.find(cwd, &loaded.settings, search);
    match extensions.serves_host() {
        true => loader.load_for_host(found, &loaded.settings).await,
        false => loader.load(found, &loaded.settings).await,
    }
    loaded
}

/// The user's directory in the layout of a dialect.
pub fn agent_dir(dialect: &Dialect, environment: &Environment) -> AgentDir {
    AgentDir::locate(dialect.layout, environment)
}

/// The scripted model exists only when it is asked for by name.
fn scripts(cli: &Cli, registry: &Registry) -> anyhow::Result<Scripts> {
    let asks_by_name = cli.provider.as_deref() == Some(SCRIPTED)
        || cli.model.as_deref().is_some_and(|model| model.starts_with("scripted/"));
    let (id, scripts) = match &cli.script {
        Some(file) => (SCRIPT_FILE, Scripts::load(file).map_err(anyhow::Error::msg)?),
        None if asks_by_name => (TOUR, Scripts::default()),
        None => return Ok(Scripts::default()),
    };
    registry.support_api(SCRIPTED);
    registry.register(scripted::provider(id), Visibility::ByNameOnly);
    Ok(scripts)
}

/// Rules of the trusted project, then of the user.
fn stream_rules(cli: &Cli, dialect: &Dialect, agent_dir: &AgentDir, project: Option<&Path>) -> StreamRules {
    if !dialect.has_stream_rules || cli.no_rules {
        return StreamRules::default();
    }
    let mut directories: Vec<PathBuf> = project.map(|cwd| agent_dir.project_dir(cwd)).into_iter().collect();
    directories.push(agent_dir.path().to_owned());
    let (rules, found) = pith_resources::load_rules(&directories);
    for diagnostic in found {
        let path = diagnostic.path.as_deref().unwrap_or(Path::new("rules"));
        warn(&format!("Warning: {}: {}", path.display(), diagnostic.message));
    }
    let (rules, problems) = StreamRules::compile(rules);
    problems.iter().for_each(|problem| warn(&format!("Warning: {problem}")));
    rules
}

fn client_options(settings: &Settings) -> ClientOptions {
    let notice: Arc<dyn Fn(Notice) + Send + Sync> = Arc::new(|notice| warn(&format!("pith: {notice}")));
    ClientOptions { notice: Some(notice), ..ClientOptions::from(settings) }
}

fn stream_updates(cli: &Cli, environment: &Environment) -> anyhow::Result<StreamUpdates> {
    match (cli.stream_updates, environment.get("PITH_STREAM_UPDATES")) {
        (Some(mode), _) => Ok(mode),
        (None, Some(value)) => cli::stream_updates(&value).map_err(anyhow::Error::msg),
        (None, None) => Ok(StreamUpdates::Full),
    }
}

fn workbench_options(cwd: &Path, environment: &Environment, settings: &Settings) -> WorkbenchOptions {
    WorkbenchOptions {
        home: Some(environment.home().to_owned()),
        shell: Shell {
            path: settings.shell_path.as_deref().map(|path| environment.expand(path)),
            prefix: settings.shell_command_prefix.clone(),
        },
        roots: (!settings.tools.root.is_empty())
            .then(|| settings.tools.root.iter().map(|root| cwd.join(environment.expand(root))).collect()),
        auto_resize_images: settings.images.auto_resize,
        keep_background: settings.bash.keep_background,
        guard: Guard::this_program().ok(),
        ..WorkbenchOptions::default()
    }
}

/// What commands of the model see of pith and its credentials.
fn set_conditions(
    workbench: &Workbench,
    is_offline: bool,
    agent_dir: &AgentDir,
    settings: &Settings,
    registry: &Registry,
) {
    let hidden = if settings.bash.inherit_secrets { Vec::new() } else { registry.credential_variables() };
    let mut marks = vec![("PI_CODING_AGENT", "true"), ("AI_AGENT", "pith"), ("PITH", "1")];
    if is_offline {
        marks.extend([("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1")]);
    }
    workbench.update_conditions(|conditions| {
        conditions.env.common = marks.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        conditions.env.hidden = hidden;
        conditions.env.bin = Some(agent_dir.path().join("bin"));
    });
}

impl Prepared {
    /// The parts of the session, with the outbox its frames go to.
    pub fn into_parts(self, out: Box<dyn Outbox>) -> SessionParts {
        let (workbench, tools) = (self.relocation)(self.store.cwd(), &self.brought.settings, None);
        // Shared by those who read directories again.
        let project = Arc::new(Mutex::new(self.project));
        let extensions = {
            let project = project.clone();
            let (flags, settings) = (self.extension_flags, &self.brought.settings);
            self.extensions.setup(self.running, flags, self.client.web(), settings, move |extensions, cwd| {
                let mut project = project.lock().unwrap_or_else(PoisonError::into_inner);
                let settings = project.settings(cwd).settings;
                extensions.find(cwd, &settings, Search::all(project.trusts(cwd))).sources
            })
        };
        let choices = self.choices;
        SessionParts {
            out,
            store: self.store,
            places: self.places,
            relocation: self.relocation,
            client: Arc::new(self.client),
            registry: self.registry,
            tools,
            workbench,
            tool_choice: ToolChoice {
                only: self.cli.tools,
                none: self.cli.no_tools || self.cli.no_builtin_tools,
                no_extension_tools: self.cli.no_tools,
                exclude: self.cli.exclude_tools,
                defaults: self.brought.settings.default_tools.clone(),
                additional: Vec::new(),
                unlisted: Vec::new(),
            },
            rules: self.rules,
            brought: self.brought,
            read_again: Box::new(move |cwd, reading, contributed| {
                let mut project = project.lock().unwrap_or_else(PoisonError::into_inner);
                if reading == Reading::Trusted {
                    project.trust(cwd);
                }
                project.read(cwd, contributed, |settings| choices.options(settings))
            }),
            start: self.start,
            extensions,
            on_rest: || {},
        }
    }

    /// Asks local servers for their models in the background, where `models.json` wants that.
    pub fn discover(&self) {
        let is_offline = self.cli.offline || std::env::var("PI_OFFLINE").is_ok_and(|value| is_truthy(&value));
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

    /// The directory the session works in.
    pub fn cwd(&self) -> &Path {
        self.store.cwd()
    }

    /// What pictures of the first prompt may be like.
    pub fn image_rules(&self) -> image::Rules {
        image::Rules { auto_resize: self.brought.settings.images.auto_resize, limits: image::Limits::default() }
    }

    /// Where sessions are kept, unless they are not.
    pub fn sessions(&self) -> Option<&Path> {
        self.store.path().map(|_| self.places.dir.as_path())
    }

    /// What is wrong with the resources, for people.
    pub fn resource_problems(&self) -> Vec<String> {
        let one = |found: &pith_resources::Diagnostic| match &found.path {
            Some(path) => format!("{}: {}", path.display(), found.message),
            None => found.message.clone(),
        };
        self.brought.resources.diagnostics().iter().map(one).collect()
    }
}

impl Choices {
    fn options(&self, settings: &Settings) -> SessionOptions {
        SessionOptions {
            steering_mode: queue_mode(settings.steering_mode),
            follow_up_mode: queue_mode(settings.follow_up_mode),
            interrupt_mode: match settings.interrupt_mode {
                settings::InterruptMode::Immediate => InterruptMode::Immediate,
                settings::InterruptMode::Wait => InterruptMode::Wait,
            },
            stream_updates: self.stream_updates,
            auto_compaction: settings.compaction.enabled,
            retry: RetryPolicy {
                is_enabled: settings.retry.enabled,
                max_retries: u32::try_from(settings.retry.max_retries).unwrap_or(u32::MAX),
                base_delay: settings.retry.base_delay,
                max_delay: settings.retry.max_agent_delay,
                max_server_delay: Some(settings.retry.provider.max_retry_delay).filter(|delay| *delay > Duration::ZERO),
            },
            max_turns: settings.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            block_images: settings.images.block_images,
            cache: self.cache,
            attribution: self.dialect.attribution,
            export_app: self.dialect.name,
            busy_text: self.dialect.busy_text,
            state_has_prompt: self.dialect.state_has_prompt,
            highest_level: self.dialect.highest_level,
            counts_premium_requests: self.dialect.counts_premium_requests,
            tells_late_failures: self.dialect.tells_late_failures,
            reports_aborted_calls: self.dialect.reports_aborted_calls,
            has_todo_tool: self.dialect.keeps_todos,
            todo_reminders: self.dialect.keeps_todos,
            todo_clear_after: settings.tasks.todo_clear_delay,
            host_tool_timeout: self.host_tool_timeout,
            fsync: settings.session.fsync,
            name: self.name.clone(),
        }
    }
}

fn is_truthy(value: &str) -> bool {
    ["1", "true", "yes"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn queue_mode(mode: settings::QueueMode) -> QueueMode {
    match mode {
        settings::QueueMode::All => QueueMode::All,
        settings::QueueMode::OneAtATime => QueueMode::OneAtATime,
    }
}
