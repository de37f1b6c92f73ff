//! Extensions before there is a session: they are loaded, asked about trust in the project, and given their flags.
//! Their requests meanwhile are served or kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pith_agent::ModelClient;
use pith_ai::{ClientOptions, Clients, Providers, Registry, Scripts, Web};
use pith_config::{AgentDir, Environment, Settings};
use pith_ext::outgoing::Answer;
use pith_ext::{
    Discovery, EventName, ExtensionError, ExtensionHandle, ExtensionHost, ExtensionSource, FromExtension, LoadError,
    LoadReport, LoadedExtension, Loading, Mode, Requests, TrustDecision,
};
use pith_protocol::host::UiAnswer;
use pith_secrets::Secrets;
use pith_session::{
    LoadingExtensions, RunningExtensions, answer_from_registry, model_auth, register_provider, serve_fetch,
    serve_model_request, serve_tool,
};
use pith_tools::Workbench;
use pith_tools::sandbox::Oversight;
use pith_visible::write_stderr;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{Extensions, NAMED, limits};
use crate::modes::questions::{Questions, Shown};
use crate::open::tools::early_workbench;

/// How long a host waits for extensions that make no progress.
const STALL_LIMIT: Duration = Duration::from_millis(50);

/// How long a host waits for extensions that do make progress.
const LOAD_LIMIT: Duration = Duration::from_secs(1);

/// Loads extensions and collects what the session takes over.
pub struct Loader<'a> {
    extensions: &'a Extensions,
    cwd: PathBuf,
    /// Started with the first extension.
    engine: Option<Engine>,
    sources: Vec<ExtensionSource>,
    loaded: Vec<LoadedExtension>,
    errors: Vec<LoadError>,
    /// Extensions that are still loading, see [`Loader::load_for_host`].
    pending: Option<LoadingExtensions>,
}

/// A running engine.
struct Engine {
    handle: ExtensionHandle,
    requests: Requests,
    /// Requests that only a session can serve.
    early: Vec<FromExtension>,
    /// Errors of provider registrations, which the session reports again when it registers them.
    other_errors: Vec<ExtensionError>,
    /// The user at the terminal, if there is one, and the dialogs of extensions.
    questions: Option<Questions>,
    asked: HashMap<String, Answer<UiAnswer>>,
    /// Carries out HTTP requests.
    web: Web,
    /// Work that factories wait for.
    services: JoinSet<()>,
    early_services: EarlyServices,
}

/// What extensions may use before there is a session: models and credentials from the files, and built-in tools.
struct EarlyServices {
    cwd: PathBuf,
    agent_dir: AgentDir,
    environment: Environment,
    oversight: Oversight,
    settings: Settings,
    clients: Arc<Clients>,
    /// Read when it is first needed.
    registry: Option<Arc<Registry>>,
}

impl EarlyServices {
    fn registry(&mut self) -> &Arc<Registry> {
        let load = || Registry::load(&self.agent_dir, self.environment.clone(), &self.settings);
        self.registry.get_or_insert_with(|| load().telling(Secrets::of_process()))
    }

    /// Makes a client for the models of the registry. Providers of extensions are not registered yet.
    fn client(&mut self) -> Arc<dyn ModelClient> {
        let registry = self.registry().clone();
        let options = ClientOptions { secrets: registry.secrets(), ..ClientOptions::from(&self.settings) };
        Arc::new(Providers::with_clients(registry, options, Scripts::default(), self.clients.clone()))
    }

    fn workbench(&mut self) -> Arc<Workbench> {
        let registry = self.registry().clone();
        let (environment, oversight) = (&self.environment, &self.oversight);
        early_workbench(&self.cwd, environment, &self.agent_dir, &self.settings, &registry, oversight)
    }

    /// Replaces the settings, of which there may be more once the project is trusted.
    fn set_settings(&mut self, settings: &Settings) {
        if self.settings != *settings {
            self.settings = settings.clone();
            self.registry = None;
        }
    }
}

impl<'a> Loader<'a> {
    /// Creates a loader for the extensions of a directory. Starts nothing.
    pub fn new(extensions: &'a Extensions, cwd: &Path) -> Self {
        let (sources, loaded, errors) = Default::default();
        Loader { extensions, cwd: cwd.to_owned(), engine: None, sources, loaded, errors, pending: None }
    }

    /// Loads extensions that are not loaded yet; `found` has the order in which handlers are called from now on.
    pub async fn load(&mut self, found: Discovery, settings: &Settings) {
        self.begin(found, settings);
        self.finish().await;
    }

    /// Like [`Loader::load`], for a host that is waiting: extensions that load too slowly, and that the start does not
    /// depend on, are loaded while the session is served.
    pub async fn load_for_host(&mut self, found: Discovery, settings: &Settings) {
        let must_wait = self.extensions.is_any_needed(&found.sources);
        self.begin(found, settings);
        if must_wait {
            return self.finish().await;
        }
        let (Some(engine), Some(mut loading)) = (&mut self.engine, self.pending.take()) else { return };
        let handle = engine.handle.clone();
        let report = engine.during(None, async {
            tokio::select! {
                biased;
                report = &mut loading => Some(report),
                () = handle.stalled(STALL_LIMIT) => None,
                () = tokio::time::sleep(LOAD_LIMIT) => None,
            }
        });
        match report.await {
            Some(report) => self.take(report),
            None => self.pending = Some(loading),
        }
    }

    /// Waits for extensions that are still loading.
    pub async fn finish(&mut self) {
        if let (Some(engine), Some(loading)) = (&mut self.engine, self.pending.take()) {
            let report = engine.during(None, loading).await;
            self.take(report);
        }
    }

    /// Returns whether extensions are still loading.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn begin(&mut self, found: Discovery, settings: &Settings) {
        self.errors.extend(found.errors);
        if found.sources.is_empty() {
            return;
        }
        let surroundings = self.extensions.surroundings(&self.cwd);
        let engine = self.engine.get_or_insert_with(|| Engine::start(self.extensions, &self.cwd, settings));
        engine.early_services.set_settings(settings);
        // An extension that failed once would run and fail again.
        let failed: Vec<&str> = self.errors.iter().map(|error| error.path.as_str()).collect();
        let wanted: Vec<_> =
            found.sources.iter().filter(|source| !failed.contains(&source.path.as_str())).cloned().collect();
        let handle = engine.handle.clone();
        self.pending = Some(Box::pin(async move { handle.load(&wanted, Loading::Add, &surroundings).await }));
        self.sources = found.sources;
    }

    fn take(&mut self, report: LoadReport) {
        self.loaded = report.extensions;
        for error in report.errors {
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
    }

    /// Asks extensions about trust in the project; the first that decides is used.
    pub async fn project_trust(&mut self) -> Option<TrustDecision> {
        let engine = self.engine.as_mut()?;
        let handle = engine.handle.clone();
        if !handle.listens(EventName::ProjectTrust) {
            return None;
        }
        let cwd = self.cwd.to_string_lossy().into_owned();
        engine.during(None, handle.project_trust(&cwd)).await
    }

    /// Refuses to continue without extensions that must be loaded.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_found = |path: &str, scope: &str| {
            self.sources.iter().any(|source| source.path == path && source.source_info.scope == scope)
        };
        // A path that was not found was named on the command line.
        let is_named = |error: &LoadError| {
            is_found(&error.path, NAMED) || !self.sources.iter().any(|source| source.path == error.path)
        };
        self.extensions.check(&self.errors, is_named)
    }

    /// Enables actions, and registers providers. The session does that for extensions that are still loading.
    pub async fn bind(&mut self, flags: &HashMap<String, Value>, registry: &Registry) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.pending.is_none()) else { return };
        let surroundings = self.extensions.surroundings(&self.cwd);
        let handle = engine.handle.clone();
        engine.during(Some(registry), handle.bind(&surroundings, flags)).await;
    }

    /// Returns what has been registered; `None` without extensions.
    pub fn registry(&self) -> Option<Arc<pith_ext::Registry>> {
        self.engine.as_ref().map(|engine| engine.handle.registry())
    }

    /// Returns the loaded extensions, in the order of their handlers.
    pub fn loaded(&self) -> &[LoadedExtension] {
        &self.loaded
    }

    /// Returns the extensions that could not be loaded.
    pub fn errors(&self) -> &[LoadError] {
        &self.errors
    }

    /// Ends the engine, because there will be no session. Returns the errors since the start.
    pub async fn close(self) -> Vec<ExtensionError> {
        let Some(mut engine) = self.engine else { return Vec::new() };
        let handle = engine.handle.clone();
        engine.during(None, handle.close()).await;
        let error = |request| match request {
            FromExtension::Error(error) => Some(error),
            _ => None,
        };
        engine.early.into_iter().filter_map(error).chain(engine.other_errors).collect()
    }

    /// Converts to what the session takes over.
    pub fn into_running(self) -> Option<RunningExtensions> {
        let Engine { handle, requests, early, mut services, .. } = self.engine?;
        // Each ends when the extension aborts it, at the latest with the engine.
        services.detach_all();
        let (sources, errors, loading) = (self.sources, self.errors, self.pending);
        Some(RunningExtensions { handle, requests, sources, errors, early, loading })
    }
}

impl Engine {
    fn start(extensions: &Extensions, cwd: &Path, settings: &Settings) -> Engine {
        let limits = limits::of(&settings.extension_limits);
        let (handle, requests) = ExtensionHost::start(extensions.config(cwd, limits));
        let clients = Arc::new(Clients::with_proxy(settings.http_proxy.clone()));
        let web = Web::new(clients.clone(), ClientOptions::from(settings).timeouts);
        let questions = (extensions.mode == Mode::Tui).then(|| Questions::new(on_stderr));
        let early_services = EarlyServices {
            cwd: cwd.to_owned(),
            agent_dir: extensions.agent_dir.clone(),
            environment: extensions.environment.clone(),
            oversight: extensions.oversight.clone(),
            settings: settings.clone(),
            clients,
            registry: None,
        };
        let (early, other_errors, asked, services) = Default::default();
        Engine { handle, requests, early, other_errors, questions, asked, web, services, early_services }
    }

    /// Awaits a call into the extensions and serves their requests meanwhile.
    async fn during<T>(&mut self, registry: Option<&Registry>, call: impl Future<Output = T>) -> T {
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(request) = self.requests.recv() => self.take(request, registry),
                (id, answer) = answered(&mut self.questions) => {
                    if let Some(waiting) = self.asked.remove(&id) {
                        waiting.send(answer);
                    }
                }
                result = &mut call => return result,
            }
        }
    }

    /// Serves a request, keeps it for the session, or lets it fail: an extension that waits for something only a
    /// session has must not keep the session from starting.
    fn take(&mut self, request: FromExtension, registry: Option<&Registry>) {
        let request = match (request, &mut self.questions) {
            (FromExtension::Fetch { request, reply }, _) => {
                let web = self.web.clone();
                self.services.spawn(async move { serve_fetch(&web, request, reply).await });
                return;
            }
            (FromExtension::Query(query), _) => {
                // All other queries fail: their replies are dropped.
                match registry {
                    Some(registry) => answer_from_registry(registry, query),
                    None => answer_from_registry(self.early_services.registry(), query),
                };
                return;
            }
            (FromExtension::ModelAuth { provider, model, answer }, _) => {
                let registry = self.early_services.registry().clone();
                self.services.spawn(async move { answer.send(model_auth(&registry, provider, model).await) });
                return;
            }
            (FromExtension::Stream { request, reply }, _) => {
                let (client, registry) = (self.early_services.client(), self.early_services.registry().clone());
                let block_images = self.early_services.settings.images.block_images;
                self.services.spawn(async move {
                    serve_model_request(&registry, client, block_images, None, request, reply).await;
                });
                return;
            }
            (FromExtension::RunTool { request, reply }, _) => {
                let workbench = self.early_services.workbench();
                self.services.spawn(async move { serve_tool(&workbench, request, reply).await });
                return;
            }
            (FromExtension::Dialog { request, answer }, Some(questions)) => {
                self.asked.insert(request.id.clone(), answer);
                return questions.ask(request);
            }
            (FromExtension::DialogWithdrawn { id }, Some(questions)) => {
                self.asked.remove(&id);
                return questions.withdraw(&id);
            }
            (other, _) => other,
        };
        match &request {
            FromExtension::RegisterProvider(registration) => {
                if let Some(registry) = registry
                    && let Err(error) = register_provider(registry, registration)
                {
                    let (path, event) = (registration.extension_path.clone(), "register_provider".to_owned());
                    self.other_errors.push(ExtensionError { path, event, error, stack: None });
                }
            }
            FromExtension::UnregisterProvider { name } => {
                if let Some(registry) = registry {
                    registry.unregister(name);
                }
            }
            FromExtension::Error(_)
            | FromExtension::Display(_)
            | FromExtension::AppendEntry { .. }
            | FromExtension::SetSessionName { .. }
            | FromExtension::SetLabel { .. }
            | FromExtension::SetActiveTools { .. }
            | FromExtension::SetThinkingLevel { .. }
            | FromExtension::SendMessage { .. }
            | FromExtension::SendUserMessage { .. }
            | FromExtension::Shutdown { .. } => {}
            FromExtension::Dialog { .. }
            | FromExtension::DialogWithdrawn { .. }
            | FromExtension::RegistryChanged
            | FromExtension::SetModel { .. }
            | FromExtension::Abort
            | FromExtension::Compact { .. }
            | FromExtension::WaitForIdle { .. }
            | FromExtension::NewSession { .. }
            | FromExtension::Fork { .. }
            | FromExtension::SwitchSession { .. }
            | FromExtension::NavigateTree { .. }
            | FromExtension::Reload { .. }
            | FromExtension::ModelAuth { .. }
            | FromExtension::RefreshModels { .. }
            | FromExtension::Stream { .. }
            | FromExtension::Fetch { .. }
            | FromExtension::RunTool { .. }
            | FromExtension::Query(_) => return,
        }
        self.early.push(request);
    }
}

/// Waits for the next answer of the user, if there is one to ask.
async fn answered(questions: &mut Option<Questions>) -> (String, UiAnswer) {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}

/// Writes questions to stderr: there is no screen yet, and stdout may be redirected.
fn on_stderr(shown: Shown) {
    let text = match shown {
        Shown::Question(text) => text,
        Shown::Done => return,
        Shown::Declined | Shown::Withdrawn => "\n".to_owned(),
    };
    // A terminal that is gone is noticed elsewhere.
    write_stderr(&text);
}
