//! The sandbox of a session: what command line, environment and files ask for, made real for a directory.

mod command;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context as _;
use pith_config::{AgentDir, Diagnostic, DiagnosticKind, Environment, document, settings};
use pith_protocol::commands::SetSandbox;
use pith_sandbox::policy::Places;
use pith_sandbox::settings::Namespaces;
use pith_sandbox::{Policy, Profile, Require, SandboxSettings, Support};
use pith_tools::process::{Supervisor, probe_namespaces};
use pith_tools::sandbox::{Enforced, Oversight, Rules, Sandbox};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::Cli;
use crate::warn;

pub use command::run;

/// The variable that chooses a profile where the command line does not.
const VARIABLE: &str = "PITH_SANDBOX";

/// The variable of the system that names the directory with sockets of the user's daemons.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// Makes the sandbox of each directory a session works in. Clones share the sandbox and its temporary directory.
#[derive(Clone)]
pub struct Sandboxes {
    /// What the command line or the environment says; it stands above the files.
    chosen: Option<Profile>,
    agent_dir: AgentDir,
    home: PathBuf,
    /// What watches over the programs of the session; its sandbox is the one of the last directory.
    oversight: Oversight,
    /// Whether the host may loosen what it changes.
    may_loosen: bool,
    /// What the host has asked for since the start, in order.
    changes: Arc<Mutex<Vec<SandboxSettings>>>,
    /// The keys of the project's files that were ignored when they were last read.
    ignored: Arc<Mutex<Vec<&'static str>>>,
    /// What writable directories led to when the session first had them.
    roots: Arc<Mutex<HashMap<PathBuf, PathBuf>>>,
    /// Where confined commands keep temporary files; it goes when the session does.
    temp: Arc<OnceLock<TempDir>>,
    /// Where daemons of the user have their sockets.
    runtime_dir: Option<PathBuf>,
    /// Whether this system allows namespaces; asked once, if a sandbox could use them.
    has_namespaces: Arc<OnceLock<bool>>,
}

/// Why a sandbox that was asked for cannot be had.
#[derive(Debug)]
pub struct Refusal {
    /// What was asked for, unless the settings that say so cannot be read.
    profile: Option<Profile>,
    why: String,
}

impl From<Refusal> for anyhow::Error {
    fn from(refusal: Refusal) -> Self {
        anyhow::Error::msg(refusal.why)
    }
}

impl Sandboxes {
    /// Reads the choice of command line and environment. Reads no file.
    pub fn new(
        cli: &Cli,
        environment: &Environment,
        agent_dir: &AgentDir,
        supervisor: Option<Supervisor>,
    ) -> anyhow::Result<Self> {
        let named = environment.get(VARIABLE).filter(|value| !value.is_empty());
        let named = named.map(|value| value.parse().map_err(anyhow::Error::msg).context(VARIABLE)).transpose()?;
        Ok(Sandboxes {
            chosen: cli.sandbox.or(named),
            agent_dir: agent_dir.clone(),
            home: environment.home().to_owned(),
            oversight: Oversight { supervisor, ..Oversight::default() },
            may_loosen: cli.sandbox_may_loosen,
            changes: Arc::default(),
            ignored: Arc::default(),
            roots: Arc::default(),
            temp: Arc::default(),
            runtime_dir: environment.get(RUNTIME_DIR).filter(|path| !path.is_empty()).map(PathBuf::from),
            has_namespaces: Arc::default(),
        })
    }

    /// What watches over programs that are started now.
    pub fn oversight(&self) -> &Oversight {
        &self.oversight
    }

    /// Makes the sandbox of a directory the current one. An error says why it cannot be had; nothing may run then.
    pub fn enter(&self, cwd: &Path) -> Result<(), Refusal> {
        let sandbox = self.make(cwd)?;
        self.oversight.sandbox.set(sandbox);
        Ok(())
    }

    /// Like [`Sandboxes::enter`], for a session that exists already: where no sandbox can be had, every call is refused.
    pub fn enter_or_refuse(&self, cwd: &Path) {
        if let Err(Refusal { profile, why }) = self.enter(cwd) {
            warn(&format!("Warning: {why}"));
            self.oversight.sandbox.set(Some(Arc::new(Sandbox::Unavailable { profile, why })));
        }
    }

    /// Makes a change of the host's the last word about the sandbox. The error says why it is not.
    pub fn change(&self, cwd: &Path, call: &SetSandbox) -> Result<(), String> {
        let SetSandbox { profile, network, filesystem } = call;
        let (network, filesystem) = (network.clone().unwrap_or_default(), filesystem.clone().unwrap_or_default());
        let asked = json!({"profile": profile, "network": network, "filesystem": filesystem});
        let asked = SandboxSettings::read(&asked)?;
        let loosened = self.settings(cwd)?.tighten(asked.clone());
        if !loosened.is_empty() && !self.may_loosen {
            let keys = loosened.join(", ");
            return Err(format!("{keys}: loosening the sandbox needs --sandbox-may-loosen when pith starts"));
        }
        self.changes().push(asked);
        self.enter(cwd).map_err(|refusal| {
            self.changes().pop();
            refusal.why
        })
    }

    /// What is wrong with the project's own settings of the sandbox, as of when they were last read.
    pub fn findings(&self, cwd: &Path) -> Vec<Diagnostic> {
        let ignored = self.ignored();
        let finding = |key: &&'static str| Diagnostic {
            kind: DiagnosticKind::Warning,
            message: ignored_text(key),
            path: Some(self.agent_dir.project_settings_file(cwd)),
            code: "sandbox_project_loosens",
            collision: None,
        };
        ignored.iter().map(finding).collect()
    }

    /// Like [`Sandboxes::findings`], for files that may have changed.
    pub fn findings_now(&self, cwd: &Path) -> Vec<Diagnostic> {
        if !self.is_off() {
            // A mistake in the files is told when the sandbox is made from them.
            let _ = self.settings(cwd);
        }
        self.findings(cwd)
    }

    /// Whether command line or environment say that there is none, and the host has said nothing else since.
    fn is_off(&self) -> bool {
        self.chosen == Some(Profile::Off) && self.changes().is_empty()
    }

    fn changes(&self) -> MutexGuard<'_, Vec<SandboxSettings>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, cwd: &Path) -> Result<Option<Arc<Sandbox>>, Refusal> {
        if self.is_off() {
            return Ok(None);
        }
        let settings = self.settings(cwd).map_err(|why| Refusal { profile: self.chosen, why })?;
        self.ignored().iter().for_each(|key| warn(&format!("Warning: {}", ignored_text(key))));
        let profile = settings.profile();
        if profile == Profile::Off {
            return Ok(None);
        }
        self.enforce(settings, cwd).map_err(|why| Refusal { profile: Some(profile), why })
    }

    fn enforce(&self, settings: SandboxSettings, cwd: &Path) -> Result<Option<Arc<Sandbox>>, String> {
        let profile = settings.profile();
        let wants_namespaces = settings.namespaces.unwrap_or_default() != Namespaces::Never;
        let namespaces = wants_namespaces && self.has_namespaces();
        let support = Support { namespaces, ..Support::of_this_kernel() };
        let require = settings.require.unwrap_or_default();
        support.check(profile, require)?;
        let temp = self.temp()?;
        let places = Places {
            cwd: cwd.to_owned(),
            home: Some(self.home.clone()),
            agent_dir: self.agent_dir.path().to_owned(),
            temp: temp.to_owned(),
        };
        self.check_roots(&settings, &places)?;
        let Some(policy) = Policy::resolve(&settings, &places, support)? else { return Ok(None) };
        let rules = Rules {
            require,
            support,
            env: settings.env,
            host_commands: settings.host_commands == Some(true),
            allows_unsandboxed: settings.allow_unsandboxed_commands == Some(true),
            temp: temp.to_owned(),
            supervisor: self.oversight.supervisor.clone(),
            runtime_dir: self.runtime_dir.clone(),
            hosts: self.oversight.hosts.clone(),
        };
        let current = self.oversight.sandbox.get();
        if let Some(Sandbox::Enforced(enforced)) = current.as_deref()
            && enforced.is_made_of(&policy, &rules)
        {
            return Ok(current);
        }
        let enforced = Enforced::new(policy, rules);
        let enforced = enforced.map_err(|error| format!("sandbox \"{profile}\" cannot be enforced: {error}"))?;
        if require == Require::Strict && !enforced.holds_protected_paths() {
            return Err(format!("sandbox \"{profile}\" cannot be enforced: a protected path is a link"));
        }
        Ok(Some(Arc::new(Sandbox::Enforced(enforced))))
    }

    fn has_namespaces(&self) -> bool {
        let probe = || self.oversight.supervisor.as_ref().is_some_and(|it| probe_namespaces(it).is_ok());
        *self.has_namespaces.get_or_init(probe)
    }

    /// Refuses a writable directory that leads elsewhere than when the session first had it: a command that can write
    /// above it may have put a link there.
    fn check_roots(&self, settings: &SandboxSettings, places: &Places) -> Result<(), String> {
        let mut known = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        for (written, real) in Policy::roots(settings, places) {
            let before = known.entry(written.clone()).or_insert_with(|| real.clone());
            if *before != real {
                let (written, before, real) = (written.display(), before.display(), real.display());
                return Err(format!(
                    "sandbox: {written} leads to {real} now, and led to {before} before; start pith anew if that is right"
                ));
            }
        }
        Ok(())
    }

    /// What the files of user and project say, and the profile that was chosen above them.
    fn settings(&self, cwd: &Path) -> Result<SandboxSettings, String> {
        let older = self.agent_dir.path().join("extensions").join("sandbox.json");
        let mut settings = read(&older, &self.agent_dir.settings_file())?;
        settings.profile = self.chosen.or(settings.profile);
        let project = self.agent_dir.project_dir(cwd).join("sandbox.json");
        let project = read(&project, &self.agent_dir.project_settings_file(cwd))?;
        *self.ignored() = settings.tighten(project);
        for change in self.changes().iter().cloned() {
            if self.may_loosen {
                settings.replace_by(change);
            } else {
                // What was stricter when the host asked may not be any more.
                settings.tighten(change);
            }
        }
        Ok(settings)
    }

    fn ignored(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn temp(&self) -> Result<&Path, String> {
        if let Some(temp) = self.temp.get() {
            return Ok(temp.path());
        }
        let made = tempfile::Builder::new().prefix("pith-tmp-").tempdir();
        let made = made.map_err(|error| format!("no temporary directory for the sandbox: {error}"))?;
        Ok(self.temp.get_or_init(|| made).path())
    }
}

fn ignored_text(key: &str) -> String {
    format!("the project's {key} is ignored: a project can only tighten the sandbox")
}

/// Reads a file that holds nothing else, and above it the `sandbox` of a settings file. A mistake in either is an error.
fn read(own: &Path, settings: &Path) -> Result<SandboxSettings, String> {
    let mut value = document::read(own).map_err(|reason| format!("{}: {reason}", own.display()))?;
    if let Some(written) = settings::written(settings, "sandbox")? {
        document::merge(value.get_or_insert(Value::Object(Default::default())), written);
    }
    match value {
        Some(value) => SandboxSettings::read(&value).map_err(|error| format!("{}: {error}", settings.display())),
        None => Ok(SandboxSettings::default()),
    }
}
