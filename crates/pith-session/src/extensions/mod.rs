//! Extensions in the life of a session: what they are told, and what they ask for.
//!
//! Everything an extension does comes in as a [`FromExtension`] event and is dealt with at once, or held until its
//! turn. Everything the session wants from extensions is awaited in a task and comes back as a named step, see
//! [`crate::admission::Step`] and [`crate::jobs::JobEnd`]. Without extensions none of this costs more than a look at
//! an `Option`.

mod boundary;
mod dialogs;
mod drafts;
mod first_entries;
mod input_handlers;
mod loading;
mod model_request;
mod observer;
mod prompt_options;
mod providers;
mod registry_questions;
mod reload;
mod requests;
mod sent_messages;
mod services;
mod session_events;
mod summary_questions;
mod tool_adapter;
mod transcript;
mod user_bash;
mod views;

pub(crate) use boundary::request_hooks;
pub(crate) use drafts::custom_message;
pub(crate) use loading::Beginning;
pub(crate) use observer::{AbortGrace, Observer, Prompted, outcome};
pub(crate) use prompt_options::RunPrompt;
pub(crate) use providers::RenewedModels;
pub use providers::register_provider;
pub use registry_questions::{answer_from_registry, model_auth};
pub(crate) use reload::{Reload, ReloadReply};
pub use services::serve_fetch;
pub(crate) use summary_questions::CompactionQuestion;
pub(crate) use user_bash::HostCommand;

use std::collections::HashMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pith_ai::Web;
use pith_ext::{ExtensionConfig, ExtensionHandle, ExtensionSource, FromExtension, LoadError, LoadReport, Requests};
use serde_json::Value;
use tokio::task::AbortHandle;

use dialogs::Dialogs;
use input_handlers::RunningCommands;
use providers::Providers;
use sent_messages::IdleWaiters;

/// How extensions are found and started.
pub struct ExtensionSetup {
    /// Finds the extensions of a working directory, in the order of their handlers.
    pub find: FindExtensions,
    /// What an engine for a working directory is started with.
    pub config: Box<dyn Fn(&Path) -> ExtensionConfig + Send>,
    /// Values of extension flags on the command line.
    pub flags: HashMap<String, Value>,
    /// What runs already; `None` where there is nothing to run.
    pub running: Option<RunningExtensions>,
    /// Carries out their HTTP requests.
    pub web: Web,
}

/// Finds the extensions of a working directory.
pub type FindExtensions = Box<dyn FnMut(&Path) -> Vec<ExtensionSource> + Send>;

/// Extensions that were loaded and bound, or at least begun with, before the session began.
pub struct RunningExtensions {
    pub handle: ExtensionHandle,
    pub requests: Requests,
    pub sources: Vec<ExtensionSource>,
    /// What could not be loaded.
    pub errors: Vec<LoadError>,
    /// Requests that only a session can deal with.
    pub early: Vec<FromExtension>,
    /// What is not loaded yet: the session begins without it, and binds it then.
    pub loading: Option<LoadingExtensions>,
}

/// Extensions on their way.
pub type LoadingExtensions = Pin<Box<dyn Future<Output = LoadReport> + Send>>;

/// The extensions of a session.
pub(crate) struct Extensions {
    pub find: FindExtensions,
    pub config: Box<dyn Fn(&Path) -> ExtensionConfig + Send>,
    pub flags: HashMap<String, Value>,
    /// Nothing where no extension is loaded.
    pub engine: Option<Engine>,
    /// What could not be loaded, for `get_diagnostics`.
    pub errors: Vec<LoadError>,
    pub dialogs: Dialogs,
    pub idle_waiters: IdleWaiters,
    /// Providers they have registered.
    pub providers: Providers,
    pub web: Web,
    /// Slash commands that have not ended.
    pub commands: RunningCommands,
    /// An extension has asked to leave once nothing runs.
    pub is_leaving: bool,
    /// What the process then ends with; the first to name a status decides.
    pub exit_status: Option<u8>,
    /// Whether they were told of the session, and so have to be told of its end. Set by the step that tells them, when
    /// it does: a step may be given up before it has begun.
    is_greeted: Arc<AtomicBool>,
    /// Runs while the process ends and extensions are not there yet.
    start_limit: Option<AbortHandle>,
    /// The last words have been said.
    has_quit: bool,
}

/// An engine and what it says.
pub(crate) struct Engine {
    pub handle: ExtensionHandle,
    requests: Requests,
    /// What it has loaded.
    sources: Vec<ExtensionSource>,
    early: Vec<FromExtension>,
    loading: Option<LoadingExtensions>,
}

impl Extensions {
    pub fn new(setup: ExtensionSetup) -> Self {
        let (engine, errors) = match setup.running {
            Some(running) => {
                let RunningExtensions { handle, requests, sources, errors, early, loading } = running;
                (Some(Engine { handle, requests, sources, early, loading }), errors)
            }
            None => (None, Vec::new()),
        };
        Extensions {
            find: setup.find,
            config: setup.config,
            flags: setup.flags,
            engine,
            errors,
            dialogs: Dialogs::default(),
            idle_waiters: IdleWaiters::default(),
            providers: Providers::new(),
            web: setup.web,
            commands: RunningCommands::default(),
            is_leaving: false,
            exit_status: None,
            is_greeted: Arc::default(),
            start_limit: None,
            has_quit: false,
        }
    }

    /// What is loaded.
    pub fn sources(&self) -> &[ExtensionSource] {
        self.engine.as_ref().map_or(&[], |engine| &engine.sources)
    }

    /// The next request; never, without extensions. Cancel safe.
    pub async fn next(&mut self) -> Option<FromExtension> {
        match &mut self.engine {
            Some(engine) => engine.requests.recv().await,
            None => std::future::pending().await,
        }
    }
}
