//! The beginning and the end of extensions in a session.

use std::path::Path;

use pith_ext::{DiscoveredPath, DiscoveredResources, LoadError};
use pith_protocol::Event;
use pith_resources::ContributedPath;

use super::{LoadingExtensions, Passage};
use crate::activity::Then;
use crate::library::Contributed;
use crate::session::Session;

/// Why a session is there, as `session_start` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    Startup,
    Reload,
    New,
    Resume,
    Fork,
}

impl Beginning {
    pub fn as_str(self) -> &'static str {
        match self {
            Beginning::Startup => "startup",
            Beginning::Reload => "reload",
            Beginning::New => "new",
            Beginning::Resume => "resume",
            Beginning::Fork => "fork",
        }
    }
}

impl Session {
    /// Tells what could not be loaded and lets the rest begin.
    pub(crate) fn begin_extensions(&mut self) {
        self.tell_load_errors();
        let Some(live) = &mut self.extensions.live else { return self.rest_soon() };
        let early = std::mem::take(&mut live.early);
        let loading = live.loading.take();
        early.into_iter().for_each(|request| self.on_extension(request));
        match loading {
            Some(loading) => self.await_extensions(loading),
            None => {
                self.lane.hush();
                self.announce_session(Beginning::Startup, None, Box::new(Session::rest_soon));
            }
        }
    }

    /// Extensions take their time: what needs them waits, the host is served.
    fn await_extensions(&mut self, loading: LoadingExtensions) {
        let Some(handle) = self.extensions.handle().cloned() else { return };
        let surroundings = (self.extensions.config)(self.store.cwd()).surroundings;
        let flags = self.extensions.flags.clone();
        self.lane.take(Passage::Start);
        self.step(async move {
            let report = loading.await;
            handle.bind(&surroundings, &flags).await;
            move |session: &mut Session| {
                session.add_load_errors(report.errors);
                session.on_registry_changed();
                let then: Then = Box::new(|session| {
                    session.lane.release();
                    session.rest_soon();
                });
                session.announce_session(Beginning::Startup, None, then);
            }
        });
    }

    fn add_load_errors(&mut self, errors: Vec<LoadError>) {
        let known = std::mem::take(&mut self.extensions.errors);
        self.extensions.errors = errors.into_iter().filter(|error| !known.contains(error)).collect();
        self.tell_load_errors();
        self.extensions.errors.splice(0..0, known);
    }

    pub(crate) fn tell_load_errors(&mut self) {
        for error in self.extensions.errors.clone() {
            crate::state::log_line(&error.in_full());
            self.out.event(&Event::ExtensionError { extension_path: &error.path, event: "load", error: &error.error });
        }
    }

    /// `session_start` and `resources_discover`, then whatever comes after. The extensions are bound.
    pub(crate) fn announce_session(&mut self, beginning: Beginning, previous: Option<String>, then: Then) {
        if !matches!(beginning, Beginning::Startup | Beginning::Reload) {
            self.tools.forget_choice();
        }
        self.begin_extension_tools();
        let Some(handle) = self.extensions.handle().cloned() else {
            self.take_discovered(DiscoveredResources::default());
            return then(self);
        };
        let cwd = self.store.cwd().to_string_lossy().into_owned();
        self.step(async move {
            handle.session_start(beginning.as_str(), previous.as_deref()).await;
            let reason = if beginning == Beginning::Reload { "reload" } else { "startup" };
            let found = handle.resources_discover(&cwd, reason).await;
            move |session: &mut Session| {
                session.take_discovered(found);
                then(session);
            }
        });
    }

    /// Skills and templates extensions bring along.
    fn take_discovered(&mut self, found: DiscoveredResources) {
        let contributed = Contributed { skills: sources(found.skill_paths), prompts: sources(found.prompt_paths) };
        if self.library.contribute(contributed) {
            self.read_again();
        }
    }

    /// An extension has asked to leave: that happens once nothing runs.
    pub(crate) fn leave_if_asked(&mut self) {
        let is_done = self.extensions.n_commands == 0 && self.is_still();
        if self.extensions.is_leaving && is_done && !self.is_closing {
            self.close();
        }
    }

    /// The last words, once nothing runs any more: what waits for extensions then ends with them.
    pub(crate) fn quit_extensions(&mut self) {
        if !self.is_closing || self.activity.is_busy() || self.extensions.has_quit {
            return;
        }
        self.extensions.has_quit = true;
        let Some(handle) = self.extensions.handle().cloned() else { return };
        self.job(async move {
            handle.quit().await;
            |_: &mut Session| {}
        });
    }
}

/// Paths with the name and the place of the extension they are from.
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
