//! How a test starts pith: arguments, environment, home, and whether in its own process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::exchange::Exchange;
use super::{Host, InProcess, MARKER, new_marker, start_writer};
use crate::home::TempHome;
use crate::schema::Dialect;
use crate::{Api, timeout};

/// How to start a host.
pub struct HostBuilder {
    program: OsString,
    arguments: Vec<OsString>,
    environment: BTreeMap<String, String>,
    home: TempHome,
    directory: Option<PathBuf>,
    timeout: Duration,
    is_stranger: bool,
}

impl HostBuilder {
    pub(super) fn new(program: &OsStr) -> Self {
        HostBuilder {
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            home: TempHome::new(),
            directory: None,
            timeout: timeout(),
            is_stranger: false,
        }
    }

    /// Says that the program is not pith: its output need not fit the protocol's schema.
    pub fn stranger(mut self) -> Self {
        self.is_stranger = true;
        self
    }

    /// Returns the dialect the program speaks, if everything it writes is a frame.
    fn protocol(&self) -> Option<Dialect> {
        let has = |word: &str| self.arguments.iter().any(|argument| argument == word);
        let name = Path::new(&self.program).file_name().unwrap_or_default();
        let is_xcsh = has("xcsh") || self.environment.get("PITH_DIALECT").is_some_and(|name| name == "xcsh");
        if self.is_stranger || !(has("rpc") || has("json")) {
            None
        } else if is_xcsh || name == "xcsh" || name == "omp" {
            Some(Dialect::Xcsh)
        } else {
            Some(Dialect::Pi)
        }
    }

    /// Starts another program.
    pub fn program(mut self, program: impl AsRef<OsStr>) -> Self {
        self.program = program.as_ref().to_owned();
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds `--mode rpc` and the model of a test home in the format `api`.
    pub fn rpc(self, api: Api) -> Self {
        self.args(["--mode", "rpc", "--provider", api.provider(), "--model", api.model()])
    }

    /// Sets an environment variable; nothing is inherited from the test.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Uses these directories instead of empty ones.
    pub fn home(mut self, home: &TempHome) -> Self {
        self.home = home.clone();
        self
    }

    /// Starts in another directory than the home's work directory.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Waits this long instead of the default time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Serves in a thread of this process instead of starting the program. `serve` gets what a process would get, and
    /// returns when a process would end, with its exit code.
    #[track_caller]
    pub fn spawn_in_process(self, serve: impl FnOnce(InProcess) -> i32 + Send + 'static) -> Host {
        let marker = new_marker();
        let dialect = self.protocol();
        let mut environment = self.home.environment();
        environment.extend(self.environment);
        environment.insert(MARKER.to_owned(), marker.clone());
        let (stdin, to_stdin) = std::io::pipe().expect("a pipe");
        let (from_stdout, stdout) = std::io::pipe().expect("a pipe");
        let text = |argument: OsString| argument.into_string().expect("arguments are text");
        let inside = InProcess {
            program: self.program.into(),
            arguments: self.arguments.into_iter().map(text).collect(),
            environment,
            directory: self.directory.unwrap_or_else(|| self.home.work()),
            stdin,
            stdout,
        };
        let exchange = Arc::new(Exchange::new(dialect));
        let commands = start_writer(to_stdin);
        exchange.read_stdout(from_stdout);
        exchange.read_stderr(std::io::empty());
        let waiter = Arc::clone(&exchange);
        thread::spawn(move || waiter.ended(thread::spawn(move || serve(inside)).join().unwrap_or(-1)));
        let (home, timeout) = (self.home, self.timeout);
        Host { exchange, commands: Some(commands), pid: None, marker, home, timeout, cursor: 0, n_asked: 0 }
    }

    /// Starts the program.
    #[track_caller]
    pub fn spawn(self) -> Host {
        let marker = new_marker();
        let dialect = self.protocol();
        let mut environment = self.home.environment();
        environment.extend(self.environment);
        environment.insert(MARKER.to_owned(), marker.clone());
        let directory = self.directory.unwrap_or_else(|| self.home.work());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(&environment).current_dir(&directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.program));

        let pid = Some(child.id().cast_signed());
        let exchange = Arc::new(Exchange::new(dialect));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let commands = start_writer(stdin.expect("stdin is piped"));
        exchange.read_stdout(stdout.expect("stdout is piped"));
        exchange.read_stderr(stderr.expect("stderr is piped"));
        let waiter = Arc::clone(&exchange);
        thread::spawn(move || waiter.exited(child.wait()));
        Host {
            exchange,
            commands: Some(commands),
            pid,
            marker,
            home: self.home,
            timeout: self.timeout,
            cursor: 0,
            n_asked: 0,
        }
    }
}
