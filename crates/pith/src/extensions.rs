//! Extensions of the command line, of settings and of directories: found, loaded
//! and bound before the session begins. Where there are none nothing is started.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pith_ai::agent_dir::AgentDir;
use pith_ai::environment::Environment;
use pith_ai::http::Web;
use pith_ai::settings::Settings;
use pith_ext::{
    BuiltinTool, ExtensionConfig, ExtensionHost, ExtensionSource, FromExtension, Limits, Loading, Output, Place,
    Places, Surroundings, discover,
};
use pith_session::{ExtensionSetup, RunningExtensions};
use pith_tools::{Workbench, WorkbenchOptions, builtin_tools};

use crate::cli::Cli;

/// The version of the interface extensions are told.
const API_VERSION: &str = "0.87.1";

/// Where extensions are looked for and how they see the process.
#[derive(Clone)]
pub struct Extensions {
    named: Vec<String>,
    /// `--no-extensions`: only those named on the command line.
    is_named_only: bool,
    agent_dir: AgentDir,
    home: PathBuf,
    mode: pith_ext::Mode,
    has_ui: bool,
}

impl Extensions {
    /// Of a command line. `has_ui`: somebody can answer dialogs.
    pub fn new(cli: &Cli, agent_dir: &AgentDir, environment: &Environment, mode: pith_ext::Mode, has_ui: bool) -> Self {
        Extensions {
            named: cli.extensions.clone(),
            is_named_only: cli.no_extensions,
            agent_dir: agent_dir.clone(),
            home: environment.home().to_owned(),
            mode,
            has_ui,
        }
    }

    /// The extensions of a directory; `settings` has the project's lists only if it is trusted.
    pub fn find(&self, cwd: &Path, settings: &Settings, is_trusted: bool) -> pith_ext::Discovery {
        let place = |base: PathBuf, settings: &[String]| Place { base, settings: settings.to_vec() };
        let (mut project, mut user) = (None, None);
        if !self.is_named_only {
            project =
                is_trusted.then(|| place(self.agent_dir.project_dir(cwd), &settings.project_resources.extensions));
            user = Some(place(self.agent_dir.path().to_owned(), &settings.user_resources.extensions));
        }
        discover(&Places {
            cwd: cwd.to_owned(),
            home: self.home.clone(),
            named: self.named.clone(),
            project,
            user,
            packages: Vec::new(),
        })
    }

    /// What extensions of a directory see.
    pub fn surroundings(&self, cwd: &Path) -> Surroundings {
        Surroundings {
            cwd: cwd.to_owned(),
            mode: self.mode,
            has_ui: self.has_ui,
            trust_has_ui: false,
            agent_dir: self.agent_dir.path().to_owned(),
            config_dir_name: self.agent_dir.layout().project_name().to_owned(),
            version: API_VERSION.to_owned(),
            color: false,
        }
    }

    /// What the engine of a directory is started with.
    pub fn config(&self, cwd: &Path) -> ExtensionConfig {
        let workbench = Workbench::new(cwd.to_owned(), WorkbenchOptions::default());
        let describe = |tool: &std::sync::Arc<dyn pith_agent::Tool>| BuiltinTool {
            name: tool.spec().name.to_string(),
            label: tool.label().to_owned(),
            description: tool.spec().description.to_string(),
            parameters: tool.spec().parameters.clone(),
            prompt_snippet: tool.snippet().map(str::to_owned),
            prompt_guidelines: tool.rules().iter().map(|rule| (*rule).to_owned()).collect(),
        };
        ExtensionConfig {
            surroundings: self.surroundings(cwd),
            builtin_tools: builtin_tools(&workbench).iter().map(describe).collect(),
            limits: Limits::default(),
            output: Output::default(),
        }
    }

    /// Loads and binds what was found. `Err` names an extension of the command line that cannot be loaded.
    pub async fn load(&self, cwd: &Path, found: pith_ext::Discovery) -> anyhow::Result<Option<RunningExtensions>> {
        if let Some(missing) = found.errors.first() {
            anyhow::bail!("{}", missing.error);
        }
        if found.sources.is_empty() {
            return Ok(None);
        }
        let surroundings = self.surroundings(cwd);
        let (handle, mut requests) = ExtensionHost::start(self.config(cwd));
        let mut early = Vec::new();
        let report = {
            let loading = async {
                let report = handle.load(&found.sources, Loading::Add, &surroundings).await;
                handle.bind(&surroundings, &HashMap::new()).await;
                report
            };
            tokio::pin!(loading);
            loop {
                tokio::select! {
                    biased;
                    Some(request) = requests.recv() => early.extend(keep(request)),
                    report = &mut loading => break report,
                }
            }
        };
        if let Some(fatal) = report.errors.iter().find(|error| is_named(&found.sources, &error.path)) {
            anyhow::bail!("{}", fatal.error);
        }
        Ok(Some(RunningExtensions { handle, requests, sources: found.sources, errors: report.errors, early }))
    }

    /// The same for the session, which may have to find and start extensions again.
    pub fn setup(
        self,
        running: Option<RunningExtensions>,
        web: Web,
        mut sources: impl FnMut(&Extensions, &Path) -> Vec<ExtensionSource> + Send + 'static,
    ) -> ExtensionSetup {
        let config = self.clone();
        ExtensionSetup {
            find: Box::new(move |cwd| sources(&self, cwd)),
            config: Box::new(move |cwd| config.config(cwd)),
            flags: HashMap::new(),
            running,
            web,
        }
    }
}

/// Requests for a session that does not exist yet wait for it; questions are not answered.
fn keep(request: FromExtension) -> Option<FromExtension> {
    match request {
        FromExtension::Query(_) => None,
        other => Some(other),
    }
}

fn is_named(sources: &[ExtensionSource], path: &str) -> bool {
    sources.iter().any(|source| source.path == path && source.source_info.source == "cli")
}
