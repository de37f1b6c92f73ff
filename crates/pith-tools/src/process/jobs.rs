//! The commands of one session: starting them, and ending all of them.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pith_sandbox::confine::Restrictions;
use pith_sandbox::watch::CommandWatch;
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::ABORT_GRACE;
use super::channel::{Channel, Order, nonblocking};
use super::confinement::{self, Confinement};
use super::descriptor;
use super::exit::Exit;
use super::fallback::supervise;
use super::limits::{Exceeded, ProcessLimits};
use super::namespaces::CommandNamespaces;
use super::supervisor::{Input, Leftovers, Start, Supervisor};

/// A pipe this large saves a busy command most of its waiting.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;
/// How long after SIGKILL to wait for a process that may be stuck in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// A command to run.
#[derive(Clone, Debug)]
pub struct CommandLine {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What the command is confined to.
    pub confinement: Option<CommandConfinement>,
}

/// What a command is confined to.
#[derive(Clone, Debug)]
pub struct CommandConfinement {
    pub restrictions: Arc<Restrictions>,
    /// Guards the protected paths that no mount holds, for as long as a process of the command lives.
    pub watch: Option<CommandWatch>,
    /// What the command runs in.
    pub namespaces: Option<CommandNamespaces>,
}

impl CommandLine {
    /// The same command, confined.
    pub(crate) fn confined_to(self, confinement: Option<CommandConfinement>) -> CommandLine {
        CommandLine { confinement, ..self }
    }
}

/// Every command of a session that may still have processes.
pub struct Jobs {
    supervisor: Option<Supervisor>,
    leftovers: Leftovers,
    /// Shared with the commands, which remove themselves when nothing is left of them.
    channels: Arc<Channels>,
    /// Tells those who follow a command whether it is frozen.
    frozen: watch::Sender<bool>,
}

/// The channels to all supervisors that may still have processes.
#[derive(Default)]
struct Channels(Mutex<Vec<Entry>>);

struct Entry {
    /// The last argument: the text of a shell command.
    command: String,
    /// Dropping the channel ends the processes behind it.
    channel: Arc<Channel>,
    /// Waits for the end of processes that a finished command left running.
    watcher: Option<AbortOnDrop>,
    /// Protected paths are guarded until nothing of the command is left.
    confinement: Option<CommandConfinement>,
}

/// Aborts the task when its owner is dropped, so that the task does not keep the channel open.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A command that was just started.
pub struct Running {
    pub job: Job,
    /// Standard output and error in the order in which they were written.
    pub output: pipe::Receiver,
}

/// A command that was just started and talks over pipes.
pub struct Piped {
    pub job: Job,
    /// Closing it ends the command's input.
    pub input: pipe::Sender,
    pub output: pipe::Receiver,
    pub errors: pipe::Receiver,
}

/// What a command reads and where it writes.
struct Streams {
    /// Empty input if `None`.
    input: Option<OwnedFd>,
    output: Stdio,
    errors: Stdio,
}

/// A running command. It is killed if it is dropped without [`Job::release`].
pub struct Job {
    channel: Arc<Channel>,
    released: bool,
    /// Dropped when the session has ended.
    channels: Weak<Channels>,
    /// Whether the commands of the session are frozen.
    frozen: watch::Receiver<bool>,
    /// The runtime that reads the channel; a job may be dropped on another thread.
    runtime: Handle,
}

impl Jobs {
    /// `keep_background` lets processes that outlive their command also outlive pith.
    pub fn new(supervisor: Option<Supervisor>, keep_background: bool) -> Self {
        let leftovers = if keep_background { Leftovers::Keep } else { Leftovers::End };
        Jobs { supervisor, leftovers, channels: Arc::default(), frozen: watch::Sender::default() }
    }

    /// Starts a command in a session of its own, with empty input. Needs a tokio runtime.
    pub fn spawn(&self, command: CommandLine) -> io::Result<Running> {
        self.spawn_limited(command, ProcessLimits::default())
    }

    /// Like [`Jobs::spawn`], for a command whose processes may use only so much.
    pub fn spawn_limited(&self, command: CommandLine, limits: ProcessLimits) -> io::Result<Running> {
        let (reader, writer) = io::pipe()?;
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_SIZE);
        let (output, errors) = (Stdio::from(writer.try_clone()?), Stdio::from(writer));
        let job = self.spawn_with(command, Streams { input: None, output, errors }, limits)?;
        Ok(Running { job, output: pipe::Receiver::from_owned_fd(OwnedFd::from(reader))? })
    }

    /// Like [`Jobs::spawn`], but writes output and errors where the caller wants them.
    pub fn spawn_to(&self, command: CommandLine, stdout: Stdio, stderr: Stdio) -> io::Result<Job> {
        let streams = Streams { input: None, output: stdout, errors: stderr };
        self.spawn_with(command, streams, ProcessLimits::default())
    }

    /// Like [`Jobs::spawn`], but with a pipe for each of input, output and errors.
    pub fn spawn_piped(&self, command: CommandLine) -> io::Result<Piped> {
        let (input, to_input) = io::pipe()?;
        let (from_output, output) = io::pipe()?;
        let (from_errors, errors) = io::pipe()?;
        let streams = Streams { input: Some(input.into()), output: output.into(), errors: errors.into() };
        Ok(Piped {
            job: self.spawn_with(command, streams, ProcessLimits::default())?,
            input: pipe::Sender::from_owned_fd(to_input.into())?,
            output: pipe::Receiver::from_owned_fd(from_output.into())?,
            errors: pipe::Receiver::from_owned_fd(from_errors.into())?,
        })
    }

    fn spawn_with(&self, command: CommandLine, streams: Streams, limits: ProcessLimits) -> io::Result<Job> {
        let (mut ours, theirs) = BlockingStream::pair()?;
        let confinement = command.confinement.clone();
        let last = command.arguments.last().map_or(command.program.as_os_str(), OsString::as_os_str);
        let text = last.to_string_lossy().into_owned();
        // They wait in the socket until the supervisor reads them.
        if let Some(confinement) = &confinement {
            confinement::send(confinement, &mut ours)?;
        }
        let start = if *self.frozen.borrow() { Start::Thawed } else { Start::AtOnce };
        let channel = Arc::new(match &self.supervisor {
            Some(supervisor) => self.spawn_supervised(supervisor, command, streams, (limits, start), (ours, theirs))?,
            None if !limits.is_empty() => return Err(confinement::unlimited()),
            None => self.spawn_with_fallback(command, streams, ours, theirs)?,
        });
        let watch = confinement.as_ref().and_then(|confinement| confinement.watch.clone());
        let mut all = self.channels.all();
        all.push(Entry { command: text, channel: Arc::clone(&channel), watcher: None, confinement });
        // Whoever freezes or thaws later finds it in the list.
        match (*self.frozen.borrow(), start) {
            (true, _) => channel.order(Order::Freeze),
            (false, Start::Thawed) => channel.order(Order::Thaw),
            (false, Start::AtOnce) => {}
        }
        drop(all);
        // What it changed before it was in the list could not end it.
        if watch.is_some_and(|watch| watch.knows_change()) {
            channel.end(ABORT_GRACE);
        }
        let (channels, frozen) = (Arc::downgrade(&self.channels), self.frozen.subscribe());
        Ok(Job { channel, released: false, channels, frozen, runtime: Handle::current() })
    }

    fn spawn_supervised(
        &self,
        supervisor: &Supervisor,
        command: CommandLine,
        streams: Streams,
        (limits, start): (ProcessLimits, Start),
        (ours, theirs): (BlockingStream, BlockingStream),
    ) -> io::Result<Channel> {
        let input = if streams.input.is_some() { Input::Sent } else { Input::Empty };
        // The descriptor waits in the socket until the supervisor reads it.
        streams.input.map_or(Ok(()), |input| descriptor::send(&ours, input.as_fd()))?;
        let child = Command::new(&supervisor.program)
            .arg0("pith-supervisor")
            .arg(&supervisor.argument)
            .arg(self.leftovers.as_argument())
            .arg(Confinement::of(command.confinement.as_ref()).as_argument())
            .arg(input.as_argument())
            .arg(start.as_argument())
            .arg(limits.as_argument())
            .arg(limits.cgroup_directory().unwrap_or_default())
            .arg(command.program)
            .args(command.arguments)
            .current_dir(command.cwd)
            .env_clear()
            .envs(command.environment)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(streams.output)
            .stderr(streams.errors)
            .spawn()?;
        // The supervisor reports over the channel; as a dropped child it is reaped by the runtime.
        Ok(Channel::new(nonblocking(ours)?, child.id().and_then(|id| Pid::from_raw(id.cast_signed()))))
    }

    fn spawn_with_fallback(
        &self,
        command: CommandLine,
        streams: Streams,
        ours: BlockingStream,
        theirs: BlockingStream,
    ) -> io::Result<Channel> {
        if command.confinement.is_some() {
            return Err(confinement::without_supervisor());
        }
        let child = Command::new(command.program)
            .args(command.arguments)
            .current_dir(command.cwd)
            .env_clear()
            .envs(command.environment)
            .process_group(0)
            .stdin(streams.input.map_or_else(Stdio::null, Stdio::from))
            .stdout(streams.output)
            .stderr(streams.errors)
            .spawn()?;
        // Owned by the channel: the task ends when the channel is closed and the command has ended.
        tokio::spawn(supervise(child, nonblocking(theirs)?, self.leftovers));
        Ok(Channel::new(nonblocking(ours)?, None))
    }

    /// Ends every command, and what finished ones left running unless that is to be kept.
    pub async fn shutdown_all(&self, grace: Duration) {
        let entries = std::mem::take(&mut *self.channels.all());
        let channels = entries.iter().map(|entry| &entry.channel);
        let ending: Vec<_> =
            channels.filter(|channel| self.leftovers == Leftovers::End || !channel.has_exited()).collect();
        for channel in &ending {
            channel.end(grace);
        }
        let deadline = Instant::now() + grace + KILL_TIMEOUT;
        for channel in ending {
            let _ = timeout_at(deadline, channel.gone()).await;
        }
    }

    /// Begins to end every command that is confined, without waiting for it.
    pub fn end_confined(&self, grace: Duration) {
        for entry in self.channels.all().iter().filter(|entry| entry.confinement.is_some()) {
            entry.channel.end(grace);
        }
    }

    /// Stops the processes of every command until [`Jobs::thaw`], and lets no other command begin.
    pub fn freeze(&self) {
        self.set_frozen(true);
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.set_frozen(false);
    }

    fn set_frozen(&self, is_frozen: bool) {
        let order = if is_frozen { Order::Freeze } else { Order::Thaw };
        let all = self.channels.all();
        self.frozen.send_replace(is_frozen);
        all.iter().for_each(|entry| entry.channel.order(order));
    }

    /// Returns the commands that still have processes, as they were given.
    pub fn running(&self) -> Vec<String> {
        let all = self.channels.all();
        all.iter().filter(|entry| !entry.channel.is_over()).map(|entry| entry.command.clone()).collect()
    }

    /// Returns how many commands still have processes.
    pub fn count(&self) -> usize {
        self.channels.all().iter().filter(|entry| !entry.channel.is_over()).count()
    }
}

impl Channels {
    /// Closes a channel, and with it its descriptor, as soon as nothing is left behind it.
    fn close_when_over(self: Arc<Self>, channel: &Arc<Channel>, runtime: &Handle) {
        if channel.is_over() {
            return self.remove(channel);
        }
        let mut all = self.all();
        let Some(entry) = all.iter_mut().find(|entry| Arc::ptr_eq(&entry.channel, channel)) else { return };
        let (channels, channel) = (Arc::downgrade(&self), Arc::clone(channel));
        let watcher = runtime.spawn(async move {
            channel.gone().await;
            if let Some(channels) = channels.upgrade() {
                channels.remove(&channel);
            }
        });
        entry.watcher = Some(AbortOnDrop(watcher.abort_handle()));
    }

    fn remove(&self, channel: &Arc<Channel>) {
        let mut all = self.all();
        let removed: Vec<Entry> = all.extract_if(.., |entry| Arc::ptr_eq(&entry.channel, channel)).collect();
        drop(all);
        // A watch that ends looks a last time, and may then end other commands.
        drop(removed);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Waits for the end of the command itself.
    pub async fn exited(&self) -> io::Result<Exit> {
        self.channel.exited().await
    }

    /// Sends SIGTERM to the command and everything it started, SIGKILL after `grace`.
    pub fn end(&self, grace: Duration) {
        self.channel.end(grace);
    }

    /// Returns the limit that the command has passed, if it has.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.channel.exceeded()
    }

    /// Tells whether the command is frozen.
    pub fn frozen(&self) -> watch::Receiver<bool> {
        let mut frozen = self.frozen.clone();
        if *frozen.borrow() {
            // That it began so is news to whoever follows it.
            frozen.mark_changed();
        }
        frozen
    }

    /// Waits until nothing of the command is left.
    pub async fn gone(&self) {
        self.channel.gone().await;
    }

    /// Marks the command as done; what it left in the background stays with its [`Jobs`].
    pub fn release(mut self) {
        self.released = true;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.released {
            self.channel.end(Duration::ZERO);
        }
        if let Some(channels) = self.channels.upgrade() {
            channels.close_when_over(&self.channel, &self.runtime);
        }
    }
}
