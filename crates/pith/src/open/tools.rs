//! Makes the tools of a working directory, as the settings configure them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_ai::Registry;
use pith_config::settings::Redact;
use pith_config::{AgentDir, Environment, Settings};
use pith_session::{MadeTools, MakeTools};
use pith_tools::sandbox::Oversight;
use pith_tools::shell::Shell;
use pith_tools::{MutationQueue, Workbench, WorkbenchOptions, builtin_tools};

use super::checkpoints::recorder;
use crate::sandbox::Sandboxes;

/// Makes the tools of the directories a session works in.
pub(super) struct ToolMaker {
    pub environment: Environment,
    pub agent_dir: AgentDir,
    pub registry: Arc<Registry>,
    pub sandboxes: Sandboxes,
    /// Directories that file tools may use beside those of `tools.root`.
    pub additional_roots: Vec<PathBuf>,
    pub is_offline: bool,
    pub mutations: Arc<MutationQueue>,
}

impl ToolMaker {
    /// Makes the tools of a directory whose sandbox is the current one.
    pub fn make(&self, cwd: &Path, settings: &Settings, before: Option<&Workbench>) -> MadeTools {
        let mut options = workbench_options(cwd, &self.environment, settings, self.sandboxes.oversight());
        options.secrets = (settings.secrets.redact() == Redact::All).then(|| self.registry.secrets());
        options.mutations = self.mutations.clone();
        if let Some(roots) = &mut options.roots {
            roots.extend_from_slice(&self.additional_roots);
        }
        options.checkpoints = Some(recorder(
            cwd,
            &settings.checkpoints,
            &self.agent_dir,
            &self.environment,
            options.sandbox.as_deref(),
            before.and_then(|before| before.checkpoints.as_ref()),
        ));
        let workbench = match before.filter(|before| before.base.cwd == cwd) {
            Some(before) => before.with_options(options),
            None => Workbench::new(cwd.to_owned(), options),
        };
        let (environment, agent_dir, registry) = (&self.environment, &self.agent_dir, &self.registry);
        set_call_options(&workbench, environment, self.is_offline, agent_dir, settings, registry);
        let tools = builtin_tools(&workbench);
        (workbench, tools)
    }

    /// Returns the function that makes tools when the session moves to another directory or its settings change; the
    /// sandbox is made anew then too.
    pub fn into_function(self) -> MakeTools {
        Box::new(move |cwd, settings, before| {
            self.sandboxes.enter_or_refuse(cwd);
            self.make(cwd, settings, before)
        })
    }
}

/// Returns what tools work with before there is a session.
pub(crate) fn early_workbench(
    cwd: &Path,
    environment: &Environment,
    agent_dir: &AgentDir,
    settings: &Settings,
    registry: &Registry,
    oversight: &Oversight,
) -> Arc<Workbench> {
    let workbench = Workbench::new(cwd.to_owned(), workbench_options(cwd, environment, settings, oversight));
    set_call_options(&workbench, environment, false, agent_dir, settings, registry);
    workbench
}

fn workbench_options(
    cwd: &Path,
    environment: &Environment,
    settings: &Settings,
    oversight: &Oversight,
) -> WorkbenchOptions {
    WorkbenchOptions {
        home: Some(environment.home().to_owned()),
        shell: Shell {
            path: settings.shell_path.as_deref().map(|path| environment.expand(path)),
            prefix: settings.shell_command_prefix.clone(),
        },
        roots: (!settings.tools.root.is_empty())
            .then(|| settings.tools.root.iter().map(|root| cwd.join(environment.expand(root))).collect()),
        auto_resize_images: settings.images.auto_resize,
        keep_background: settings.bash.keep_background,
        supervisor: oversight.supervisor.clone(),
        sandbox: oversight.sandbox.get(),
        ..WorkbenchOptions::default()
    }
}

/// Sets the environment of commands: marks of pith, and no credentials.
fn set_call_options(
    workbench: &Workbench,
    environment: &Environment,
    is_offline: bool,
    agent_dir: &AgentDir,
    settings: &Settings,
    registry: &Registry,
) {
    let hidden = if settings.bash.inherit_secrets { Vec::new() } else { registry.credential_variables() };
    let mut marks = vec![("PI_CODING_AGENT", "true"), ("AI_AGENT", "pith"), ("PITH", "1")];
    if is_offline {
        marks.extend([("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1")]);
    }
    workbench.update_call_options(|call_options| {
        call_options.env.common = marks.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        call_options.env.inherited = environment.variables();
        call_options.env.hidden = hidden;
        call_options.env.bin = Some(agent_dir.path().join("bin"));
    });
}
