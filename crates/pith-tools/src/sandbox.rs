//! The sandbox of a session: what its commands and file tools are confined to.

mod enforcement;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use pith_agent::blocking::Panic;
use pith_protocol::answers::SandboxState;
use pith_sandbox::confine::{ConfineError, Step};
use pith_sandbox::namespaces::Plan;
use pith_sandbox::settings::Env;
use pith_sandbox::watch::{CommandWatch, Watch};
use pith_sandbox::{NetworkMode, Policy, Profile, Require, Support};
use tokio::sync::oneshot;

use self::enforcement::Enforcement;
use crate::command::environment::Caller;
use crate::hosts::SessionHosts;
use crate::process::{ABORT_GRACE, CommandConfinement, CommandLine, Jobs, Namespaces, Supervisor};
use crate::{denied, proxy};

/// What stands between a session's tools and the machine.
#[derive(Clone, Debug)]
pub enum Sandbox {
    Enforced(Enforced),
    /// One was asked for and cannot be had: no tool runs, and `why` is what each call is told.
    Unavailable {
        /// The profile that was asked for, if the settings that name it could be read.
        profile: Option<Profile>,
        why: String,
    },
}

/// What watches over the programs of a session: the supervisor that ends them, and the sandbox that holds them.
#[derive(Clone, Debug, Default)]
pub struct Oversight {
    /// Without one, ending processes is best effort.
    pub supervisor: Option<Supervisor>,
    pub sandbox: CurrentSandbox,
    /// Decides about hosts that no list of the sandbox has.
    pub hosts: SessionHosts,
}

/// The sandbox of a session, for everything that starts programs for it. Another one comes when the session moves to
/// another directory or its settings change. Clones are the same sandbox.
#[derive(Clone, Debug, Default)]
pub struct CurrentSandbox(Arc<RwLock<Option<Arc<Sandbox>>>>);

/// Which variables a confined program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variables {
    /// Those that commands of tools get.
    Filtered,
    /// Those that were chosen for this program.
    Chosen,
}

/// A policy that is enforced. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Enforced {
    pub policy: Arc<Policy>,
    pub require: Require,
    pub support: Support,
    /// Which variables commands get.
    pub env: Env,
    /// Whether commands of the host are confined too.
    pub host_commands: bool,
    /// Whether the model may ask to run a command outside.
    pub allows_unsandboxed: bool,
    /// The session's own temporary directory, which commands get as `TMPDIR`.
    pub temp: PathBuf,
    /// Made anew when files appear beside those that cannot be read.
    enforcement: Arc<Mutex<Enforcement>>,
    /// What commands run in, if the policy wants it.
    namespaces: Option<Arc<Namespaces>>,
    /// The protected paths that no mount holds.
    watched: Vec<PathBuf>,
    /// Guards these while commands run; there is one from the first command on.
    watch: Arc<OnceLock<Arc<Watch>>>,
    /// Whose commands are ended when a protected path was changed: nobody knows which of them did it.
    confined: Arc<Mutex<Vec<Weak<Jobs>>>>,
}

/// What a sandbox is made of beside its policy.
#[derive(Clone, Debug)]
pub struct Rules {
    pub require: Require,
    pub support: Support,
    pub env: Env,
    pub host_commands: bool,
    pub allows_unsandboxed: bool,
    pub temp: PathBuf,
    /// Starts what keeps namespaces.
    pub supervisor: Option<Supervisor>,
    /// Where daemons of the user have their sockets.
    pub runtime_dir: Option<PathBuf>,
    /// Decides about hosts that no list has.
    pub hosts: SessionHosts,
}

impl Rules {
    /// What commands run in; `None` if the policy wants nothing of the kind.
    fn namespaces(&self, policy: &Policy) -> Result<Option<Arc<Namespaces>>, ConfineError> {
        if !policy.namespaces {
            return Ok(None);
        }
        let supervisor = self.supervisor.clone().ok_or_else(|| ConfineError {
            step: Step::Namespaces,
            cause: io::Error::other("they need pith's supervisor"),
        })?;
        let plan = Plan::of(policy, self.runtime_dir.as_deref());
        Ok(Some(Arc::new(Namespaces::new(supervisor, plan, policy.domains.clone(), self.hosts.clone()))))
    }
}

impl Sandbox {
    /// What commands of this caller are confined to; `None` if they are not. An error is the text for the model.
    pub(crate) fn for_commands_of(&self, caller: Caller) -> Result<Option<&Enforced>, String> {
        match self {
            Sandbox::Enforced(enforced) if caller == Caller::Host && !enforced.host_commands => Ok(None),
            Sandbox::Enforced(enforced) => Ok(Some(enforced)),
            Sandbox::Unavailable { why, .. } => Err(why.clone()),
        }
    }

    /// Whether the model may ask to run a command outside.
    pub fn allows_unsandboxed(&self) -> bool {
        matches!(self, Sandbox::Enforced(enforced) if enforced.allows_unsandboxed)
    }

    /// What a host is told about it.
    pub fn state(&self) -> SandboxState {
        match self {
            Sandbox::Enforced(enforced) => enforced.state(),
            Sandbox::Unavailable { profile, why } => SandboxState {
                profile: profile.map_or("unknown", Profile::as_str).to_owned(),
                error: Some(why.clone()),
                ..SandboxState::default()
            },
        }
    }

    pub fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Sandbox::Enforced(enforced) => Some(&enforced.policy),
            Sandbox::Unavailable { .. } => None,
        }
    }

    /// Whether pith decides which hosts commands reach.
    pub fn decides_hosts(&self) -> bool {
        self.policy().is_some_and(|policy| policy.network.mode == NetworkMode::Domains)
    }

    /// What is said after the status of a command that the sandbox may have stopped.
    pub(crate) fn remark(&self, output: &str) -> Option<String> {
        const SIGNS: [&str; 8] = [
            "Permission denied",
            "Operation not permitted",
            "Read-only file system",
            "Could not resolve host",
            "Temporary failure in name resolution",
            "Name or service not known",
            "CONNECT tunnel failed",
            "Tunnel connection failed",
        ];
        let policy = self.policy()?;
        let home = policy.reading.refused_in(output).map(|home| policy.home_summary(home));
        let stopped = home.is_some() || SIGNS.iter().any(|sign| output.contains(sign));
        stopped.then(|| format!("[{}{}]", policy.summary(), home.unwrap_or_default()))
    }

    /// Runs the work of a file tool on a confined thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<Result<T, String>, Panic> {
        match self {
            Sandbox::Enforced(enforced) => enforced.run(work).await,
            Sandbox::Unavailable { why, .. } => Ok(Err(why.clone())),
        }
    }
}

impl CurrentSandbox {
    pub fn get(&self) -> Option<Arc<Sandbox>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, sandbox: Option<Arc<Sandbox>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = sandbox;
    }

    /// Confines a program that is started for the session beside its tools. The error says why it must not run.
    pub fn confine(&self, command: CommandLine, jobs: &Arc<Jobs>, variables: Variables) -> io::Result<CommandLine> {
        match self.get().as_deref() {
            None => Ok(command),
            Some(Sandbox::Unavailable { why, .. }) => Err(io::Error::other(why.clone())),
            Some(Sandbox::Enforced(enforced)) => {
                let environment = match variables {
                    Variables::Filtered => enforced.filter(command.environment),
                    Variables::Chosen => enforced.with_own(command.environment),
                };
                let confinement = enforced.for_command(jobs).map_err(io::Error::other)?;
                Ok(CommandLine { environment, confinement: Some(confinement), ..command })
            }
        }
    }
}

impl Enforced {
    /// Confines a thread for the file tools. Fails if the kernel refuses.
    pub fn new(policy: Policy, rules: Rules) -> Result<Enforced, ConfineError> {
        let enforcement = Arc::new(Mutex::new(Enforcement::new(&policy)?));
        let namespaces = rules.namespaces(&policy)?;
        let watched = if namespaces.is_some() { Plan::not_held(&policy) } else { policy.protected.clone() };
        let Rules { require, support, env, host_commands, allows_unsandboxed, temp, .. } = rules;
        let policy = Arc::new(policy);
        Ok(Enforced {
            policy,
            require,
            support,
            env,
            host_commands,
            allows_unsandboxed,
            temp,
            enforcement,
            namespaces,
            watched,
            watch: Arc::default(),
            confined: Arc::default(),
        })
    }

    /// Whether a sandbox of these parts would be the same.
    pub fn is_made_of(&self, policy: &Policy, rules: &Rules) -> bool {
        *self.policy == *policy
            && self.require == rules.require
            && self.env == rules.env
            && self.host_commands == rules.host_commands
            && self.allows_unsandboxed == rules.allows_unsandboxed
            && self.temp == rules.temp
    }

    fn state(&self) -> SandboxState {
        let kernel = || Some("kernel".to_owned());
        let on_off = |is_on: bool| Some(if is_on { "on" } else { "off" }.to_owned());
        SandboxState {
            profile: self.policy.profile.as_str().to_owned(),
            enforced: true,
            require: Some(self.require.as_str().to_owned()),
            landlock_abi: Some(self.support.landlock_abi),
            seccomp: Some(self.support.seccomp),
            namespaces: Some(self.namespaces.is_some()),
            filesystem: kernel(),
            file_tools: kernel(),
            protected_paths: Some(if self.holds_protected_paths() { "kernel" } else { "restored" }.to_owned()),
            network: Some(self.policy.network.mode.as_str().to_owned()),
            unix_sockets: on_off(self.policy.network.unix),
            writable: Some(self.policy.writable.iter().map(|root| root.display().to_string()).collect()),
            missing: Some(self.missing().into_iter().map(str::to_owned).collect()),
            unconfined: Some(self.unconfined()),
            ..SandboxState::default()
        }
    }

    /// Whether the kernel holds all protected paths, so that none has to be put back.
    pub fn holds_protected_paths(&self) -> bool {
        self.namespaces.is_some() && self.watched.is_empty()
    }

    fn missing(&self) -> Vec<&'static str> {
        let mut missing = Support { namespaces: self.namespaces.is_some(), ..self.support }.missing();
        if self.watch.get().is_some_and(|watch| watch.is_partial()) {
            missing.push("git and protected names in directories beyond those that can be watched");
        }
        missing
    }

    /// What runs with the rights of the user all the same.
    fn unconfined(&self) -> Vec<String> {
        let host_commands = (!self.host_commands).then_some("commands of the host");
        ["extensions", "host tools"].into_iter().chain(host_commands).map(str::to_owned).collect()
    }

    /// What the next command is confined to. Its protected paths are guarded from now on.
    pub(crate) fn for_command(&self, jobs: &Arc<Jobs>) -> Result<CommandConfinement, String> {
        let not_run = |what: String| format!("The sandbox could not be set up ({what}). The command was not run.");
        let Enforcement { restrictions, view, .. } = self.current().map_err(|error| not_run(error.to_string()))?;
        let namespaces = self.namespaces.as_ref().map(|namespaces| namespaces.for_command(&view)).transpose();
        let namespaces = namespaces.map_err(|why| not_run(format!("namespaces: {why}")))?;
        let watch = self.watch(jobs).and_then(|watch| watch.map(CommandWatch::new).transpose());
        let watch = watch.map_err(|error| not_run(format!("protected paths: {error}")))?;
        Ok(CommandConfinement { restrictions, watch, namespaces })
    }

    /// Guards what must not change while pith itself changes a file; `None` if nothing can be written.
    pub(crate) fn guard(&self, jobs: &Arc<Jobs>) -> io::Result<Option<CommandWatch>> {
        self.watch(jobs).and_then(|watch| watch.map(CommandWatch::without_thread).transpose())
    }

    /// Returns the watch of the protected paths, which ends the commands that are confined when one of them changes;
    /// `None` if there is nothing to watch.
    fn watch(&self, jobs: &Arc<Jobs>) -> io::Result<Option<Arc<Watch>>> {
        if self.watched.is_empty() && self.policy.names.trees.is_empty() {
            return Ok(None);
        }
        {
            let mut confined = self.confined.lock().unwrap_or_else(PoisonError::into_inner);
            if !confined.iter().any(|known| Weak::as_ptr(known) == Arc::as_ptr(jobs)) {
                confined.retain(|known| known.strong_count() > 0);
                confined.push(Arc::downgrade(jobs));
            }
        }
        if let Some(watch) = self.watch.get() {
            return Ok(Some(Arc::clone(watch)));
        }
        let confined = Arc::clone(&self.confined);
        let end_commands = move |_: &Path| {
            let confined = confined.lock().unwrap_or_else(PoisonError::into_inner).clone();
            confined.iter().filter_map(Weak::upgrade).for_each(|jobs| jobs.end_confined(ABORT_GRACE));
        };
        let watch = Arc::new(Watch::of_policy(&self.policy, &self.watched, Box::new(end_commands))?);
        Ok(Some(Arc::clone(self.watch.get_or_init(|| watch))))
    }

    /// Returns the enforcement of the policy on the files that are there now.
    fn current(&self) -> Result<Enforcement, ConfineError> {
        let mut enforcement = self.enforcement();
        if !enforcement.restrictions.are_current() {
            *enforcement = Enforcement::new(&self.policy)?;
        }
        Ok(enforcement.clone())
    }

    fn enforcement(&self) -> MutexGuard<'_, Enforcement> {
        self.enforcement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the variables that commands get.
    pub(crate) fn filter(&self, environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let passed = |(name, value): &(OsString, OsString)| {
            name.to_str().is_some_and(|name| self.env.passes(name, &value.to_string_lossy()))
        };
        self.with_own(environment.into_iter().filter(passed).collect())
    }

    /// Adds where temporary files and locks go, and where the proxy is if there is one.
    fn with_own(&self, mut environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let mut own: Vec<(OsString, OsString)> = vec![("TMPDIR".into(), self.temp.clone().into())];
        // The user's directory of sockets cannot be written, unless all sockets are open.
        if !self.policy.network.unix {
            own.push(("XDG_RUNTIME_DIR".into(), self.temp.clone().into()));
        }
        if self.policy.network.mode == NetworkMode::Domains {
            let variables = proxy::variables();
            own.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        }
        environment.retain(|(name, _)| !own.iter().any(|(own, _)| own == name));
        environment.extend(own);
        environment
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<Result<T, String>, Panic> {
        let (done, result) = oneshot::channel();
        let ended = |text: String| -> Panic { Box::new(text) };
        // Nobody waits any more if sending fails.
        let worker = self.enforcement().worker.clone();
        let started = worker.run(work, move |outcome| drop(done.send(outcome)));
        started.map_err(|error| ended(error.to_string()))?;
        let outcome = result.await.unwrap_or_else(|_| Err(ended("the confined thread ended".to_owned())))?;
        Ok(outcome.map_err(|error| self.explain(error)))
    }

    /// Says that the sandbox refused, where the text says only that something did.
    fn explain(&self, error: String) -> String {
        match denied::explained(&error, self.policy.profile) {
            Some(explained) => {
                // What came beside a path that cannot be read is there for the next call. If it cannot be, the next
                // command says why.
                let _ = self.current();
                explained
            }
            None => error,
        }
    }
}
