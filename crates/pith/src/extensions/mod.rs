//! Extensions of the command line, of settings, of directories and of packages: found, loaded and bound before the
//! session starts. If there are none, nothing is started.

mod limits;
mod loading;
mod survey;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_ai::Web;
use pith_config::{AgentDir, Environment, Settings};
use pith_ext::discovery::built_in;
use pith_ext::{
    BuiltinTool, Discovery, ExtensionConfig, ExtensionSource, Launcher, Limits, LoadError, Mode, Output, Place, Places,
    SCRIPT, Surroundings, discover,
};
use pith_session::{ExtensionSetup, RunningExtensions};
use pith_tools::sandbox::Oversight;
use pith_tools::{BUILTINS, Builtin, Workbench, WorkbenchOptions, builtin_tools};
use serde_json::Value;

pub use loading::Loader;
pub use survey::{ExtensionSurvey, Survey};

use crate::cli::{Cli, ExtensionErrors};
use crate::launcher::Supervised;
use crate::packages::{self, Package, PackageDirs};

/// The version of the extension API.
const API_VERSION: &str = "0.87.1";

/// The scope of extensions that the command line names.
const NAMED: &str = "temporary";

/// Printed if an extension keeps pith from starting.
const HINT: &str = "Hint: Start without extensions using \"pith -ne\".";

/// Where extensions are searched and what they see of the process.
#[derive(Clone)]
pub struct Extensions {
    named: Vec<String>,
    /// `--no-extensions`: only those named on the command line.
    is_named_only: bool,
    errors: Option<ExtensionErrors>,
    agent_dir: AgentDir,
    environment: Environment,
    mode: Mode,
    oversight: Oversight,
    /// Whether the command line has flags that only extensions can know.
    has_flags: bool,
}

/// Which places are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// All of them; the project is trusted.
    Trusted,
    /// Those of the command line and the user.
    Untrusted,
    /// Those of the trusted project, because the others are known to be empty.
    OnlyProject,
}

impl Extensions {
    /// Creates the search for a command line.
    pub fn new(cli: &Cli, agent_dir: &AgentDir, environment: &Environment, mode: Mode) -> Self {
        Extensions {
            named: cli.extensions.clone(),
            is_named_only: cli.no_extensions,
            errors: cli.extension_errors,
            agent_dir: agent_dir.clone(),
            environment: environment.clone(),
            mode,
            oversight: Oversight::default(),
            has_flags: !cli.extension_flags.is_empty(),
        }
    }

    /// Runs the programs that extensions start below a supervisor and in a sandbox, if there are any.
    pub fn watched_by(self, oversight: Oversight) -> Self {
        Extensions { oversight, ..self }
    }

    /// Finds the extensions of a directory.
    pub fn find(&self, cwd: &Path, settings: &Settings, search: Search) -> Discovery {
        let package_dirs = PackageDirs { agent_dir: &self.agent_dir, cwd, home: self.environment.home() };
        let mut places = Places { cwd: cwd.to_owned(), home: self.environment.home().to_owned(), ..Places::default() };
        let mut missing = Vec::new();
        if search != Search::OnlyProject {
            for source in &self.named {
                match built_in(source) {
                    None => {}
                    Some(Ok(_)) => continue,
                    Some(Err(why)) => {
                        missing.push(LoadError::new(source, &why));
                        continue;
                    }
                }
                match packages::named(source, package_dirs, search == Search::Trusted) {
                    None => places.named.push(source.clone()),
                    Some(Ok(root)) => places.named.push(root.display().to_string()),
                    Some(Err(why)) => missing.push(LoadError::new(source, &why)),
                }
            }
        }
        if !self.is_named_only {
            let place = |base: PathBuf, settings: &[String]| Some(Place { base, settings: settings.to_vec() });
            if search != Search::Untrusted {
                places.project = place(self.agent_dir.project_dir(cwd), &settings.project_resources.extensions);
            }
            if search != Search::OnlyProject {
                places.user = place(self.agent_dir.path().to_owned(), &settings.user_resources.extensions);
            }
            places.packages = packages::installed(settings, package_dirs).0.iter().map(Package::place).collect();
        }
        let mut found = discover(&places);
        found.errors.splice(0..0, missing);
        found
    }

    /// Returns whether a host waits while extensions are loaded.
    pub fn serves_host(&self) -> bool {
        self.mode == Mode::Rpc
    }

    /// What extensions of a directory see.
    fn surroundings(&self, cwd: &Path) -> Surroundings {
        Surroundings {
            cwd: cwd.to_owned(),
            mode: self.mode,
            has_ui: matches!(self.mode, Mode::Rpc | Mode::Tui),
            // A host has not announced dialogs yet; a user at the terminal is there from the beginning.
            trust_has_ui: self.mode == Mode::Tui,
            agent_dir: self.agent_dir.path().to_owned(),
            config_dir_name: self.agent_dir.layout().project_name().to_owned(),
            version: API_VERSION.to_owned(),
            color: false,
        }
    }

    /// The configuration of the engine for a directory.
    fn config(&self, cwd: &Path, limits: Limits) -> ExtensionConfig {
        let workbench = Workbench::new(cwd.to_owned(), WorkbenchOptions::default());
        let describe = |(builtin, tool): (&Builtin, Arc<dyn pith_agent::Tool>)| BuiltinTool {
            name: tool.spec().name.to_string(),
            label: tool.label().to_owned(),
            description: tool.spec().description.to_string(),
            parameters: tool.spec().parameters.clone(),
            prompt_snippet: tool.snippet().map(str::to_owned),
            prompt_guidelines: tool.rules().iter().map(|rule| (*rule).to_owned()).collect(),
            is_default: builtin.is_default,
            is_read_only: builtin.is_read_only,
        };
        ExtensionConfig {
            surroundings: self.surroundings(cwd),
            builtin_tools: BUILTINS.iter().zip(builtin_tools(&workbench)).map(describe).collect(),
            limits,
            output: Output::default(),
            environment: self.environment.variables(),
            arguments: arguments(self.mode),
            launcher: self.launcher(),
        }
    }

    /// The launcher for programs of extensions, if they can be supervised.
    fn launcher(&self) -> Option<Arc<dyn Launcher>> {
        let Oversight { supervisor, sandbox, .. } = self.oversight.clone();
        let launcher = Supervised::new(supervisor?, &self.environment, sandbox)?;
        Some(Arc::new(launcher))
    }

    /// Whether the start fails if one of them cannot be loaded, or depends on what it registers.
    fn is_any_needed(&self, sources: &[ExtensionSource]) -> bool {
        let is_fatal = match self.errors {
            Some(ExtensionErrors::Fatal) => true,
            Some(ExtensionErrors::Warn) => false,
            None => sources.iter().any(|source| source.source_info.scope == NAMED),
        };
        is_fatal || self.has_flags
    }

    /// Refuses to start if an extension that must be loaded is not.
    fn check(&self, errors: &[LoadError], is_named: impl Fn(&LoadError) -> bool) -> anyhow::Result<()> {
        let is_fatal = |error: &&LoadError| match self.errors {
            Some(ExtensionErrors::Fatal) => true,
            Some(ExtensionErrors::Warn) => false,
            None => is_named(error),
        };
        let fatal: Vec<String> = errors.iter().filter(is_fatal).map(LoadError::in_full).collect();
        if fatal.is_empty() { Ok(()) } else { anyhow::bail!("{}\n{HINT}", fatal.join("\nError: ")) }
    }

    /// Makes the setup for the session, which may have to find and start extensions again.
    pub fn setup(
        self,
        running: Option<RunningExtensions>,
        flags: HashMap<String, Value>,
        web: Web,
        settings: &Settings,
        mut sources: impl FnMut(&Extensions, &Path) -> Vec<ExtensionSource> + Send + 'static,
    ) -> ExtensionSetup {
        let (config, limits) = (self.clone(), limits::of(&settings.extension_limits));
        ExtensionSetup {
            find: Box::new(move |cwd| sources(&self, cwd)),
            config: Box::new(move |cwd| config.config(cwd, limits)),
            flags,
            running,
            web,
        }
    }
}

/// The arguments of this process, as extensions see them; they include the mode even if the program name implied it.
fn arguments(mode: Mode) -> Vec<String> {
    let text = |argument: OsString| argument.to_string_lossy().into_owned();
    let mut arguments: Vec<String> = std::env::args_os().skip(1).map(text).collect();
    if arguments.first().is_some_and(|first| first == SCRIPT) {
        arguments.remove(0);
    }
    let names_mode = arguments.iter().any(|argument| argument == "--mode" || argument.starts_with("--mode="));
    if mode == Mode::Rpc && !names_mode {
        if arguments.first().is_some_and(|first| first == "rpc") {
            arguments.remove(0);
        }
        arguments.splice(0..0, ["--mode".to_owned(), "rpc".to_owned()]);
    }
    arguments
}

impl Search {
    /// Searches everything that may be used.
    pub fn all(is_trusted: bool) -> Search {
        if is_trusted { Search::Trusted } else { Search::Untrusted }
    }
}
