//! The supervisor program: runs one command on behalf of pith.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::cgroup::Cgroup;
use super::channel::{Order, Report};
use super::confinement::{self, Confinement};
use super::exit::Exit;
use super::keeper::{KEEPER, keeper_main};
use super::limits::ProcessLimits;
use super::memory::Shared;
use super::processes::{Frozen, Processes};
use super::{ORPHANED_GRACE, descriptor, tree};

/// The hidden first argument that makes pith's binary a supervisor.
pub const SUPERVISOR_ARGUMENT: &str = "__supervisor";

/// How to start a supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub program: PathBuf,
    /// Makes the program call [`supervisor_main`] with the arguments that follow.
    pub argument: OsString,
}

impl Supervisor {
    /// Uses the program at that path, which must be pith.
    pub fn at(program: PathBuf) -> Self {
        Supervisor { program, argument: SUPERVISOR_ARGUMENT.into() }
    }

    /// Uses the running program, which must call [`supervisor_main`] when its first argument is
    /// [`SUPERVISOR_ARGUMENT`].
    pub fn this_program() -> io::Result<Supervisor> {
        // The kernel's own link still works after the file was replaced or removed.
        let link = PathBuf::from("/proc/self/exe");
        let program = if link.exists() { link } else { std::env::current_exe()? };
        Ok(Supervisor { program, argument: SUPERVISOR_ARGUMENT.into() })
    }
}

/// What happens to processes that outlive their command when pith ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftovers {
    End,
    Keep,
}

impl Leftovers {
    pub fn as_argument(self) -> &'static str {
        match self {
            Leftovers::End => "end",
            Leftovers::Keep => "keep",
        }
    }
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Empty,
    /// A descriptor that pith has sent over the channel.
    Sent,
}

impl Input {
    pub fn as_argument(self) -> &'static str {
        match self {
            Input::Empty => "empty",
            Input::Sent => "sent",
        }
    }
}

/// When a command starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    AtOnce,
    /// When the commands of the session, which are frozen, go on.
    Thawed,
}

impl Start {
    pub fn as_argument(self) -> &'static str {
        match self {
            Start::AtOnce => "start",
            Start::Thawed => "wait",
        }
    }
}

/// Runs a supervisor. `arguments` follow [`SUPERVISOR_ARGUMENT`]: what to do with leftover processes, whether
/// restrictions come over the channel, what the command reads, when it starts, its limits, where a cgroup is made for it,
/// the program, its arguments. A keeper has a single one.
///
/// Standard input is the channel to pith, standard output and error belong to the command.
pub fn supervisor_main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let leftovers = match arguments.next() {
        Some(word) if word == KEEPER => return keeper_main(),
        Some(word) if word == Leftovers::Keep.as_argument() => Leftovers::Keep,
        Some(_) => Leftovers::End,
        None => return ExitCode::FAILURE,
    };
    let confinement = arguments.next().and_then(|word| Confinement::of_argument(&word));
    let Some(confinement) = confinement else { return ExitCode::FAILURE };
    let is_input_sent = match arguments.next() {
        Some(word) => word == Input::Sent.as_argument(),
        None => return ExitCode::FAILURE,
    };
    let is_start_held = match arguments.next() {
        Some(word) => word == Start::Thawed.as_argument(),
        None => return ExitCode::FAILURE,
    };
    let limits = arguments.next().and_then(|word| ProcessLimits::from_argument(word.to_str()?));
    let Some(limits) = limits else { return ExitCode::FAILURE };
    let cgroup_base = arguments.next().filter(|path| !path.is_empty());
    let Some(program) = arguments.next() else { return ExitCode::FAILURE };
    let Ok(mut channel) = take_channel() else { return ExitCode::FAILURE };
    // Without the restrictions nothing may run.
    let Ok(restrictions) = confinement::receive(confinement, &mut channel) else { return ExitCode::FAILURE };
    let input = if is_input_sent { descriptor::receive(&channel).map(Stdio::from) } else { Ok(Stdio::null()) };
    let Ok(input) = input else { return ExitCode::FAILURE };
    if is_start_held && !wait_until_thawed(&mut channel) {
        Report::Exited(Exit::Signal(Signal::TERM.as_raw())).send(&channel);
        Report::Gone.send(&channel);
        return ExitCode::SUCCESS;
    }
    let cgroup = Arc::new(OnceLock::new());
    // Where none can be made, all processes are watched instead.
    if let Some(made) = cgroup_base.and_then(|base| Cgroup::create(base.as_ref(), &limits).ok()) {
        _ = cgroup.set(made);
    }
    // Whoever moves to other namespaces is at their root, and can have one thread only.
    let Ok(cwd) = std::env::current_dir() else { return ExitCode::FAILURE };
    if let Err(error) = restrictions.as_ref().map_or(Ok(()), confinement::Received::join) {
        confinement::report(&error).send(&channel);
        return give_up(&cgroup);
    }
    let shared = Shared::of_command(confinement, &limits);
    let Ok(entrance) = cgroup.get().map(Cgroup::entrance).transpose() else { return give_up(&cgroup) };
    let own_limits = if entrance.is_some() { limits.of_each() } else { limits };
    let arguments = arguments.collect();
    let command = ShellCommand { program, arguments, cwd, input, restrictions, limits: own_limits, entrance };
    lead_session();
    let (Ok(reports), Ok(watcher)) = (channel.try_clone(), channel.try_clone()) else { return ExitCode::FAILURE };
    let (tell_shell, started) = mpsc::channel();
    let exited = Arc::new(AtomicBool::new(false));
    let reaper = {
        let (exited, cgroup) = (Arc::clone(&exited), Arc::clone(&cgroup));
        // The command ends with the thread that started it, so that thread is the one which waits for it.
        thread::Builder::new().stack_size(256 * 1024).spawn(move || match command.start() {
            Ok(shell) => {
                // The output must end when the last process of the command closes it, not when the supervisor ends.
                let _ = release_output();
                let _ = tell_shell.send(shell);
                reap(shell, &exited, &cgroup, &reports);
            }
            Err(report) => report.send(&reports),
        })
    };
    match (reaper, started.recv()) {
        (Ok(_), Ok(shell)) => {
            let processes = Processes { shell, cgroup };
            match limits.watch(processes.clone(), shared, watcher) {
                Ok(()) => follow_orders(channel, &processes, leftovers, &exited),
                // A command that cannot be watched does not run.
                Err(_) => processes.kill(),
            }
        }
        _ => give_up(&cgroup),
    }
}

fn remove(cgroup: &OnceLock<Cgroup>) {
    if let Some(cgroup) = cgroup.get() {
        cgroup.remove();
    }
}

/// Ends a supervisor whose command could not be started.
fn give_up(cgroup: &OnceLock<Cgroup>) -> ExitCode {
    remove(cgroup);
    ExitCode::FAILURE
}

/// Waits until the command may start; `false` if it has been ended before.
fn wait_until_thawed(channel: &mut UnixStream) -> bool {
    loop {
        match Order::read(channel) {
            Ok(Some(Order::Thaw)) => return true,
            Ok(Some(Order::Freeze)) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Some(Order::End { .. }) | None) | Err(_) => return false,
        }
    }
}

/// The command of a supervisor.
struct ShellCommand {
    program: OsString,
    arguments: Vec<OsString>,
    cwd: PathBuf,
    input: Stdio,
    restrictions: Option<confinement::Received>,
    limits: ProcessLimits,
    /// How it gets into its cgroup.
    entrance: Option<File>,
}

impl ShellCommand {
    /// Confines the calling thread, if it is to be, and starts the command from it, which is confined then too.
    fn start(self) -> Result<Pid, Report> {
        if let Some(restrictions) = self.restrictions {
            restrictions.enforce().map_err(|error| confinement::report(&error))?;
        }
        start(self.program, self.arguments, self.cwd, self.input, self.limits, self.entrance)
            .map_err(|error| Report::Failed(error.raw_os_error().unwrap_or(0)))
    }
}

pub(super) fn take_channel() -> io::Result<UnixStream> {
    let channel = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    Ok(UnixStream::from(channel))
}

/// Leaves pith's terminal and process group, and becomes the parent of all later orphans.
fn lead_session() {
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

fn start(
    program: OsString,
    arguments: Vec<OsString>,
    cwd: PathBuf,
    input: Stdio,
    limits: ProcessLimits,
    entrance: Option<File>,
) -> io::Result<Pid> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(cwd).stdin(input).process_group(0);
    #[allow(unsafe_code)]
    // SAFETY: the closure runs between fork and exec and makes system calls; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if let Some(entrance) = &entrance {
                rustix::io::write(entrance, b"0")?;
            }
            limits.apply()
        });
    }
    Ok(Pid::from_child(&command.spawn()?))
}

fn release_output() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Reaps every child, the command and adopted orphans alike, and ends the process after the last one.
fn reap(shell: Pid, exited: &AtomicBool, cgroup: &OnceLock<Cgroup>, channel: &UnixStream) {
    let mut last_words = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == shell => {
                exited.store(true, Ordering::SeqCst);
                // The kernel may have ended it for a limit.
                if let Some(exceeded) = cgroup.get().and_then(Cgroup::exceeded) {
                    Report::Limited(exceeded).send(channel);
                }
                let report = Report::Exited(exit(status));
                // With nothing left both reports go together: pith must not blame the command for what comes after.
                if cfg!(target_os = "linux") && nothing_is_left() {
                    last_words.push(report);
                    break;
                }
                report.send(channel);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // Where orphans go to init instead, only the process group can be watched.
    while !cfg!(target_os = "linux") && tree::group_is_alive(shell) {
        thread::sleep(Duration::from_millis(200));
    }
    remove(cgroup);
    last_words.push(Report::Gone);
    Report::send_all(&last_words, channel);
    std::process::exit(0);
}

/// Reaps what has ended, and returns whether no child is left.
fn nothing_is_left() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    status.terminating_signal().map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal)
}

/// Follows orders until the channel closes. Never returns: the reaper ends the process.
fn follow_orders(mut channel: UnixStream, processes: &Processes, leftovers: Leftovers, exited: &AtomicBool) -> ! {
    let mut deadline: Option<Instant> = None;
    let mut frozen: Option<Frozen> = None;
    loop {
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // The socket refuses a timeout of zero, which also means that the time is up.
        if remaining.is_some_and(|remaining| remaining.is_zero()) || channel.set_read_timeout(remaining).is_err() {
            processes.kill();
        }
        match Order::read(&mut channel) {
            Ok(Some(Order::End { grace })) => {
                processes.signal(Signal::TERM);
                processes.thaw(frozen.take());
                let new = Instant::now() + grace;
                deadline = Some(deadline.map_or(new, |old| old.min(new)));
            }
            Ok(Some(Order::Freeze)) => frozen = Some(processes.freeze()),
            Ok(Some(Order::Thaw)) => processes.thaw(frozen.take()),
            Ok(None) if leftovers == Leftovers::Keep && exited.load(Ordering::SeqCst) => std::process::exit(0),
            Ok(None) => {
                processes.signal(Signal::TERM);
                processes.thaw(frozen.take());
                thread::sleep(remaining.unwrap_or(ORPHANED_GRACE).min(ORPHANED_GRACE));
                processes.kill();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => processes.kill(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => processes.kill(),
        }
    }
}
