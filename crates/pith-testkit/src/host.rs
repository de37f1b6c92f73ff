//! Drives an agent over its stdin and stdout, as an editor would.
//!
//! One thread reads frames, one writes commands, one waits for the exit; the test waits for what it expects and, if
//! that does not come, fails with everything that did. A host started here never outlives its test.

mod builder;
mod exchange;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};
use serde_json::Value;

/// How long to wait for the end of stderr; a process that outlives the program may hold it open.
const STDERR_LIMIT: Duration = Duration::from_secs(1);

/// How long to wait for the last frames of a process that has ended; a test that stopped reading never sees them.
const STDOUT_LIMIT: Duration = Duration::from_secs(5);

use crate::home::TempHome;
use crate::process;
pub use builder::HostBuilder;
use exchange::Exchange;
pub use exchange::Frame;

/// The environment variable that every process below a host has.
pub const MARKER: &str = "PITH_TESTKIT_HOST";

/// What a session served in a thread of the test gets instead of a process.
pub struct InProcess {
    /// The program that would have been started.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub stdin: PipeReader,
    pub stdout: PipeWriter,
}

/// A running host.
pub struct Host {
    exchange: Arc<Exchange>,
    /// Bytes for stdin; dropping the sender closes it.
    commands: Option<Sender<Vec<u8>>>,
    /// `None` if it is served in a thread of the test.
    pid: Option<i32>,
    marker: String,
    home: TempHome,
    timeout: Duration,
    /// Frames before this index have been waited for.
    cursor: usize,
    n_asked: usize,
}

impl Host {
    /// Creates a builder with an empty home; see [`HostBuilder::home`] for a prepared one.
    pub fn builder(program: impl AsRef<OsStr>) -> HostBuilder {
        HostBuilder::new(program.as_ref())
    }

    /// Sends one command line.
    pub fn send(&self, command: Value) {
        self.send_raw(format!("{command}\n"));
    }

    /// Sends several command lines in one write.
    pub fn send_all(&self, commands: impl IntoIterator<Item = Value>) {
        let lines: String = commands.into_iter().map(|command| format!("{command}\n")).collect();
        self.send_raw(lines);
    }

    /// Sends bytes as they are. Never blocks; a host that has ended ignores them.
    pub fn send_raw(&self, bytes: impl Into<Vec<u8>>) {
        self.commands.as_ref().expect("stdin is still open").send(bytes.into()).ok();
    }

    /// Sends a command with a new id and returns its response.
    #[track_caller]
    pub fn ask(&mut self, mut command: Value) -> Value {
        self.n_asked += 1;
        let id = format!("ask-{}", self.n_asked);
        command["id"] = Value::from(id.as_str());
        self.send(command);
        self.response(&id)
    }

    /// Like [`Host::ask`], for commands that must succeed; returns `data`.
    #[track_caller]
    pub fn data(&mut self, command: Value) -> Value {
        let mut response = self.ask(command);
        assert_eq!(response["success"], true, "{response}");
        response["data"].take()
    }

    /// Waits for the next frame that `wanted` accepts; earlier frames count as seen.
    #[track_caller]
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_until("a frame the test describes", wanted)
    }

    /// Marks everything received so far as seen.
    pub fn catch_up(&mut self) {
        self.cursor = self.frames().len();
    }

    /// Waits for the next frame of that type.
    #[track_caller]
    pub fn wait_type(&mut self, kind: &str) -> Value {
        self.wait_until(&format!("a frame of type {kind}"), |frame| frame["type"] == kind)
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = self.exchange.find(self.cursor, self.timeout, |frame| wanted(&frame.value));
        self.check();
        let Some((index, frame)) = found else { self.fail(what) };
        self.cursor = index + 1;
        frame.value
    }

    /// Waits for the response with that id, which may have come already.
    #[track_caller]
    pub fn response(&self, id: &str) -> Value {
        let found =
            self.exchange.find(0, self.timeout, |frame| frame.value["type"] == "response" && frame.value["id"] == id);
        found.map_or_else(|| self.fail(&format!("the response to {id:?}")), |(_, frame)| frame.value)
    }

    /// Waits for the frame with that index, if it comes in time.
    pub fn try_frame(&self, index: usize) -> Option<Frame> {
        self.exchange.find(index, self.timeout, |_| true).map(|(_, frame)| frame)
    }

    /// Waits for the first frame from `start` on that `wanted` accepts; returns its index, if it comes in time.
    pub fn try_find(&self, start: usize, wanted: impl Fn(&Frame) -> bool) -> Option<usize> {
        self.exchange.find(start, self.timeout, wanted).map(|(index, _)| index)
    }

    /// Waits for the first frame from `start` on that `wanted` accepts, if it comes within the given time.
    pub fn find_within(&self, start: usize, timeout: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        self.exchange.find(start, timeout, |frame| wanted(&frame.value)).map(|(_, frame)| frame.value)
    }

    /// Returns every frame so far.
    pub fn frames(&self) -> Vec<Value> {
        self.exchange.frames().into_iter().map(|frame| frame.value).collect()
    }

    /// Returns every line so far, byte for byte.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        self.exchange.frames().into_iter().map(|frame| frame.line).collect()
    }

    /// Returns the number of bytes received on stdout so far.
    pub fn n_bytes(&self) -> usize {
        self.exchange.n_bytes()
    }

    /// Returns the stderr output so far.
    pub fn stderr(&self) -> String {
        self.exchange.stderr()
    }

    /// Waits until `wanted` accepts the stderr output, and returns it.
    #[track_caller]
    pub fn wait_stderr(&self, wanted: impl Fn(&str) -> bool) -> String {
        self.exchange.wait_stderr(self.timeout, wanted).unwrap_or_else(|| self.fail("certain words on stderr"))
    }

    /// Lets the pipe fill up: at most one more chunk is read until [`Host::resume_reading`].
    pub fn stop_reading(&self) {
        self.exchange.set_stalled(true);
    }

    /// Continues reading.
    pub fn resume_reading(&self) {
        self.exchange.set_stalled(false);
    }

    /// Closes stdout as a host that crashed would. `command` makes the other side write once more, which is when it is
    /// closed.
    #[track_caller]
    pub fn hang_up(&self, command: Value) {
        self.exchange.hang_up();
        self.send(command);
        if !self.exchange.wait_finished(self.timeout) {
            self.fail("the last frame before hanging up");
        }
    }

    /// Closes stdin after everything sent so far.
    pub fn close_stdin(&mut self) {
        self.commands = None;
    }

    /// Sends a signal to the host process alone.
    pub fn signal(&self, signal: Signal) {
        if !self.exchange.has_exited() {
            kill_process(self.raw_pid(), signal).ok();
        }
    }

    /// Sends `SIGKILL`, and waits for the end.
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.exit_code();
    }

    /// Waits for the exit code; a death by signal is its negative number. What the process wrote has been read by then,
    /// unless the test has stopped reading.
    #[track_caller]
    pub fn exit_code(&self) -> i32 {
        let code = self.exchange.exit(self.timeout).unwrap_or_else(|| self.fail("the exit of the process"));
        self.exchange.wait_finished(STDOUT_LIMIT);
        code
    }

    /// Closes stdin, waits for the exit and returns all frames and the code.
    #[track_caller]
    pub fn finish(&mut self) -> (Vec<Value>, i32) {
        self.close_stdin();
        let code = self.exit_code();
        if !self.exchange.wait_finished(self.timeout) {
            self.fail("the end of stdout");
        }
        self.check();
        // Its last output has been written by now, but perhaps not been read.
        self.exchange.wait_silent(STDERR_LIMIT);
        (self.frames(), code)
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid.expect("the host is a process")
    }

    /// Whether the process has ended.
    pub fn has_exited(&self) -> bool {
        self.exchange.has_exited()
    }

    /// Returns the resident memory in bytes, now.
    pub fn memory(&self) -> u64 {
        process::memory_kib(self.pid(), "VmRSS").unwrap_or(0) * 1024
    }

    /// Returns the peak resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        process::memory_kib(self.pid(), "VmHWM").unwrap_or(0) * 1024
    }

    /// Returns the environment value that all processes below this host have; see [`process::no_process_with`].
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Returns the directories of the host.
    pub fn home(&self) -> &TempHome {
        &self.home
    }

    /// Describes everything that was exchanged so far, for a failure.
    pub fn describe(&self) -> String {
        self.exchange.describe(self.cursor)
    }

    /// Fails if something was written that is no frame of the protocol.
    #[track_caller]
    fn check(&self) {
        if let Some(problem) = self.exchange.problem() {
            panic!("{problem}");
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let state = if self.exchange.has_exited() { "the process has ended" } else { "the process is running" };
        panic!("waited {:?} for {what}; {state}\n{}", self.timeout, self.describe());
    }

    fn raw_pid(&self) -> Pid {
        Pid::from_raw(self.pid()).expect("a child has a positive id")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.resume_reading();
        if self.pid.is_none() {
            // Its thread ends with its input.
            self.commands = None;
        } else if !self.exchange.has_exited() {
            kill_process_group(self.raw_pid(), Signal::KILL).ok();
            self.exchange.exit(self.timeout);
        }
        process::kill_with_marker(&self.marker);
        if !thread::panicking() {
            self.check();
        }
    }
}

/// Starts a thread that writes, so that a host that does not read cannot block the test.
fn start_writer(mut stdin: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        for bytes in receiver {
            if stdin.write_all(&bytes).is_err() {
                break;
            }
        }
    });
    sender
}

fn new_marker() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("host-{}-{}-", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests;
