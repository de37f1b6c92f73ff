//! Extensions in a session: what they are told, and what they ask for.
//!
//! Every request of an extension arrives as a [`FromExtension`] event and is served at once, or held until its turn.
//! Everything the session asks of extensions is awaited in a task and comes back as a named step, see
//! [`crate::admission::Step`] and [`crate::jobs::JobEnd`]. Without extensions all of this costs a check of an `Option`.

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
pub(crate) use loading::StartReason;
pub(crate) use observer::{AbortGrace, Observer, Prompted, outcome};
pub(crate) use prompt_options::RunPrompt;
pub(crate) use providers::RefreshedModels;
pub use providers::register_provider;
pub use registry_questions::{answer_from_registry, model_auth};
pub(crate) use reload::{Reload, ReloadReply};
pub use services::{serve_fetch, serve_model_request, serve_tool};
pub(crate) use summary_questions::CompactionQuestion;
pub(crate) use user_bash::HostCommand;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pith_agent::BoxFuture;
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
    /// Finds the extensions of a working directory, in the order in which their handlers are called.
    pub find: FindExtensions,
    /// Makes the configuration of an engine for a working directory.
    pub config: Box<dyn Fn(&Path) -> ExtensionConfig + Send>,
    /// Values of extension flags from the command line.
    pub flags: HashMap<String, Value>,
    /// Extensions that run already; `None` if there are none.
    pub running: Option<RunningExtensions>,
    /// Carries out their HTTP requests.
    pub web: Web,
}

/// Finds the extensions of a working directory.
pub type FindExtensions = Box<dyn FnMut(&Path) -> Vec<ExtensionSource> + Send>;

/// Extensions that were loaded and bound, or are still loading, when the session starts.
pub struct RunningExtensions {
    pub handle: ExtensionHandle,
    pub requests: Requests,
    pub sources: Vec<ExtensionSource>,
    /// Extensions that could not be loaded.
    pub errors: Vec<LoadError>,
    /// Requests that only a session can serve, kept until it exists.
    pub early: Vec<FromExtension>,
    /// Extensions that are still loading: the session starts without them and binds them later.
    pub loading: Option<LoadingExtensions>,
}

/// Resolves when the extensions are loaded.
pub type LoadingExtensions = BoxFuture<'static, LoadReport>;

/// The extensions of a session.
pub(crate) struct Extensions {
    pub find: FindExtensions,
    pub config: Box<dyn Fn(&Path) -> ExtensionConfig + Send>,
    pub flags: HashMap<String, Value>,
    /// `None` if no extension is loaded.
    pub engine: Option<Engine>,
    /// Extensions that could not be loaded, for `get_diagnostics`.
    pub errors: Vec<LoadError>,
    pub dialogs: Dialogs,
    pub idle_waiters: IdleWaiters,
    /// Providers that extensions have registered.
    pub providers: Providers,
    pub web: Web,
    /// Slash commands that have not ended.
    pub commands: RunningCommands,
    /// An extension has asked the process to exit once nothing runs.
    pub exit_requested: bool,
    /// The exit status; the first extension that names one decides.
    pub exit_status: Option<u8>,
    /// Whether extensions were told `session_start`, and so have to be told `session_shutdown`. Set by the step that
    /// tells them, at that moment: a step may be dropped before it has begun.
    saw_session_start: Arc<AtomicBool>,
    /// Limits the wait for extensions that are still starting while the process ends.
    start_limit: Option<AbortHandle>,
    /// Whether extensions were told that the process ends.
    has_shut_down: bool,
}

/// The engine and the channel of its requests.
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
            exit_requested: false,
            exit_status: None,
            saw_session_start: Arc::default(),
            start_limit: None,
            has_shut_down: false,
        }
    }

    /// The loaded extensions.
    pub fn sources(&self) -> &[ExtensionSource] {
        self.engine.as_ref().map_or(&[], |engine| &engine.sources)
    }

    /// Waits for the next request; for ever without extensions. Cancel safe.
    pub async fn next(&mut self) -> Option<FromExtension> {
        match &mut self.engine {
            Some(engine) => engine.requests.recv().await,
            None => std::future::pending().await,
        }
    }
}
