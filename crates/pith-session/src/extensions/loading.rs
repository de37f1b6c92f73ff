//! Loading extensions, announcing sessions to them, and shutting them down.

use std::path::Path;
use std::sync::atomic::Ordering;

use pith_ext::{
    DiscoveredPath, DiscoveredResources, ExtensionHandle, ExtensionHost, ExtensionSource, LoadError, LoadReport,
    Loading,
};
use pith_resources::ContributedPath;

use super::{Engine, LoadingExtensions};
use crate::admission::{Hold, Step};
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::project::{Contributed, ReloadReason};
use crate::replace::Replacement;
use crate::session::Session;
use crate::tools::Registered;

/// Why a session starts, as `session_start` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartReason {
    Startup,
    Reload,
    New,
    Resume,
    Fork,
}

impl StartReason {
    pub fn as_str(self) -> &'static str {
        match self {
            StartReason::Startup => "startup",
            StartReason::Reload => "reload",
            StartReason::New => "new",
            StartReason::Resume => "resume",
            StartReason::Fork => "fork",
        }
    }
}

impl Session {
    /// Reports extensions that could not be loaded, and announces the session to the others.
    pub(crate) fn begin_extensions(&mut self) {
        self.tell_load_errors();
        let Some(engine) = &mut self.extensions.engine else { return self.schedule_rest() };
        let early = std::mem::take(&mut engine.early);
        let loading = engine.loading.take();
        early.into_iter().for_each(|request| self.on_extension(request));
        match loading {
            Some(loading) => self.await_extensions(loading),
            None => {
                self.admission.delay_input();
                self.admission.hold(Hold::Starting);
                self.announce_session(StartReason::Startup, None);
            }
        }
    }

    /// Waits for extensions that load slowly: commands that need them wait, all others are served.
    fn await_extensions(&mut self, loading: LoadingExtensions) {
        let Some(handle) = self.extension_handle().cloned() else { return };
        let surroundings = (self.extensions.config)(self.store.cwd()).surroundings;
        let flags = self.extensions.flags.clone();
        self.admission.hold(Hold::Loading);
        self.begin_step(async move {
            let report = loading.await;
            handle.bind(&surroundings, &flags).await;
            Step::Loaded(report)
        });
    }

    /// Loads and binds extensions, in the running engine or in a new one.
    pub(crate) fn load_extensions(&mut self, cwd: &Path, sources: Vec<ExtensionSource>, loading: Loading) {
        let (handle, surroundings) = self.engine(cwd);
        let flags = self.extensions.flags.clone();
        let renewals = self.models.registry().renewals().clone();
        self.begin_step(async move {
            renewals.wait().await;
            let report = handle.load(&sources, loading, &surroundings).await;
            handle.bind(&surroundings, &flags).await;
            Step::Loaded(report)
        });
    }

    fn engine(&mut self, cwd: &Path) -> (ExtensionHandle, pith_ext::Surroundings) {
        let config = (self.extensions.config)(cwd);
        let surroundings = config.surroundings.clone();
        if let Some(handle) = self.extension_handle().filter(|handle| handle.is_alive()) {
            return (handle.clone(), surroundings);
        }
        // The providers that a dead engine registered are of no use to this one.
        self.forget_providers();
        let (handle, requests) = ExtensionHost::start(config);
        let (sources, early) = Default::default();
        let engine = Engine { handle: handle.clone(), requests, sources, early, loading: None };
        self.extensions.engine = Some(engine);
        (handle, surroundings)
    }

    /// Called when extensions are loaded and bound: those that were still loading at the start, those of the next
    /// session, or the reloaded ones.
    pub(crate) fn on_loaded(&mut self, report: LoadReport) {
        self.install_successor();
        let arrival = self.replacement.as_ref().and_then(Replacement::arrival);
        let arrival = arrival.map(|arrival| (arrival.sources.clone(), arrival.start_reason, arrival.previous.clone()));
        let (sources, start_reason, previous) = match (arrival, self.admission.reload_mut()) {
            (Some(arrival), _) => arrival,
            (None, Some(reload)) => (std::mem::take(&mut reload.sources), StartReason::Reload, None),
            (None, None) => {
                self.add_load_errors(report.errors);
                self.on_registry_changed();
                self.admission.end_loading();
                return self.announce_session(StartReason::Startup, None);
            }
        };
        if let Some(engine) = &mut self.extensions.engine {
            engine.sources = sources;
        }
        self.extensions.errors = report.errors;
        self.on_registry_changed();
        self.tell_load_errors();
        self.announce_session(start_reason, previous);
    }

    fn add_load_errors(&mut self, errors: Vec<LoadError>) {
        let known = std::mem::take(&mut self.extensions.errors);
        self.extensions.errors = errors.into_iter().filter(|error| !known.contains(error)).collect();
        self.tell_load_errors();
        self.extensions.errors.splice(0..0, known);
    }

    fn tell_load_errors(&mut self) {
        let has_errors = !self.extensions.errors.is_empty();
        for error in self.extensions.errors.clone() {
            log_line(&error.in_full());
            self.tell_error(&error.path, "load", &error.error);
        }
        if has_errors {
            log_line("the session goes on without it: mend it and /reload, or start without extensions (pith -ne)");
        }
    }

    /// Raises `session_start` and `resources_discover`. The extensions are bound.
    fn announce_session(&mut self, start_reason: StartReason, previous: Option<String>) {
        let is_reload = start_reason == StartReason::Reload;
        self.begin_extension_tools(if is_reload { Registered::Again } else { Registered::AtStart });
        let Some(handle) = self.extension_handle().cloned() else {
            return self.on_session_announced(DiscoveredResources::default());
        };
        let cwd = self.store.cwd().to_string_lossy().into_owned();
        let saw_session_start = self.extensions.saw_session_start.clone();
        self.begin_step(async move {
            saw_session_start.store(true, Ordering::Relaxed);
            handle.session_start(start_reason.as_str(), previous.as_deref()).await;
            let reason = if start_reason == StartReason::Reload { "reload" } else { "startup" };
            Step::SessionAnnounced(handle.resources_discover(&cwd, reason).await)
        });
    }

    /// Called when extensions have handled both events. Continues what waited for that.
    pub(crate) fn on_session_announced(&mut self, found: DiscoveredResources) {
        let contributed = Contributed { skills: sources(found.skill_paths), prompts: sources(found.prompt_paths) };
        if self.project.contribute(contributed) {
            self.reload_project(ReloadReason::Changed);
        }
        if self.replacement.is_some() {
            self.finish_replacement();
        } else if self.admission.is_starting() {
            self.end_start();
        } else {
            self.end_reload();
        }
        if self.is_closing {
            self.quit_extensions();
        }
    }

    /// Called when the process ends. Limits the wait for extensions that are still starting to the time a shutdown may
    /// take.
    pub(crate) fn limit_start(&mut self) {
        let Some(handle) = self.extension_handle().filter(|_| self.session_start_pending()) else { return };
        let limit = handle.shutdown_limit();
        let wait = self.jobs.spawn(Job::Background, async move {
            tokio::time::sleep(limit).await;
            JobEnd::StartOverdue
        });
        self.extensions.start_limit = Some(wait);
    }

    pub(crate) fn give_up_start(&mut self) {
        self.drop_held();
        self.quit_extensions();
    }

    /// Ends the start of the first session.
    pub(crate) fn end_start(&mut self) {
        self.admission.release();
        self.schedule_rest();
    }

    /// Stops the engine: no extension is left to run in it.
    pub(crate) fn stop_extensions(&mut self) {
        self.extensions.errors.clear();
        let Some(engine) = self.extensions.engine.take() else { return };
        self.forget_providers();
        self.on_registry_changed();
        let renewals = self.models.registry().renewals().clone();
        self.jobs.spawn(Job::Background, async move {
            renewals.wait().await;
            engine.handle.close().await;
            JobEnd::Done
        });
    }

    /// Raises `session_shutdown` with reason `quit` once nothing runs any more. Extensions that have not handled
    /// `session_start` yet get that first.
    pub(crate) fn quit_extensions(&mut self) {
        if self.activity.is_busy() || self.extensions.has_shut_down || self.session_start_pending() {
            return;
        }
        self.extensions.has_shut_down = true;
        if let Some(limit) = self.extensions.start_limit.take() {
            limit.abort();
        }
        let Some(handle) = self.extension_handle().cloned() else { return };
        let saw_session_start = self.extensions.saw_session_start.load(Ordering::Relaxed);
        let renewals = self.models.registry().renewals().clone();
        self.jobs.spawn(Job::Background, async move {
            // An extension that is stopped while it renews a login loses it.
            renewals.end().await;
            if saw_session_start {
                handle.quit().await;
            } else {
                handle.close().await;
            }
            JobEnd::Done
        });
    }
}

/// The paths with the name and directory of the extension that named them.
fn sources(found: Vec<DiscoveredPath>) -> Vec<ContributedPath> {
    let source = |path: &str| {
        let file = Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy());
        let name = file.strip_suffix(".ts").or_else(|| file.strip_suffix(".js")).unwrap_or(&file);
        format!("extension:{name}")
    };
    let contributed = |found: DiscoveredPath| {
        let base_dir = Path::new(&found.extension_path).parent().map(Path::to_owned);
        ContributedPath { path: found.path, source: source(&found.extension_path), base_dir }
    };
    found.into_iter().map(contributed).collect()
}
