//! The commands of one session: starting them, and ending all of them.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::attend::attend;
use super::guard::{Guard, Leftovers};
use super::line::Line;

/// A pipe this large spares a busy command most of its waiting.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;
/// What is not gone this long after SIGKILL is stuck in the kernel.
const HOPELESS: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Clone, Debug)]
pub struct CommandLine {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Every command of a session that may still have processes.
pub struct Jobs {
    guard: Option<Guard>,
    leftovers: Leftovers,
    /// Dropping a line ends what is behind it.
    lines: Mutex<Vec<Arc<Line>>>,
}

/// A command that was just started.
pub struct Running {
    pub job: Job,
    /// Standard output and error in the order of their writing.
    pub output: pipe::Receiver,
}

/// A running command. Dropped without [`Job::release`], it is killed.
pub struct Job {
    line: Arc<Line>,
    released: bool,
}

impl Jobs {
    /// `keep_background` lets processes live on that outlast both their command and pith.
    pub fn new(guard: Option<Guard>, keep_background: bool) -> Self {
        let leftovers = if keep_background { Leftovers::Keep } else { Leftovers::End };
        Jobs { guard, leftovers, lines: Mutex::default() }
    }

    /// Starts a command in a session of its own, with empty input. Needs a tokio runtime.
    pub fn spawn(&self, command: CommandLine) -> io::Result<Running> {
        let (reader, writer) = io::pipe()?;
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_SIZE);
        let job = self.spawn_to(command, Stdio::from(writer.try_clone()?), Stdio::from(writer))?;
        Ok(Running { job, output: pipe::Receiver::from_owned_fd(OwnedFd::from(reader))? })
    }

    /// Like [`Jobs::spawn`], with output and errors going where the caller wants them.
    pub fn spawn_to(&self, command: CommandLine, stdout: Stdio, stderr: Stdio) -> io::Result<Job> {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let line = Arc::new(match &self.guard {
            Some(guard) => self.spawn_guarded(guard, command, (stdout, stderr), ours, theirs)?,
            None => self.spawn_attended(command, (stdout, stderr), ours, theirs)?,
        });
        let mut lines = self.lines();
        lines.retain(|line| !line.is_over());
        lines.push(Arc::clone(&line));
        drop(lines);
        Ok(Job { line, released: false })
    }

    fn spawn_guarded(
        &self,
        guard: &Guard,
        command: CommandLine,
        (stdout, stderr): (Stdio, Stdio),
        ours: UnixStream,
        theirs: BlockingStream,
    ) -> io::Result<Line> {
        let child = Command::new(&guard.program)
            .arg0("pith-guard")
            .arg(&guard.argument)
            .arg(self.leftovers.as_argument())
            .arg(command.program)
            .args(command.arguments)
            .current_dir(command.cwd)
            .env_clear()
            .envs(command.environment)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(stderr)
            .spawn()?;
        // The guard reports over the line; as a dropped child it is reaped by the runtime.
        Ok(Line::new(ours, child.id().and_then(|id| Pid::from_raw(id.cast_signed()))))
    }

    fn spawn_attended(
        &self,
        command: CommandLine,
        (stdout, stderr): (Stdio, Stdio),
        ours: UnixStream,
        theirs: BlockingStream,
    ) -> io::Result<Line> {
        let child = Command::new(command.program)
            .args(command.arguments)
            .current_dir(command.cwd)
            .env_clear()
            .envs(command.environment)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()?;
        theirs.set_nonblocking(true)?;
        // Owned by the line: the task ends when the line is closed and the command is cleared away.
        tokio::spawn(attend(child, UnixStream::from_std(theirs)?, self.leftovers));
        Ok(Line::new(ours, None))
    }

    /// Ends every command, and what finished ones left running unless that is to be kept.
    pub async fn shutdown_all(&self, grace: Duration) {
        let lines = std::mem::take(&mut *self.lines());
        let ending: Vec<_> =
            lines.iter().filter(|line| self.leftovers == Leftovers::End || !line.has_exited()).collect();
        for line in &ending {
            line.end(grace);
        }
        let deadline = Instant::now() + grace + HOPELESS;
        for line in ending {
            let _ = timeout_at(deadline, line.gone()).await;
        }
    }

    /// How many commands still have processes.
    pub fn count(&self) -> usize {
        let mut lines = self.lines();
        lines.retain(|line| !line.is_over());
        lines.len()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Waits for the exit code: 128 and the signal if one ended the command.
    pub async fn exited(&self) -> io::Result<i32> {
        self.line.exited().await
    }

    /// SIGTERM to the command and all it started, SIGKILL after `grace`.
    pub fn end(&self, grace: Duration) {
        self.line.end(grace);
    }

    /// Waits until nothing of the command is left.
    pub async fn gone(&self) {
        self.line.gone().await;
    }

    /// The command is done; what it left in the background stays with its [`Jobs`].
    pub fn release(mut self) {
        self.released = true;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.released {
            self.line.end(Duration::ZERO);
        }
    }
}
