//! From command line, environment and files to the parts of a session. No network.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pith_ai::agent_dir::{AgentDir, Layout};
use pith_ai::environment::Environment;
use pith_ai::registry::{Registry, Visibility};
use pith_ai::scripted::{self, SCRIPTED, TOUR};
use pith_ai::select::{self, Recorded, Start, Wanted};
use pith_ai::settings::{self, Settings};
use pith_ai::{ClientOptions, Notice, Providers, Scripts};
use pith_protocol::{CacheRetention, InterruptMode, QueueMode, StreamUpdates, ThinkingLevel};
use pith_session::{Outbox, Relocation, RetryPolicy, SessionOptions, SessionParts, SessionPlaces, ToolChoice};
use pith_store::SessionStore;
use pith_tools::process::Guard;
use pith_tools::shell::Shell;
use pith_tools::{Workbench, WorkbenchOptions, builtin_tools};

use crate::cli::{self, Cli};
use crate::dialect::{Dialect, XCSH};
use crate::sessions;
use crate::warn;

/// The id of the model that plays `--script FILE`.
const SCRIPT_FILE: &str = "file";

/// Everything but the outbox.
pub struct Prepared {
    cli: Cli,
    dialect: &'static Dialect,
    store: SessionStore,
    places: SessionPlaces,
    relocation: Relocation,
    registry: Arc<Registry>,
    settings: Arc<Settings>,
    client: Providers,
    start: Start,
    stream_updates: StreamUpdates,
}

/// Reads what there is to read; `Err` ends the process before the first frame.
pub fn prepare(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<Prepared> {
    let environment = Environment::of_process();
    let layout = if std::ptr::eq(dialect, &XCSH) { Layout::Xcsh } else { Layout::Pi };
    let agent_dir = AgentDir::locate(layout, &environment);
    let cwd = std::env::current_dir()?;
    // Where sessions are is read before anybody is asked whether the project is trusted.
    let setting = settings::load(&agent_dir, &cwd, true).settings.session_dir;
    let places = sessions::places(cli.session_dir.clone(), &environment, setting.as_deref(), &agent_dir, &cwd);
    let mut store = cli.sessions.open(&places, &cwd, &environment)?;
    // A session belongs to a directory, wherever it is opened from.
    let cwd = store.cwd().to_owned();
    let loaded = settings::load(&agent_dir, &cwd, false);
    loaded.diagnostics.iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    let settings = Arc::new(loaded.settings);
    let registry = Arc::new(Registry::load(&agent_dir, environment.clone(), &settings));
    registry.diagnostics().iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
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
    let has_talked = !store.messages().is_empty();
    let start =
        select::start(&registry, &wanted, &settings, has_talked.then_some(&recorded)).map_err(anyhow::Error::msg)?;
    if has_talked && cli.thinking.is_some() && recorded.thinking != Some(start.thinking) {
        store.append_thinking_level(start.thinking);
    }
    start.warnings.iter().for_each(|warning| warn(&format!("Warning: {warning}")));
    let relocation: Relocation = {
        let (environment, agent_dir, settings, registry) =
            (environment.clone(), agent_dir.clone(), settings.clone(), registry.clone());
        Box::new(move |cwd| {
            let workbench = workbench(cwd, &environment, &agent_dir, &settings, &registry);
            let tools = builtin_tools(&workbench);
            (workbench, tools)
        })
    };
    Ok(Prepared {
        stream_updates: stream_updates(&cli, &environment)?,
        cli,
        dialect,
        store,
        places,
        relocation,
        registry,
        settings,
        client,
        start,
    })
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

fn workbench(
    cwd: &Path,
    environment: &Environment,
    agent_dir: &AgentDir,
    settings: &Settings,
    registry: &Registry,
) -> Arc<Workbench> {
    let options = WorkbenchOptions {
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
    };
    let workbench = Workbench::new(cwd.to_owned(), options);
    let hidden = if settings.bash.inherit_secrets { Vec::new() } else { registry.credential_variables() };
    let marks = [("PI_CODING_AGENT", "true"), ("AI_AGENT", "pith"), ("PITH", "1")];
    workbench.update_conditions(|conditions| {
        conditions.env.common = marks.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        conditions.env.hidden = hidden;
        conditions.env.bin = Some(agent_dir.path().join("bin"));
    });
    workbench
}

impl Prepared {
    /// The parts of the session, with the outbox its frames go to.
    pub fn into_parts(self, out: Box<dyn Outbox>) -> SessionParts {
        let options = self.options();
        let (workbench, tools) = (self.relocation)(self.store.cwd());
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
                none: self.cli.no_tools,
                exclude: self.cli.exclude_tools,
                defaults: self.settings.default_tools.clone(),
            },
            settings: self.settings,
            start: self.start,
            options,
        }
    }

    fn options(&self) -> SessionOptions {
        let settings = &self.settings;
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
            cache: match std::env::var("PI_CACHE_RETENTION").as_deref() {
                Ok("long") => CacheRetention::Long,
                Ok("none") => CacheRetention::None,
                _ => CacheRetention::Short,
            },
            attribution: self.dialect.attribution,
            busy_text: self.dialect.busy_text,
            state_has_prompt: self.dialect.state_has_prompt,
            fsync: settings.session.fsync,
            name: self.cli.name.clone(),
        }
    }
}

fn queue_mode(mode: settings::QueueMode) -> QueueMode {
    match mode {
        settings::QueueMode::All => QueueMode::All,
        settings::QueueMode::OneAtATime => QueueMode::OneAtATime,
    }
}
