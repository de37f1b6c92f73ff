//! Child processes of extensions.
//!
//! Each child has a thread that waits for it and one per pipe; they send messages to the engine. Standard output of the
//! agent carries the protocol, so a child that inherits it writes to standard error instead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rquickjs::function::Func;
use rquickjs::{Ctx, IntoJs, Object, Value};
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, waitid};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::errno::Failure;
use super::fs::Descriptors;
use super::sys::{signal, signal_name};
use super::text::Text;
use crate::config::{Launched, Launcher};
use crate::engine::inbox::{Inbox, Payload, ToEngine};
use crate::engine::{State, throw};
use crate::shared::lock;

const STACK: usize = 128 << 10;
/// How long to wait for output that is left in a pipe after its process has ended.
const DRAIN_TIME: Duration = Duration::from_millis(250);
/// The time between asking a launched program to end and killing it.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How much output of one stream is collected; more is read and dropped.
pub(super) const MAX_COLLECTED: usize = 64 << 20;

/// How a child is to be started.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpawnRequest {
    pub command: String,
    pub args: Vec<String>,
    pub cwd: String,
    pub env: Option<HashMap<String, String>>,
    pub stdio: Vec<String>,
    pub detached: bool,
    pub argv0: Option<String>,
    /// Operations that receive the output.
    stdout: Option<u64>,
    stderr: Option<u64>,
    /// Base64, for the synchronous form.
    pub input: Option<String>,
    pub timeout: Option<f64>,
    pub max_buffer: Option<f64>,
    pub kill_signal: Option<String>,
}

/// The running children, by the operation that waits for them.
pub struct Children {
    inbox: Inbox,
    launcher: Option<Arc<dyn Launcher>>,
    running: RefCell<HashMap<u64, RunningChild>>,
}

struct RunningChild {
    target: Target,
    /// Bytes for standard input; dropping it closes the pipe.
    stdin: Option<Sender<Vec<u8>>>,
    /// Whether it ends with the engine.
    ends_with_engine: bool,
}

/// Where signals go.
enum Target {
    /// `None` once the process has been reaped: its number may belong to another.
    Process(Arc<Mutex<Option<Pid>>>),
    /// Dropped by the thread that waits for it.
    Launched(Weak<dyn Launched>),
}

impl Target {
    fn signal(&self, name: &str) -> bool {
        match self {
            Target::Process(pid) => {
                // The lock keeps the process from being reaped, and its number reused, in between.
                let pid = lock(pid);
                match (*pid, signal(name)) {
                    (Some(pid), Some(signal)) => kill_process(pid, signal).is_ok(),
                    _ => false,
                }
            }
            Target::Launched(launched) => launched.upgrade().is_some_and(|launched| {
                launched.end(if name == "SIGKILL" { Duration::ZERO } else { TERM_GRACE });
                true
            }),
        }
    }

    fn is_alive(&self) -> bool {
        match self {
            Target::Process(pid) => lock(pid).is_some(),
            Target::Launched(launched) => launched.strong_count() > 0,
        }
    }
}

impl Children {
    /// Creates an empty set.
    pub fn new(inbox: Inbox, launcher: Option<Arc<dyn Launcher>>) -> Self {
        Children { inbox, launcher, running: RefCell::default() }
    }

    fn spawn(&self, op: u64, start: &SpawnRequest, open: &Descriptors) -> Result<u32, Failure> {
        let mut command = command(start, open).map_err(|error| Failure::new(&error, "spawn", None))?;
        let mut child = command.spawn().map_err(|error| Failure::new(&error, "spawn", Some(&start.command)))?;
        let id = child.id();
        let stdin = child.stdin.take().map(|pipe| self.feed(pipe));
        for (pipe, op) in [
            (child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), start.stdout),
            (child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>), start.stderr),
        ] {
            if let (Some(pipe), Some(op)) = (pipe, op) {
                self.forward(pipe, op);
            }
        }
        let pid = Arc::new(Mutex::new(Pid::from_raw(id.cast_signed())));
        self.keep(op, RunningChild { target: Target::Process(pid.clone()), stdin, ends_with_engine: false });
        let inbox = self.inbox.clone();
        thread(move || {
            let status = reap(&mut child, &pid);
            let _ = inbox.send(ToEngine::Settle { op, outcome: Ok(Payload::json(&ended(status))) });
        });
        Ok(id)
    }

    /// `pi.exec`: collects the whole output until the process itself has ended.
    fn run(&self, op: u64, start: &SpawnRequest, open: &Descriptors) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new(&error, "spawn", Some(&start.command));
        let (target, stdout, stderr, wait) = match &self.launcher {
            Some(launcher) => launch(&**launcher, start).map_err(failed)?,
            None => {
                let mut command = command(start, open).map_err(|error| Failure::new(&error, "spawn", None))?;
                child(command.spawn().map_err(failed)?)
            }
        };
        self.keep(op, RunningChild { target, stdin: None, ends_with_engine: true });
        let (inbox, command) = (self.inbox.clone(), start.command.clone());
        thread(move || {
            let stdout = Collected::start(stdout, MAX_COLLECTED);
            let stderr = Collected::start(stderr, MAX_COLLECTED);
            let outcome = wait().map(|mut result| {
                let text = |collected: Collected| String::from_utf8_lossy(&collected.take(DRAIN_TIME)).into_owned();
                result["stdout"] = json!(text(stdout));
                result["stderr"] = json!(text(stderr));
                Payload::json(&result)
            });
            let outcome = outcome.map_err(|error| Failure::new(&error, "spawn", Some(&command)).message.into());
            let _ = inbox.send(ToEngine::Settle { op, outcome });
        });
        Ok(())
    }

    fn keep(&self, op: u64, child: RunningChild) {
        let mut running = self.running.borrow_mut();
        running.retain(|_, child| child.target.is_alive());
        running.insert(op, child);
    }

    fn feed(&self, mut pipe: ChildStdin) -> Sender<Vec<u8>> {
        let (sender, bytes) = mpsc::channel::<Vec<u8>>();
        thread(move || {
            for chunk in bytes {
                if pipe.write_all(&chunk).is_err() {
                    break;
                }
            }
        });
        sender
    }

    fn forward(&self, mut pipe: Box<dyn Read + Send>, op: u64) {
        let inbox = self.inbox.clone();
        thread(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        let payload = Payload::Bytes(buffer[..count].to_vec());
                        if inbox.send(ToEngine::Push { op, payload }).is_err() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = inbox.send(ToEngine::Settle { op, outcome: Ok(Payload::Nothing) });
        });
    }

    fn kill(&self, op: u64, name: &str) -> bool {
        self.running.borrow().get(&op).is_some_and(|child| child.target.signal(name))
    }

    fn write(&self, op: u64, bytes: Vec<u8>) -> bool {
        let running = self.running.borrow();
        running.get(&op).and_then(|child| child.stdin.as_ref()).is_some_and(|stdin| stdin.send(bytes).is_ok())
    }

    fn close_stdin(&self, op: u64) {
        if let Some(child) = self.running.borrow_mut().get_mut(&op) {
            child.stdin = None;
        }
    }

    /// Called when the engine ends: children of `pi.exec` are ended, others may stay.
    pub fn close(&self) {
        for (_, child) in self.running.borrow_mut().drain() {
            if child.ends_with_engine {
                child.target.signal("SIGTERM");
            }
        }
    }
}

/// A started program: the target for signals, its output, and a function that waits for its end.
type Program =
    (Target, Option<Box<dyn Read + Send>>, Option<Box<dyn Read + Send>>, Box<dyn FnOnce() -> io::Result<Json> + Send>);

fn child(mut child: Child) -> Program {
    let pid = Arc::new(Mutex::new(Pid::from_raw(child.id().cast_signed())));
    let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let target = Target::Process(pid.clone());
    (target, stdout, stderr, Box::new(move || Ok(ended(reap(&mut child, &pid)))))
}

fn launch(launcher: &dyn Launcher, start: &SpawnRequest) -> io::Result<Program> {
    let ((stdout, to_stdout), (stderr, to_stderr)) = (io::pipe()?, io::pipe()?);
    let cwd = Path::new(&start.cwd);
    let launched = launcher.launch(&start.command, &start.args, cwd, to_stdout.into(), to_stderr.into())?;
    let launched: Arc<dyn Launched> = Arc::from(launched);
    let target = Target::Launched(Arc::downgrade(&launched));
    let wait = move || launched.wait().map(|code| json!({ "code": code, "signal": null }));
    Ok((target, Some(Box::new(stdout)), Some(Box::new(stderr)), Box::new(wait)))
}

/// Waits for the end without reaping, so that the number stays valid until it is marked as gone.
pub(super) fn reap(child: &mut Child, pid: &Mutex<Option<Pid>>) -> io::Result<ExitStatus> {
    let target = *lock(pid);
    if let Some(target) = target {
        while let Err(rustix::io::Errno::INTR) =
            waitid(WaitId::Pid(target), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {}
    }
    let mut gone = lock(pid);
    *gone = None;
    child.wait()
}

pub(super) fn ended(status: io::Result<ExitStatus>) -> Json {
    match status {
        Ok(status) => json!({ "code": status.code(), "signal": status.signal().map(signal_name) }),
        Err(_) => json!({ "code": null, "signal": null }),
    }
}

/// The output of one pipe, collected by a thread.
pub(super) struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Closed when the pipe is.
    end: mpsc::Receiver<()>,
}

impl Collected {
    pub fn start(pipe: Option<impl Read + Send + 'static>, limit: usize) -> Collected {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (done, end) = mpsc::channel();
        if let Some(mut pipe) = pipe {
            let bytes = bytes.clone();
            thread(move || {
                let _done = done;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    match pipe.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(count) => {
                            let mut bytes = lock(&bytes);
                            let room = limit.saturating_sub(bytes.len()).min(count);
                            bytes.extend_from_slice(&buffer[..room]);
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
            });
        }
        Collected { bytes, end }
    }

    /// Whether more than `limit` has arrived.
    pub fn exceeds(&self, limit: usize) -> bool {
        lock(&self.bytes).len() > limit
    }

    /// Returns the output so far, once the pipe is closed or the limit is over.
    pub fn take(self, limit: Duration) -> Vec<u8> {
        // Nothing is ever sent: the channel closes with the pipe.
        let _ = self.end.recv_timeout(limit);
        std::mem::take(&mut lock(&self.bytes))
    }
}

pub(super) fn thread(work: impl FnOnce() + Send + 'static) {
    let builder = std::thread::Builder::new().name("pith-ext-child".to_owned()).stack_size(STACK);
    // Without a thread the pipe is dropped, which the child notices.
    let _ = builder.spawn(work);
}

pub(super) fn command(start: &SpawnRequest, open: &Descriptors) -> io::Result<Command> {
    let mut command = Command::new(&start.command);
    command.args(&start.args).current_dir(&start.cwd);
    if let Some(env) = &start.env {
        command.env_clear().envs(env);
    }
    if let Some(name) = &start.argv0 {
        command.arg0(name);
    }
    if start.detached {
        command.process_group(0);
    }
    let kind = |fd: usize| start.stdio.get(fd).map_or(if fd == 0 { "ignore" } else { "pipe" }, String::as_str);
    // Standard input carries the host's commands; no child may read them.
    command.stdin(if kind(0) == "pipe" { Stdio::piped() } else { stdio(kind(0), open, true)? });
    command.stdout(stdio(kind(1), open, false)?);
    command.stderr(stdio(kind(2), open, false)?);
    Ok(command)
}

fn stdio(kind: &str, open: &Descriptors, is_input: bool) -> io::Result<Stdio> {
    if let Some(fd) = kind.strip_prefix("fd:") {
        let fd = fd.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        let file = open.get(Some(fd), "spawn").map_err(|failure| io::Error::other(failure.message.into_string()))?;
        return Ok(Stdio::from(file.try_clone()?));
    }
    match (kind, is_input) {
        ("pipe", _) => Ok(Stdio::piped()),
        ("inherit", false) => Ok(Stdio::from(rustix::io::dup(rustix::stdio::stderr())?)),
        _ => Ok(Stdio::null()),
    }
}

pub(super) fn read(ctx: &Ctx<'_>, text: &str) -> rquickjs::Result<SpawnRequest> {
    crate::json::parse(text).map_err(|why| throw(ctx, "ERR_INVALID_ARG_VALUE", &why))
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "spawn",
        Func::from(move |ctx: Ctx<'js>, op: f64, start: Text| -> rquickjs::Result<Value<'js>> {
            let start = read(&ctx, &start.0)?;
            match here.children.spawn(op as u64, &start, &here.descriptors) {
                Ok(pid) => pid.into_js(&ctx),
                Err(failure) => serde_json::to_string(&failure).expect("failures serialize").into_js(&ctx),
            }
        }),
    )?;
    let here = state.clone();
    group.set(
        "run",
        Func::from(move |ctx: Ctx<'js>, op: f64, start: Text| {
            let start = read(&ctx, &start.0)?;
            let started = here.children.run(op as u64, &start, &here.descriptors);
            if let Err(failure) = started {
                let _ = here.inbox.send(ToEngine::Settle { op: op as u64, outcome: Err(failure.message.into()) });
            }
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    let here = state.clone();
    group.set("kill", Func::from(move |op: f64, name: Text| here.children.kill(op as u64, &name.0)))?;
    let here = state.clone();
    group.set(
        "write",
        Func::from(move |op: f64, bytes: String| {
            here.children.write(op as u64, STANDARD.decode(bytes).unwrap_or_default())
        }),
    )?;
    let here = state.clone();
    group.set("closeStdin", Func::from(move |op: f64| here.children.close_stdin(op as u64)))?;
    super::process_sync::install(group, state)
}
