//! Everything the tools of one session share.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pith_agent::blocking;
use pith_protocol::ImageBlock;
use tokio::sync::Semaphore;

use crate::command::environment::{CommandEnv, Shell};
use crate::command::spill::OutputDir;
use crate::confine::Confinement;
use crate::image::{self, Normalised};
use crate::mutation::MutationQueue;
use crate::paths::Base;
use crate::process::{Jobs, Supervisor};
use crate::seen::SeenFiles;

/// The place the tools work at: where, with which shell, under which rules.
pub struct Workbench {
    pub base: Base,
    pub shell: Shell,
    pub output_dir: Arc<OutputDir>,
    pub confinement: Confinement,
    /// Commands with processes; ended by [`Jobs::shutdown_all`].
    pub jobs: Arc<Jobs>,
    pub auto_resize_images: bool,
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) mutations: Arc<MutationQueue>,
    /// One image is decoded at a time, because each may take hundreds of megabytes.
    pub(crate) decoding: Arc<Semaphore>,
    conditions: RwLock<Conditions>,
}

/// What a workbench is made of; the default is a plain one without a supervisor.
#[derive(Clone, Debug)]
pub struct WorkbenchOptions {
    pub home: Option<PathBuf>,
    pub shell: Shell,
    /// Directory below which the private one for full outputs is made.
    pub temp: PathBuf,
    /// `tools.root`: file tools refuse everything else.
    pub roots: Option<Vec<PathBuf>>,
    pub auto_resize_images: bool,
    /// Remark on files that changed since the session last saw them.
    pub warn_changed_files: bool,
    /// `bash.keepBackground`: background processes outlive the session.
    pub keep_background: bool,
    /// The program that supervises commands; without one, clearing up is best effort.
    pub supervisor: Option<Supervisor>,
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
        }
    }
}

/// What may change between two calls.
#[derive(Clone, Debug)]
pub struct Conditions {
    pub env: CommandEnv,
    /// Whether the current model takes images.
    pub model_sees_images: bool,
    /// How large an image the current model may be shown.
    pub image_limits: image::Limits,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions { env: CommandEnv::default(), model_sees_images: true, image_limits: image::Limits::default() }
    }
}

impl Workbench {
    /// A workbench in `cwd`, which must be absolute.
    pub fn new(cwd: PathBuf, options: WorkbenchOptions) -> Arc<Self> {
        Arc::new(Workbench {
            base: Base { cwd, home: options.home },
            shell: options.shell,
            output_dir: OutputDir::below(options.temp).into(),
            confinement: Confinement::to(options.roots),
            jobs: Jobs::new(options.supervisor, options.keep_background).into(),
            auto_resize_images: options.auto_resize_images,
            seen: SeenFiles::new(options.warn_changed_files).into(),
            mutations: Arc::default(),
            decoding: Semaphore::new(1).into(),
            conditions: RwLock::default(),
        })
    }

    /// The same place with other options: processes, queues and what is known of files are shared, and conditions are
    /// those of this moment.
    pub fn renewed(&self, options: WorkbenchOptions) -> Arc<Self> {
        Arc::new(Workbench {
            base: Base { cwd: self.base.cwd.clone(), home: options.home },
            shell: options.shell,
            output_dir: self.output_dir.clone(),
            confinement: Confinement::to(options.roots),
            jobs: self.jobs.clone(),
            auto_resize_images: options.auto_resize_images,
            seen: self.seen.clone(),
            mutations: self.mutations.clone(),
            decoding: self.decoding.clone(),
            conditions: RwLock::new(self.conditions()),
        })
    }

    /// The same place seen from another directory, with a shell and variables of its own. Processes, queues and
    /// what is known of files are shared; conditions are those of this moment.
    pub fn elsewhere(&self, cwd: PathBuf, shell: Shell, inherited: Option<Vec<(String, String)>>) -> Arc<Self> {
        let mut conditions = self.conditions();
        conditions.env.inherited = inherited;
        Arc::new(Workbench {
            base: Base { cwd, home: self.base.home.clone() },
            shell,
            output_dir: self.output_dir.clone(),
            confinement: self.confinement.clone(),
            jobs: self.jobs.clone(),
            auto_resize_images: self.auto_resize_images,
            seen: self.seen.clone(),
            mutations: self.mutations.clone(),
            decoding: self.decoding.clone(),
            conditions: RwLock::new(conditions),
        })
    }

    /// The conditions right now.
    pub fn conditions(&self) -> Conditions {
        self.conditions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the conditions for all calls from now on.
    pub fn update_conditions(&self, change: impl FnOnce(&mut Conditions)) {
        change(&mut self.conditions.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Fits an inline image to the current model, on a thread of its own and one at a time.
    pub async fn normalise_image(&self, block: ImageBlock) -> Normalised {
        let rules = self.image_rules();
        // Never closed, so a missing permit cannot happen; decoding without one would be harmless.
        let _turn = self.decoding.acquire().await;
        let thread = blocking(move || image::normalise_block(block, rules));
        thread.await.unwrap_or_else(|_| Normalised::Omitted("[Image omitted: it could not be decoded.]".to_owned()))
    }

    /// What images may be like for the current model.
    pub fn image_rules(&self) -> image::Rules {
        let limits = self.conditions.read().unwrap_or_else(PoisonError::into_inner).image_limits;
        image::Rules { auto_resize: self.auto_resize_images, limits }
    }
}
