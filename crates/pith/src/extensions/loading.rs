//! Extensions before there is a session: loaded, asked whether they trust the
//! project, told their flags. What they want meanwhile is served or kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pith_ai::{ClientOptions, Clients, Registry, Web};
use pith_config::{AgentDir, Environment, Settings};
use pith_ext::outgoing::Answer;
use pith_ext::{
    Discovery, EventName, ExtensionError, ExtensionHandle, ExtensionHost, ExtensionSource, FromExtension, LoadError,
    LoadReport, LoadedExtension, Loading, Mode, Requests, TrustDecision,
};
use pith_protocol::host::UiAnswer;
use pith_session::{
    LoadingExtensions, RunningExtensions, answer_from_registry, model_auth, register_provider, serve_fetch,
};
use pith_visible::write_stderr;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{Extensions, NAMED, limits};
use crate::people::questions::{Questions, Shown};

/// A host waits this long for extensions among which nothing gets on any more.
const STALLED: Duration = Duration::from_millis(50);

/// And no longer than this for those that do get on.
const LONG: Duration = Duration::from_secs(1);

/// Loads what is found and keeps what is to be handed to the session.
pub struct Loader<'a> {
    extensions: &'a Extensions,
    cwd: PathBuf,
    /// Started with the first extension.
    engine: Option<Engine>,
    sources: Vec<ExtensionSource>,
    loaded: Vec<LoadedExtension>,
    errors: Vec<LoadError>,
    /// What has not come back yet, see [`Loader::load_for_host`].
    pending: Option<LoadingExtensions>,
}

/// A running engine.
struct Engine {
    handle: ExtensionHandle,
    requests: Requests,
    /// Requests that only a session can deal with.
    early: Vec<FromExtension>,
    /// What the session finds out again when it is told of providers.
    complaints: Vec<ExtensionError>,
    /// The person at the terminal, where there is one, and what extensions have asked.
    questions: Option<Questions>,
    asked: HashMap<String, Answer<UiAnswer>>,
    /// For requests of factories.
    web: Web,
    /// Work that factories wait for.
    services: JoinSet<()>,
    known: Known,
}

/// What extensions may ask about before there is a session: models and credentials as the files have them.
struct Known {
    agent_dir: AgentDir,
    environment: Environment,
    settings: Settings,
    /// Read for the first who asks.
    registry: Option<Arc<Registry>>,
}

impl Known {
    fn registry(&mut self) -> &Arc<Registry> {
        let load = || Arc::new(Registry::load(&self.agent_dir, self.environment.clone(), &self.settings));
        self.registry.get_or_insert_with(load)
    }

    /// Replaces the settings, which may say more once the project is trusted.
    fn set_settings(&mut self, settings: &Settings) {
        if self.settings != *settings {
            self.settings = settings.clone();
            self.registry = None;
        }
    }
}

impl<'a> Loader<'a> {
    /// For the extensions of a directory. Starts nothing.
    pub fn new(extensions: &'a Extensions, cwd: &Path) -> Self {
        let (sources, loaded, errors) = Default::default();
        Loader { extensions, cwd: cwd.to_owned(), engine: None, sources, loaded, errors, pending: None }
    }

    /// Loads what is not loaded yet; `found` has the order in which handlers are called from now on.
    pub async fn load(&mut self, found: Discovery, settings: &Settings) {
        self.begin(found, settings);
        self.finish().await;
    }

    /// The same for a host that asks for answers meanwhile: what takes too long, and need not be there, is
    /// loaded while the session is served.
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
                () = handle.stalled(STALLED) => None,
                () = tokio::time::sleep(LONG) => None,
            }
        });
        match report.await {
            Some(report) => self.take(report),
            None => self.pending = Some(loading),
        }
    }

    /// Waits for what has not come back yet.
    pub async fn finish(&mut self) {
        if let (Some(engine), Some(loading)) = (&mut self.engine, self.pending.take()) {
            let report = engine.during(None, loading).await;
            self.take(report);
        }
    }

    /// Whether something is still being loaded.
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
        engine.known.set_settings(settings);
        // What has failed once would fail again, and run again.
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

    /// What handlers say about the project; the first that decides counts.
    pub async fn project_trust(&mut self) -> Option<TrustDecision> {
        let engine = self.engine.as_mut()?;
        let handle = engine.handle.clone();
        if !handle.listens(EventName::ProjectTrust) {
            return None;
        }
        let cwd = self.cwd.to_string_lossy().into_owned();
        engine.during(None, handle.project_trust(&cwd)).await
    }

    /// Refuses to go on without extensions that must be there.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_found = |path: &str, scope: &str| {
            self.sources.iter().any(|source| source.path == path && source.source_info.scope == scope)
        };
        // What was not even found was named on the command line.
        let is_named = |error: &LoadError| {
            is_found(&error.path, NAMED) || !self.sources.iter().any(|source| source.path == error.path)
        };
        self.extensions.check(&self.errors, is_named)
    }

    /// Lets actions work, and providers join the registry. The session does that for what is still being loaded.
    pub async fn bind(&mut self, flags: &HashMap<String, Value>, registry: &Registry) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.pending.is_none()) else { return };
        let surroundings = self.extensions.surroundings(&self.cwd);
        let handle = engine.handle.clone();
        engine.during(Some(registry), handle.bind(&surroundings, flags)).await;
    }

    /// What has been registered; `None` without extensions.
    pub fn registry(&self) -> Option<Arc<pith_ext::Registry>> {
        self.engine.as_ref().map(|engine| engine.handle.registry())
    }

    /// What is loaded, in the order of handlers.
    pub fn loaded(&self) -> &[LoadedExtension] {
        &self.loaded
    }

    /// What could not be loaded.
    pub fn errors(&self) -> &[LoadError] {
        &self.errors
    }

    /// Ends the engine: there will be no session. What went wrong meanwhile is handed over.
    pub async fn close(self) -> Vec<ExtensionError> {
        let Some(mut engine) = self.engine else { return Vec::new() };
        let handle = engine.handle.clone();
        engine.during(None, handle.close()).await;
        let error = |request| match request {
            FromExtension::Error(error) => Some(error),
            _ => None,
        };
        engine.early.into_iter().filter_map(error).chain(engine.complaints).collect()
    }

    /// Everything for the session, which takes over.
    pub fn into_running(self) -> Option<RunningExtensions> {
        let Engine { handle, requests, early, mut services, .. } = self.engine?;
        // Each ends when the extension has lost interest in it, at the latest with the engine.
        services.detach_all();
        let (sources, errors, loading) = (self.sources, self.errors, self.pending);
        Some(RunningExtensions { handle, requests, sources, errors, early, loading })
    }
}

impl Engine {
    fn start(extensions: &Extensions, cwd: &Path, settings: &Settings) -> Engine {
        let limits = limits::of(&settings.extension_limits);
        let (handle, requests) = ExtensionHost::start(extensions.config(cwd, limits));
        let clients = Clients::with_proxy(settings.http_proxy.clone());
        let web = Web::new(Arc::new(clients), ClientOptions::from(settings).timeouts);
        let questions = (extensions.mode == Mode::Tui).then(|| Questions::new(on_stderr));
        let known = Known {
            agent_dir: extensions.agent_dir.clone(),
            environment: extensions.environment.clone(),
            settings: settings.clone(),
            registry: None,
        };
        let (early, complaints, asked, services) = Default::default();
        Engine { handle, requests, early, complaints, questions, asked, web, services, known }
    }

    /// Awaits a call into the extensions and serves them meanwhile.
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

    /// Serves a request, keeps it for the session, or lets it fail: whoever waits for
    /// something that only a session has must not keep the session from beginning.
    fn take(&mut self, request: FromExtension, registry: Option<&Registry>) {
        let request = match (request, &mut self.questions) {
            (FromExtension::Fetch { request, reply }, _) => {
                let web = self.web.clone();
                self.services.spawn(async move { serve_fetch(&web, request, reply).await });
                return;
            }
            (FromExtension::Query(query), _) => {
                // The others are answered with a failure: they are dropped.
                match registry {
                    Some(registry) => answer_from_registry(registry, query),
                    None => answer_from_registry(self.known.registry(), query),
                };
                return;
            }
            (FromExtension::ModelAuth { provider, model, answer }, _) => {
                let registry = self.known.registry().clone();
                self.services.spawn(async move { answer.send(model_auth(&registry, provider, model).await) });
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
                    self.complaints.push(ExtensionError { path, event, error, stack: None });
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

/// The next answer of the person, if there is one to ask.
async fn answered(questions: &mut Option<Questions>) -> (String, UiAnswer) {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}

/// There is no screen yet, and standard output may be somebody else's.
fn on_stderr(shown: Shown) {
    let text = match shown {
        Shown::Question(text, _) => text,
        Shown::Done => return,
        Shown::Declined | Shown::Withdrawn => "\n".to_owned(),
    };
    // A terminal that is gone is noticed elsewhere.
    write_stderr(&text);
}
