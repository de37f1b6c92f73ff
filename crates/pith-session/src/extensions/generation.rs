//! One generation of extensions after the other: for another session, or because
//! files have changed. The one before has been told to go by then.

use std::path::Path;

use pith_ext::outgoing::Answer;
use pith_ext::{ExtensionHandle, ExtensionHost, ExtensionSource, LoadReport, Loading};
use serde_json::Value;

use super::{Beginning, Live, Passage};
use crate::activity::Then;
use crate::replace::Successor;
use crate::session::Session;

/// Extensions to be made, and why.
pub(crate) struct Generation {
    sources: Vec<ExtensionSource>,
    loading: Loading,
    beginning: Beginning,
    /// The file of the session before.
    previous: Option<String>,
}

impl Generation {
    /// For a session that takes the place of another one.
    pub fn replacing(sources: Vec<ExtensionSource>, successor: &Successor, previous: Option<String>) -> Self {
        Generation { sources, loading: Loading::Again, beginning: successor.beginning, previous }
    }

    fn reloading(sources: Vec<ExtensionSource>) -> Self {
        Generation { sources, loading: Loading::Reload, beginning: Beginning::Reload, previous: None }
    }
}

impl Session {
    pub(crate) fn reload_for_extension(&mut self, answer: Answer<()>) {
        self.in_turn(move |session| session.reload(move |_, _| answer.send(())));
    }

    /// Reads everything again, extensions included, and tells what is different.
    pub(crate) fn reload(&mut self, then: impl FnOnce(&mut Session, Vec<Value>) + Send + 'static) {
        let Some(handle) = self.extensions.handle().cloned() else { return self.reload_now(then) };
        self.lane.take(Passage::Reload);
        self.step(async move {
            handle.session_shutdown(Beginning::Reload.as_str(), None).await;
            handle.invalidate().await;
            move |session: &mut Session| session.reload_now(then)
        });
    }

    fn reload_now(&mut self, then: impl FnOnce(&mut Session, Vec<Value>) + Send + 'static) {
        self.models.registry().reload();
        let changes = self.read_again();
        let cwd = self.store.cwd().to_owned();
        let sources = (self.extensions.find)(&cwd);
        if self.extensions.handle().is_none() && sources.is_empty() {
            return then(self, changes);
        }
        self.lane.take(Passage::Reload);
        let generation = Generation::reloading(sources);
        self.raise(
            generation,
            &cwd,
            Box::new(move |session| {
                session.lane.release();
                then(session, changes);
            }),
        );
    }

    /// The project may bring extensions of its own from now on.
    pub(crate) fn load_trusted(&mut self) {
        let found = (self.extensions.find)(self.store.cwd());
        let is_same =
            found.iter().map(|source| &source.path).eq(self.extensions.sources().iter().map(|known| &known.path));
        if !is_same {
            self.reload(|_, _| {});
        }
    }

    /// Makes a generation, puts the session it is for in force, and lets it begin.
    pub(crate) fn raise(&mut self, generation: Generation, cwd: &Path, then: Then) {
        let Generation { sources, loading, beginning, previous } = generation;
        if sources.is_empty() {
            self.stop_extensions();
            self.take_over();
            return then(self);
        }
        let (handle, surroundings) = self.engine(cwd);
        let flags = self.extensions.flags.clone();
        self.step(async move {
            let report = handle.load(&sources, loading, &surroundings).await;
            handle.bind(&surroundings, &flags).await;
            move |session: &mut Session| {
                session.take_over();
                session.take_report_of(sources, report);
                session.announce_session(beginning, previous, then);
            }
        });
    }

    /// The engine that runs, or one that is started for the purpose.
    fn engine(&mut self, cwd: &Path) -> (ExtensionHandle, pith_ext::Surroundings) {
        let config = (self.extensions.config)(cwd);
        let surroundings = config.surroundings.clone();
        if let Some(handle) = self.extensions.handle().filter(|handle| handle.is_alive()) {
            return (handle.clone(), surroundings);
        }
        // What a dead engine has registered is of no use to this one.
        self.forget_providers();
        let (handle, requests) = ExtensionHost::start(config);
        let (sources, early) = Default::default();
        let live = Live { handle: handle.clone(), requests, sources, early, loading: None };
        self.extensions.live = Some(live);
        (handle, surroundings)
    }

    fn take_report_of(&mut self, sources: Vec<ExtensionSource>, report: LoadReport) {
        if let Some(live) = &mut self.extensions.live {
            live.sources = sources;
        }
        self.extensions.errors = report.errors;
        self.on_registry_changed();
        self.tell_load_errors();
    }

    /// There is nothing left to run.
    fn stop_extensions(&mut self) {
        self.extensions.errors.clear();
        let Some(live) = self.extensions.live.take() else { return };
        self.forget_providers();
        self.on_registry_changed();
        self.job(async move {
            live.handle.close().await;
            |_: &mut Session| {}
        });
    }
}
