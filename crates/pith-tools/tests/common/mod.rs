//! A workbench in a directory of its own, for tests.

#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pith_agent::{Tool, ToolContext, ToolOutput};
use pith_tools::hosts::SessionHosts;
use pith_tools::process::{SUPERVISOR_ARGUMENT, Supervisor};
use pith_tools::{Workbench, WorkbenchOptions, builtin_tools};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub workbench: Arc<Workbench>,
    pub cancel: CancellationToken,
    pub updates: Arc<Mutex<Vec<ToolOutput>>>,
}

/// A sandbox for `work` below a directory, with `home`, `agent` and `tmp` beside it.
#[cfg(target_os = "linux")]
pub fn enforced(root: &Path, settings: &Value) -> pith_tools::sandbox::Enforced {
    enforced_with(root, settings, false)
}

/// Like [`enforced`]; with namespaces if there are any.
#[cfg(target_os = "linux")]
pub fn enforced_with(root: &Path, settings: &Value, namespaces: bool) -> pith_tools::sandbox::Enforced {
    enforced_by(root, settings, namespaces, SessionHosts::default())
}

/// Like [`enforced_with`], where a session has rules about hosts.
#[cfg(target_os = "linux")]
pub fn enforced_by(
    root: &Path,
    settings: &Value,
    namespaces: bool,
    hosts: SessionHosts,
) -> pith_tools::sandbox::Enforced {
    let places = pith_sandbox::policy::Places {
        cwd: root.join("work"),
        home: Some(root.join("home")),
        agent_dir: root.join("agent"),
        temp: root.join("tmp"),
    };
    enforced_at(places, settings, namespaces, hosts)
}

/// Like [`enforced_by`], for these directories.
#[cfg(target_os = "linux")]
pub fn enforced_at(
    places: pith_sandbox::policy::Places,
    settings: &Value,
    namespaces: bool,
    hosts: SessionHosts,
) -> pith_tools::sandbox::Enforced {
    use pith_sandbox::{Policy, Require, SandboxSettings, Support};
    use pith_tools::sandbox::{Enforced, Rules};
    let settings = SandboxSettings::read(settings).expect("settings");
    let support = Support { namespaces, ..Support::of_this_kernel() };
    let policy = Policy::resolve(&settings, &places, support).expect("resolved").expect("a policy");
    let rules = Rules {
        require: Require::Full,
        support,
        env: settings.env,
        host_commands: false,
        allows_unsandboxed: false,
        temp: places.temp,
        supervisor: Some(supervisor()),
        runtime_dir: None,
        hosts,
    };
    Enforced::new(policy, rules).expect("this kernel has Landlock")
}

pub fn supervisor() -> Supervisor {
    Supervisor { program: env!("CARGO_BIN_EXE_test-agent").into(), argument: SUPERVISOR_ARGUMENT.into() }
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut WorkbenchOptions)) -> Bench {
        let dir = tempfile::tempdir().expect("a directory");
        let cwd = dir.path().canonicalize().expect("it exists").join("work");
        std::fs::create_dir(&cwd).expect("new");
        let mut options = WorkbenchOptions {
            supervisor: Some(supervisor()),
            home: Some(dir.path().join("home")),
            temp: dir.path().to_owned(),
            ..WorkbenchOptions::default()
        };
        change(&mut options);
        let workbench = Workbench::new(cwd, options);
        Bench { dir, workbench, cancel: CancellationToken::new(), updates: Arc::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workbench.base.cwd.join(name)
    }

    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below the bench")).expect("made");
        std::fs::write(&path, contents).expect("written");
        path
    }

    pub fn contents(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("readable")
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = builtin_tools(&self.workbench);
        tools.into_iter().find(|tool| &*tool.spec().name == name).expect("a built-in tool")
    }

    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        self.start(name, arguments).await
    }

    /// Starts a call that is not polled yet.
    pub fn start(&self, name: &str, arguments: Value) -> impl Future<Output = ToolOutput> + use<> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let updates = Arc::clone(&self.updates);
        let context = ToolContext {
            call_id: "c1".into(),
            cancel: self.cancel.clone(),
            update: Arc::new(move |update| updates.lock().expect("not poisoned").push(update)),
            trace: None,
        };
        let tool = self.tool(name);
        let arguments = tool.adapt(arguments);
        tool.run(arguments, context)
    }

    /// Returns the text of a successful call.
    pub async fn ok(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments.clone()).await;
        assert!(!output.is_error, "{name} {arguments}: {output:?}");
        text(&output)
    }

    /// Returns the text of a failing call.
    pub async fn fails(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments.clone()).await;
        assert!(output.is_error, "{name} {arguments}: {output:?}");
        let is_plain = output.details == Some(serde_json::json!({}));
        assert!(is_plain || !pith_tools::Denied::of(&output).is_empty(), "failures carry empty details: {output:?}");
        text(&output)
    }
}

pub fn text(output: &ToolOutput) -> String {
    output.content.iter().filter_map(|block| block.as_text()).collect()
}

/// Runs an async test as pith runs: on one thread.
pub fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

/// Waits until `done`, at most `limit`.
pub fn eventually(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `done`, at most a second of this process's own time.
///
/// The second is 200 sleeps of 5 ms. A busy machine stretches the sleeps as much as the work that is waited for, so the
/// limit measures the work and not the load.
pub fn within_a_second(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    for _ in 0..200 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not within a second, which took {:?} here: {what}", began.elapsed());
}

/// [`eventually`] inside a runtime.
pub async fn eventually_async(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the process ids in a file that a command writes, once there are `n` of them.
pub fn pids(path: &Path, n: usize) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(path).ok()?;
    let pids: Vec<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    (pids.len() == n && text.ends_with('\n')).then_some(pids)
}

/// Whether a process runs; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
