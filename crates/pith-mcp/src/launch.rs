//! Starts the program of a server under the guard of the tools' processes, with values resolved and secrets known.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pith_ai::{Renewals, Web};
use pith_config::Environment;
use pith_secrets::{Secrets, is_secret_name};
use pith_tools::process::{CommandLine, Jobs, Piped};
use pith_tools::sandbox::{CurrentSandbox, Variables as Passed};

use crate::answers::Answers;
use crate::config::{OAuth, Resolved, ServerConfig, Stdio, Unresolved, Variables, resolve};
use crate::environment::{Inherited, inherited};
use crate::pool::Pool;
use crate::questions::User;
use crate::remarks::Remarks;
use crate::sampling::Sample;
use crate::state::Failure;
use crate::value_command::value_of;

/// Where and with what servers run.
pub struct Launch {
    pub jobs: Arc<Jobs>,
    /// Where programs are that other sessions of the process use, too, and what those run in; `None` if this one shares
    /// nothing.
    pub pool: Option<(Pool, Arc<Jobs>)>,
    /// What the programs are held to.
    pub sandbox: CurrentSandbox,
    pub environment: Environment,
    /// The way to servers at an address.
    pub web: Web,
    /// Variables with keys of models.
    pub hidden: Vec<String>,
    /// Learns the credentials of servers.
    pub secrets: Arc<Secrets>,
    pub renewals: Arc<Renewals>,
    /// Where sign-ins are kept.
    pub sign_ins: PathBuf,
    /// Who answers questions of servers, if anybody does.
    pub user: Option<Arc<dyn User>>,
    /// What the user has said before.
    pub answers: Arc<Answers>,
    /// Asks the session's model, if there is a session.
    pub sample: Option<Sample>,
    /// The session's directory.
    pub cwd: PathBuf,
    /// Further directories that the session works in.
    pub additional_roots: Vec<PathBuf>,
    /// `--approve`: files of the project may run commands for values.
    pub is_approved: bool,
}

/// A program that can be started.
pub struct Prepared {
    pub command: CommandLine,
    /// What nobody may read in its remarks.
    secrets: Vec<String>,
}

/// A program that was started.
pub struct Launched {
    pub pipes: Piped,
    /// Gets what it writes beside the protocol.
    pub remarks: Remarks,
}

impl Launch {
    /// Resolves the values of a server's program.
    pub async fn prepare(&self, config: &ServerConfig, stdio: &Stdio) -> Result<Prepared, Failure> {
        let values = Values { launch: self, config };
        let wanted = if stdio.inherits_env { Inherited::All } else { Inherited::Needed };
        let mut environment = inherited(&self.environment, &self.hidden, wanted);
        let mut secrets = Vec::new();
        for (name, written) in &stdio.env {
            let value = values.resolve(written).await?;
            if is_secret_name(name) {
                self.secrets.remember(&value);
            }
            secrets.push(value.clone());
            environment.retain(|(other, _)| other != name);
            environment.push((name.clone(), value));
        }
        let mut arguments: Vec<OsString> = Vec::new();
        for argument in &stdio.args {
            let argument = values.resolve(argument).await?;
            arguments.push(if argument.starts_with("~/") {
                self.environment.expand(&argument).into()
            } else {
                argument.into()
            });
        }
        let cwd = match &stdio.cwd {
            Some(cwd) => self.cwd.join(self.environment.expand(&values.resolve(cwd).await?)),
            None => self.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(Failure::failed(format!("there is no directory {}", cwd.display())));
        }
        let program = values.resolve(&stdio.command).await?;
        let command = CommandLine {
            program: if program.starts_with("~/") { self.environment.expand(&program) } else { program.into() },
            arguments,
            cwd,
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            confinement: None,
        };
        Ok(Prepared { command, secrets })
    }

    /// Starts a program.
    pub fn start(&self, prepared: Prepared, jobs: &Arc<Jobs>) -> Result<Launched, Failure> {
        let Prepared { command, secrets } = prepared;
        let program = command.program.display().to_string();
        let confined = self.sandbox.confine(command, jobs, Passed::Chosen);
        let started = confined.and_then(|command| jobs.spawn_piped(command));
        let pipes = started.map_err(|error| Failure::failed(format!("cannot start {program}: {error}")))?;
        Ok(Launched { pipes, remarks: Remarks::hiding(&secrets, &self.secrets) })
    }
}

/// Resolves the texts of one entry.
pub struct Values<'a> {
    pub launch: &'a Launch,
    pub config: &'a ServerConfig,
}

impl Values<'_> {
    /// Resolves a text: runs its command if it is one, and asks the user for what is missing.
    pub async fn resolve(&self, text: &str) -> Result<String, Failure> {
        let Launch { environment, cwd, answers, user, secrets, hidden, .. } = self.launch;
        let withheld = if self.config.source.is_of_project() { hidden.as_slice() } else { &[] };
        let mut inputs = HashMap::new();
        let resolved = loop {
            match resolve(text, &Variables { environment, cwd, inputs: &inputs, secrets, withheld }) {
                Ok(resolved) => break resolved,
                Err(Unresolved::Input(id)) => {
                    let value = answers.value(self.config, &id, environment, user.as_deref(), secrets).await?;
                    inputs.insert(id, value);
                }
                Err(unresolved) => return Err(Failure::failed(unresolved.to_string())),
            }
        };
        match resolved {
            Resolved::Text(text) => Ok(text),
            Resolved::Command(_) if self.config.source.is_of_project() && !self.launch.is_approved => {
                Err(Failure::failed(
                    "its file runs a command for a value (!); files of a project may do that only with --approve",
                ))
            }
            Resolved::Command(command) => {
                let value = self.output_of(&command).await?;
                secrets.remember(&value);
                Ok(value)
            }
        }
    }

    /// Resolves the texts of a sign-in.
    pub async fn resolve_oauth(&self, oauth: &OAuth) -> Result<OAuth, Failure> {
        let mut resolved = oauth.clone();
        for text in [&mut resolved.client_id, &mut resolved.client_secret, &mut resolved.scope].into_iter().flatten() {
            *text = self.resolve(text).await?;
        }
        resolved.client_secret.iter().for_each(|secret| self.launch.secrets.remember(secret));
        Ok(resolved)
    }

    async fn output_of(&self, command: &str) -> Result<String, Failure> {
        let Launch { environment, hidden, cwd, jobs, .. } = self.launch;
        let variables = inherited(environment, hidden, Inherited::All).into_iter();
        let command = CommandLine {
            program: "sh".into(),
            arguments: vec!["-c".into(), command.into()],
            cwd: cwd.clone(),
            environment: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            confinement: None,
        };
        let value = value_of(command, jobs).await;
        value.map_err(|why| Failure::failed(format!("the command for a value {why}")))
    }
}
