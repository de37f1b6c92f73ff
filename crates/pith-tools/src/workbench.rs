//! What the tools of one session share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pith_agent::blocking;
use pith_checkpoints::Recorder;
use pith_protocol::ImageBlock;
use pith_secrets::Secrets;
use tokio::sync::Semaphore;

use crate::bridge::Bridge;
use crate::command::environment::{CommandEnv, Shell};
use crate::command::limits::CommandLimits;
use crate::command::spill::OutputDir;
use crate::confine::Confinement;
use crate::image::{self, Normalised};
use crate::mutation::MutationQueue;
use crate::paths::Base;
use crate::process::{Jobs, Supervisor};
use crate::sandbox::Sandbox;
use crate::seen::SeenFiles;

/// Where the tools work, with which shell, and under which restrictions.
pub struct Workbench {
    pub base: Base,
    pub shell: Shell,
    pub output_dir: Arc<OutputDir>,
    pub confinement: Confinement,
    /// What the kernel holds commands and file tools to.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Keeps what files were before tools change them.
    pub checkpoints: Option<Arc<Recorder>>,
    /// Commands that may still have processes; ended by [`Jobs::shutdown_all`].
    pub jobs: Arc<Jobs>,
    pub auto_resize_images: bool,
    /// What must not be in results and in the output of commands.
    pub secrets: Option<Arc<Secrets>>,
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) mutations: Arc<MutationQueue>,
    /// One image is decoded at a time, because each may take hundreds of megabytes.
    pub(crate) decoding: Arc<Semaphore>,
    call_options: RwLock<CallOptions>,
    /// The editor at the other end, if there is one.
    bridge: Arc<OnceLock<Arc<dyn Bridge>>>,
}

/// What a workbench is made of; the default has no supervisor.
#[derive(Clone)]
pub struct WorkbenchOptions {
    pub home: Option<PathBuf>,
    pub shell: Shell,
    /// The directory in which a private one for full outputs is created.
    pub temp: PathBuf,
    /// `tools.root`: file tools refuse all other directories.
    pub roots: Option<Vec<PathBuf>>,
    pub auto_resize_images: bool,
    /// Whether results mention files that changed since the session last saw them.
    pub warn_changed_files: bool,
    /// `bash.keepBackground`: background processes outlive the session.
    pub keep_background: bool,
    /// The program that supervises commands; without one, ending their processes is best effort.
    pub supervisor: Option<Supervisor>,
    pub sandbox: Option<Arc<Sandbox>>,
    pub checkpoints: Option<Arc<Recorder>>,
    /// What must not be in results and in the output of commands.
    pub secrets: Option<Arc<Secrets>>,
    /// Shared by the sessions of a process, which may change the same files.
    pub mutations: Arc<MutationQueue>,
}

impl Default for WorkbenchOptions {
    fn default() -> Self {
        WorkbenchOptions {
            home: std::env::home_dir(),
            shell: Shell::default(),
            temp: std::env::temp_dir(),
            roots: None,
            auto_resize_images: true,
            warn_changed_files: true,
            keep_background: false,
            supervisor: None,
            sandbox: None,
            checkpoints: None,
            secrets: None,
            mutations: Arc::default(),
        }
    }
}

/// Options that may change between two calls.
#[derive(Clone, Debug)]
pub struct CallOptions {
    pub env: CommandEnv,
    /// Whether the current model accepts images.
    pub model_sees_images: bool,
    /// The largest image the current model accepts.
    pub image_limits: image::Limits,
    /// What one command of the model may use.
    pub limits: CommandLimits,
}

impl Default for CallOptions {
    fn default() -> Self {
        CallOptions {
            env: CommandEnv::default(),
            model_sees_images: true,
            image_limits: image::Limits::default(),
            limits: CommandLimits::default(),
        }
    }
}

impl Workbench {
    /// Whether the model may ask to run a command outside the sandbox.
    pub fn allows_unsandboxed(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.allows_unsandboxed())
    }

    /// Creates a workbench in `cwd`, which must be absolute.
    pub fn new(cwd: PathBuf, options: WorkbenchOptions) -> Arc<Self> {
        Arc::new(Workbench {
            base: Base { cwd, home: options.home },
            shell: options.shell,
            output_dir: OutputDir::below(options.temp).into(),
            confinement: Confinement::new(options.roots, options.sandbox.as_deref()),
            sandbox: options.sandbox,
            checkpoints: options.checkpoints,
            jobs: Jobs::new(options.supervisor, options.keep_background).into(),
            auto_resize_images: options.auto_resize_images,
            secrets: options.secrets,
            seen: SeenFiles::new(options.warn_changed_files).into(),
            mutations: options.mutations,
            decoding: Semaphore::new(1).into(),
            call_options: RwLock::default(),
            bridge: Arc::default(),
        })
    }

    /// Creates a workbench in the same directory with other options. Processes, queues and remembered files are shared;
    /// the call options are copied.
    pub fn with_options(&self, options: WorkbenchOptions) -> Arc<Self> {
        Arc::new(Workbench {
            base: Base { cwd: self.base.cwd.clone(), home: options.home },
            shell: options.shell,
            output_dir: self.output_dir.clone(),
            confinement: Confinement::new(options.roots, options.sandbox.as_deref()),
            sandbox: options.sandbox,
            checkpoints: options.checkpoints,
            jobs: self.jobs.clone(),
            auto_resize_images: options.auto_resize_images,
            secrets: options.secrets,
            seen: self.seen.clone(),
            mutations: self.mutations.clone(),
            decoding: self.decoding.clone(),
            call_options: RwLock::new(self.call_options()),
            bridge: self.bridge.clone(),
        })
    }

    /// Creates a workbench in another directory, with its own shell and variables. Processes, queues and remembered
    /// files are shared; the call options are copied.
    pub fn in_directory(&self, cwd: PathBuf, shell: Shell, inherited: Option<Vec<(String, String)>>) -> Arc<Self> {
        let mut call_options = self.call_options();
        call_options.env.inherited = inherited;
        Arc::new(Workbench {
            base: Base { cwd, home: self.base.home.clone() },
            shell,
            output_dir: self.output_dir.clone(),
            confinement: self.confinement.clone(),
            sandbox: self.sandbox.clone(),
            checkpoints: self.checkpoints.clone(),
            jobs: self.jobs.clone(),
            auto_resize_images: self.auto_resize_images,
            secrets: self.secrets.clone(),
            seen: self.seen.clone(),
            mutations: self.mutations.clone(),
            decoding: self.decoding.clone(),
            call_options: RwLock::new(call_options),
            bridge: self.bridge.clone(),
        })
    }

    /// Makes the file tools of this workbench, and of those made from it, use an editor's buffers. The first one stays.
    pub fn set_bridge(&self, bridge: Arc<dyn Bridge>) {
        // A session has one editor.
        let _ = self.bridge.set(bridge);
    }

    /// The editor, unless a sandbox holds the file tools: the editor has the rights of the user.
    pub(crate) fn bridge(&self) -> Option<&dyn Bridge> {
        self.bridge.get().filter(|_| self.sandbox.is_none()).map(|bridge| &**bridge)
    }

    /// Returns the current call options.
    pub fn call_options(&self) -> CallOptions {
        self.call_options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the call options for all later calls.
    pub fn update_call_options(&self, change: impl FnOnce(&mut CallOptions)) {
        change(&mut self.call_options.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Converts an inline image for the current model, on another thread and one image at a time.
    pub async fn normalise_image(&self, block: ImageBlock) -> Normalised {
        let rules = self.image_rules();
        // The semaphore is never closed, so there always is a permit.
        let _turn = self.decoding.acquire().await;
        let thread = blocking(move || image::normalise_block(block, rules));
        thread.await.unwrap_or_else(|_| Normalised::Omitted("[Image omitted: it could not be decoded.]".to_owned()))
    }

    /// What images the current model accepts.
    pub fn image_rules(&self) -> image::Rules {
        let limits = self.call_options.read().unwrap_or_else(PoisonError::into_inner).image_limits;
        image::Rules { auto_resize: self.auto_resize_images, limits }
    }
}
