//! Loads extensions without a session, for help, lists and checks: only their factories run.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use pith_ai::Registry;
use pith_config::{AgentDir, Environment};
use pith_ext::registry::FlagInfo;
use pith_ext::{ExtensionError, LoadError, LoadedExtension, Mode};

use super::{Extensions, Loader, Search};
use crate::cli::Cli;
use crate::open::decide_trust_and_load;
use crate::project::Project;
use pith_tools::process::Supervisor;
use pith_tools::sandbox::Oversight;

/// The user is waiting: extensions that take longer are left out.
const LIMIT: Duration = Duration::from_secs(20);

/// The extensions that were found.
#[derive(Default)]
pub struct Survey {
    pub loaded: Vec<LoadedExtension>,
    pub flags: Vec<FlagInfo>,
    /// Extensions that could not be loaded.
    pub errors: Vec<LoadError>,
    /// Other errors.
    pub other_errors: Vec<ExtensionError>,
    /// Files of a project that is not trusted.
    pub untrusted: Vec<String>,
    /// False if loading took too long; then nothing is known of the extensions.
    pub is_complete: bool,
    /// Why a session would not start.
    pub refusal: Option<anyhow::Error>,
}

/// What to load extensions for.
pub struct ExtensionSurvey<'a> {
    pub cli: &'a Cli,
    pub agent_dir: &'a AgentDir,
    pub environment: &'a Environment,
    pub cwd: &'a Path,
}

impl ExtensionSurvey<'_> {
    /// Loads extensions as a session would, registers their providers, and ends them. Returns the registry as well.
    pub fn run(&self) -> anyhow::Result<(Survey, Registry)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(self.survey()))
    }

    async fn survey(&self) -> (Survey, Registry) {
        let extensions = Extensions::new(self.cli, self.agent_dir, self.environment, Mode::Print)
            .watched_by(Oversight { supervisor: Supervisor::this_program().ok(), ..Oversight::default() });
        let mut project = Project::new(self.cli, self.agent_dir, self.environment, None);
        let mut loader = Loader::new(&extensions, self.cwd);
        let loading = decide_trust_and_load(&extensions, &mut loader, &mut project, self.cwd);
        let (settings, is_complete) = match tokio::time::timeout(LIMIT, loading).await {
            Ok(loaded) => (loaded.settings, true),
            Err(_) => (project.settings(self.cwd).settings, false),
        };
        let registry = Registry::load(self.agent_dir, self.environment.clone(), &settings);
        let mut survey = Survey { is_complete, ..Survey::default() };
        if is_complete {
            survey.refusal = loader.check().err();
            loader.bind(&HashMap::new(), &registry).await;
            survey.flags = loader.registry().map(|registry| registry.flags.clone()).unwrap_or_default();
            survey.loaded = loader.loaded().to_vec();
            survey.errors = loader.errors().to_vec();
            survey.other_errors = loader.close().await;
        }
        if !project.trusts(self.cwd) {
            let found = extensions.find(self.cwd, &settings, Search::OnlyProject);
            let paths = found.sources.into_iter().filter(|source| source.source_info.scope == "project");
            survey.untrusted = paths.map(|source| source.path).collect();
        }
        (survey, registry)
    }
}
