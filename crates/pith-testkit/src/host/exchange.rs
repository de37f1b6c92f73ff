//! What has been read from a host, shared between the reading threads and the test.

use std::fmt::Write;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::schema::{self, Dialect};

/// How many characters of a line a failure shows.
const SHOWN: usize = 600;

/// Bytes of a frame that is always held against the protocol. Larger ones are few kinds in great number, and tests
/// that send them are about other things.
const LARGE: usize = 1 << 14;

/// One line of stdout.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The bytes without the newline.
    pub line: Vec<u8>,
    /// Its value, or the text as a string if it is not JSON.
    pub value: Value,
}

pub(super) struct Exchange {
    /// The schema that every line is held against.
    dialect: Option<Dialect>,
    state: Mutex<State>,
    /// Signalled on every change of the state.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    frames: Vec<Frame>,
    n_bytes: usize,
    stderr: String,
    /// Whether stderr is at its end.
    is_silent: bool,
    /// Whether stdout is at its end.
    is_finished: bool,
    /// Whether the reader waits before its next read.
    is_stalled: bool,
    /// Whether the reader closes the pipe instead of reading on.
    has_hung_up: bool,
    exit: Option<i32>,
    /// What was wrong with the first frame that is none.
    problem: Option<String>,
}

impl Exchange {
    pub(super) fn new(dialect: Option<Dialect>) -> Self {
        Exchange { dialect, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What was wrong with the first frame that is none.
    pub(super) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    pub(super) fn read_stdout(self: &Arc<Self>, mut stdout: impl Read + Send + 'static) {
        let exchange = Arc::clone(self);
        thread::spawn(move || {
            let mut partial = Vec::new();
            let mut chunk = vec![0; 1 << 16];
            loop {
                let has_hung_up = exchange.wait(None, |state| (!state.is_stalled).then_some(state.has_hung_up));
                if has_hung_up == Some(true) {
                    break;
                }
                let length = match stdout.read(&mut chunk) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => length,
                };
                exchange.take(&chunk[..length], &mut partial);
            }
            drop(stdout);
            let mut state = exchange.lock();
            if !partial.is_empty() {
                state.frames.push(Frame::new(partial));
            }
            state.is_finished = true;
            exchange.changed.notify_all();
        });
    }

    fn take(&self, bytes: &[u8], partial: &mut Vec<u8>) {
        let mut frames = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            partial.extend_from_slice(line);
            if lines.peek().is_some() {
                frames.push(Frame::new(std::mem::take(partial)));
            }
        }
        let problem = self.dialect.and_then(|dialect| frames.iter().find_map(|frame: &Frame| frame.problem(dialect)));
        let mut state = self.lock();
        state.problem = state.problem.take().or(problem);
        state.n_bytes += bytes.len();
        state.frames.extend(frames);
        self.changed.notify_all();
    }

    pub(super) fn read_stderr(self: &Arc<Self>, mut stderr: impl Read + Send + 'static) {
        let exchange = Arc::clone(self);
        thread::spawn(move || {
            let mut chunk = vec![0; 1 << 12];
            while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                exchange.lock().stderr.push_str(&String::from_utf8_lossy(&chunk[..length]));
                exchange.changed.notify_all();
            }
            exchange.lock().is_silent = true;
            exchange.changed.notify_all();
        });
    }

    pub(super) fn exited(&self, status: io::Result<ExitStatus>) {
        let code = status
            .map_or(-1, |status| status.code().unwrap_or_else(|| -status.signal().expect("no code means a signal")));
        self.ended(code);
    }

    pub(super) fn ended(&self, code: i32) {
        self.lock().exit = Some(code);
        self.changed.notify_all();
    }

    pub(super) fn set_stalled(&self, stalled: bool) {
        self.lock().is_stalled = stalled;
        self.changed.notify_all();
    }

    pub(super) fn hang_up(&self) {
        self.lock().has_hung_up = true;
        self.changed.notify_all();
    }

    /// Waits for the first frame at or after `start` that `wanted` accepts, if it comes in time.
    pub(super) fn find(
        &self,
        start: usize,
        timeout: Duration,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Option<(usize, Frame)> {
        let mut next = start;
        self.wait(Some(timeout), |state| {
            while let Some(frame) = state.frames.get(next) {
                if wanted(frame) {
                    return Some(Some((next, frame.clone())));
                }
                next += 1;
            }
            state.is_finished.then_some(None)
        })?
    }

    pub(super) fn exit(&self, timeout: Duration) -> Option<i32> {
        self.wait(Some(timeout), |state| state.exit)
    }

    pub(super) fn wait_finished(&self, timeout: Duration) -> bool {
        self.wait(Some(timeout), |state| state.is_finished.then_some(())).is_some()
    }

    /// Waits for the end of stderr, which processes that outlive the program can delay.
    pub(super) fn wait_silent(&self, timeout: Duration) -> bool {
        self.wait(Some(timeout), |state| state.is_silent.then_some(())).is_some()
    }

    pub(super) fn wait_stderr(&self, timeout: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        self.wait(Some(timeout), |state| wanted(&state.stderr).then(|| state.stderr.clone()))
    }

    pub(super) fn has_exited(&self) -> bool {
        self.lock().exit.is_some()
    }

    pub(super) fn frames(&self) -> Vec<Frame> {
        self.lock().frames.clone()
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.lock().n_bytes
    }

    pub(super) fn stderr(&self) -> String {
        self.lock().stderr.clone()
    }

    /// Describes everything that was exchanged, for a failure: frames already waited for are marked.
    pub(super) fn describe(&self, cursor: usize) -> String {
        let state = self.lock();
        let mut text = format!("--- {} frames; those marked ' ' had been waited for\n", state.frames.len());
        for (index, frame) in state.frames.iter().enumerate() {
            let mark = if index < cursor { ' ' } else { '*' };
            let line = String::from_utf8_lossy(&frame.line);
            let shown: String = line.chars().take(SHOWN).collect();
            let more = if shown.len() < line.len() { " …" } else { "" };
            writeln!(text, "{mark} {shown}{more}").expect("a string takes any text");
        }
        write!(text, "--- stderr\n{}", state.stderr).expect("a string takes any text");
        text
    }

    fn wait<T>(&self, timeout: Option<Duration>, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A predicate of a failing test may panic under the lock; the record stays valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Frame {
    fn new(line: Vec<u8>) -> Self {
        let value = serde_json::from_slice(&line)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
        Frame { line, value }
    }

    /// Why it is no frame of the protocol.
    fn problem(&self, dialect: Dialect) -> Option<String> {
        if !self.value.is_object() || self.line.len() > LARGE {
            return None;
        }
        let line = String::from_utf8_lossy(&self.line);
        let problem = pith_protocol::Frame::problem(&line).or_else(|| schema::problem(&self.value, dialect));
        problem.map(|problem| format!("not a frame of the protocol: {line}\n{problem}"))
    }
}
