//! A program under test: what was written to it, and every line it wrote.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::home::TempHome;

/// How often the end of the program is looked for.
const TICK: Duration = Duration::from_millis(5);

/// How much of stderr is kept to explain a failure.
const STDERR_KEPT: usize = 4096;

/// A running program. Dropping it kills its process group.
pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Seen>,
    patience: Duration,
}

/// What the threads that read the program's streams have found.
#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Lines of stdout; one that is no JSON is a string.
    frames: Vec<Value>,
    is_stdout_closed: bool,
    stderr: String,
}

impl Peer {
    /// Starts the program in a home of its own; of the environment it gets what finds programs, and the agent
    /// directory under the names that agents know.
    pub(crate) fn start(
        command: &[String],
        dialect: &str,
        home: &TempHome,
        patience: Duration,
    ) -> Result<Peer, String> {
        let (program, arguments) = command.split_first().ok_or("no program to test")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(home.environment()).current_dir(home.work());
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        for name in ["PI_CODING_AGENT_DIR", "PITH_AGENT_DIR"] {
            command.env(name, home.agent());
        }
        command.env("PITH_DIALECT", dialect);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let seen = Arc::new(Seen::default());
        if let Some(stdout) = child.stdout.take() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || seen.read_stdout(stdout));
        }
        if let Some(stderr) = child.stderr.take() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || seen.read_stderr(stderr));
        }
        let stdin = child.stdin.take();
        Ok(Peer { child, stdin, seen, patience })
    }

    /// Writes bytes. Scenarios are small, so the pipe takes them at once. A program that has ended is noticed by the
    /// answer that does not come, whether it ended before this or after.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("stdin is closed already")?;
        match stdin.write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => {
                written.map_err(|error| format!("the program cannot be written to: {error}{}", self.last_words()))
            }
        }
    }

    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the first frame from `start` on that fits; returns its index. `None` if none comes.
    pub(crate) fn find(&self, start: usize, mut fits: impl FnMut(&Value) -> bool) -> Option<usize> {
        let deadline = Instant::now() + self.patience;
        let mut next = start;
        let mut state = self.seen.lock();
        loop {
            if let Some(found) = (next..state.frames.len()).find(|index| fits(&state.frames[*index])) {
                return Some(found);
            }
            next = next.max(state.frames.len());
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.is_stdout_closed {
                return None;
            }
            state = self.seen.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn frames(&self) -> Vec<Value> {
        self.seen.lock().frames.clone()
    }

    /// Waits for the end of the program and of its output.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + self.patience;
        loop {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            match ended {
                Some(status) if self.seen.lock().is_stdout_closed => return Ok(status),
                _ if Instant::now() >= deadline => return Err("it did not end after its stdin was closed".to_owned()),
                _ => thread::sleep(TICK),
            }
        }
    }

    /// Returns the last line of stderr, as an end of an explanation.
    pub(crate) fn last_words(&self) -> String {
        let state = self.seen.lock();
        let last = state.stderr.trim_end().lines().next_back();
        last.map_or_else(String::new, |line| format!(" (stderr: {line})"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // What it has left running has its group, if it has not made one of its own.
            kill_process_group(pid, Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}

impl Seen {
    fn read_stdout(&self, stdout: impl Read) {
        // LF alone ends a record.
        for line in BufReader::new(stdout).split(b'\n').map_while(io::Result::ok) {
            let frame = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
            self.lock().frames.push(frame);
            self.changed.notify_all();
        }
        self.lock().is_stdout_closed = true;
        self.changed.notify_all();
    }

    fn read_stderr(&self, mut stderr: impl Read) {
        let mut chunk = [0; 1024];
        while let Ok(length @ 1..) = stderr.read(&mut chunk) {
            let mut state = self.lock();
            state.stderr.push_str(&String::from_utf8_lossy(&chunk[..length]));
            if state.stderr.len() > STDERR_KEPT {
                let rest = state.stderr.chars().rev().take(STDERR_KEPT / 2).collect::<Vec<_>>();
                state.stderr = rest.into_iter().rev().collect();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
