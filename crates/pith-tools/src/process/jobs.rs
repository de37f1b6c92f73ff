//! The commands of one session: starting them, and ending all of them.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::attend::attend;
use super::line::Line;
use super::supervisor::{Leftovers, Supervisor};

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
    supervisor: Option<Supervisor>,
    leftovers: Leftovers,
    /// Shared with the commands, which take themselves out when nothing is left of them.
    lines: Arc<Lines>,
}

/// The lines to all supervisors that may still have processes.
#[derive(Default)]
struct Lines(Mutex<Vec<Entry>>);

struct Entry {
    /// Dropping a line ends what is behind it.
    line: Arc<Line>,
    /// Waits for the end of what a finished command has left running.
    watcher: Option<AbortOnDrop>,
}

/// Ends the task with its owner, so that the task does not keep the line open.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
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
    /// Gone when the session has ended.
    lines: Weak<Lines>,
    /// Where the line is listened to; a job may be dropped elsewhere.
    runtime: Handle,
}

impl Jobs {
    /// `keep_background` lets processes live on that outlast both their command and pith.
    pub fn new(supervisor: Option<Supervisor>, keep_background: bool) -> Self {
        let leftovers = if keep_background { Leftovers::Keep } else { Leftovers::End };
        Jobs { supervisor, leftovers, lines: Arc::default() }
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
        let line = Arc::new(match &self.supervisor {
            Some(supervisor) => self.spawn_supervised(supervisor, command, (stdout, stderr), ours, theirs)?,
            None => self.spawn_attended(command, (stdout, stderr), ours, theirs)?,
        });
        self.lines.all().push(Entry { line: Arc::clone(&line), watcher: None });
        Ok(Job { line, released: false, lines: Arc::downgrade(&self.lines), runtime: Handle::current() })
    }

    fn spawn_supervised(
        &self,
        supervisor: &Supervisor,
        command: CommandLine,
        (stdout, stderr): (Stdio, Stdio),
        ours: UnixStream,
        theirs: BlockingStream,
    ) -> io::Result<Line> {
        let child = Command::new(&supervisor.program)
            .arg0("pith-supervisor")
            .arg(&supervisor.argument)
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
        // The supervisor reports over the line; as a dropped child it is reaped by the runtime.
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
        let entries = std::mem::take(&mut *self.lines.all());
        let lines = entries.iter().map(|entry| &entry.line);
        let ending: Vec<_> = lines.filter(|line| self.leftovers == Leftovers::End || !line.has_exited()).collect();
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
        self.lines.all().iter().filter(|entry| !entry.line.is_over()).count()
    }
}

impl Lines {
    /// Closes a line as soon as nothing is left behind it, and with it the descriptor it takes.
    fn close_when_over(self: Arc<Self>, line: &Arc<Line>, runtime: &Handle) {
        if line.is_over() {
            return self.remove(line);
        }
        let mut all = self.all();
        let Some(entry) = all.iter_mut().find(|entry| Arc::ptr_eq(&entry.line, line)) else { return };
        let (lines, line) = (Arc::downgrade(&self), Arc::clone(line));
        let watcher = runtime.spawn(async move {
            line.gone().await;
            if let Some(lines) = lines.upgrade() {
                lines.remove(&line);
            }
        });
        entry.watcher = Some(AbortOnDrop(watcher.abort_handle()));
    }

    fn remove(&self, line: &Arc<Line>) {
        self.all().retain(|entry| !Arc::ptr_eq(&entry.line, line));
    }

    fn all(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(lines) = self.lines.upgrade() {
            lines.close_when_over(&self.line, &self.runtime);
        }
    }
}
