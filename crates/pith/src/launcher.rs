//! Runs programs of extensions below a supervisor, like those of the bash tool: they end with pith even if it is
//! killed.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pith_config::Environment;
use pith_ext::{Launched, Launcher};
use pith_tools::process::{CommandLine, Exit, Job, Jobs, Supervisor};
use pith_tools::sandbox::{CurrentSandbox, Variables};
use tokio::runtime::Handle;

/// Starts programs below supervisors.
pub struct Supervised {
    jobs: Arc<Jobs>,
    /// What the programs are held to.
    sandbox: CurrentSandbox,
    /// Where the channels to the supervisors are served.
    runtime: Handle,
    /// The variables that programs inherit; `None` means those of this process.
    variables: Option<Vec<(String, String)>>,
}

impl Supervised {
    /// Creates a launcher for programs that inherit these variables; `None` outside of a runtime.
    pub fn new(supervisor: Supervisor, environment: &Environment, sandbox: CurrentSandbox) -> Option<Self> {
        let (variables, runtime) = (environment.variables(), Handle::try_current().ok()?);
        Some(Supervised { jobs: Arc::new(Jobs::new(Some(supervisor), true)), sandbox, runtime, variables })
    }
}

impl std::fmt::Debug for Supervised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Supervised")
    }
}

impl Launcher for Supervised {
    fn launch(
        &self,
        program: &str,
        args: &[String],
        cwd: &Path,
        stdout: Stdio,
        stderr: Stdio,
    ) -> io::Result<Box<dyn Launched>> {
        let _entered = self.runtime.enter();
        let command = CommandLine {
            program: program.into(),
            arguments: args.iter().map(Into::into).collect(),
            cwd: cwd.to_owned(),
            environment: match &self.variables {
                Some(variables) => variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                None => std::env::vars_os().collect(),
            },
            confinement: None,
        };
        let command = self.sandbox.confine(command, &self.jobs, Variables::Filtered)?;
        let job = self.jobs.spawn_to(command, stdout, stderr)?;
        Ok(Box::new(Running { job: Some(job), runtime: self.runtime.clone(), has_exited: AtomicBool::new(false) }))
    }
}

struct Running {
    job: Option<Job>,
    runtime: Handle,
    has_exited: AtomicBool,
}

impl Running {
    fn job(&self) -> &Job {
        self.job.as_ref().expect("taken only when dropped")
    }
}

impl Launched for Running {
    fn wait(&self) -> io::Result<i32> {
        let exit = self.runtime.block_on(self.job().exited());
        self.has_exited.store(true, Ordering::Relaxed);
        exit.map(Exit::code)
    }

    fn end(&self, grace: Duration) {
        self.job().end(grace);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What a finished program left in the background may stay; an unfinished program is killed.
        if *self.has_exited.get_mut()
            && let Some(job) = self.job.take()
        {
            job.release();
        }
    }
}
