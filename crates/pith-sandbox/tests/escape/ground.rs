//! Where attempts are made, and what comes of them.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use pith_sandbox::confine::{Restrictions, Scope};
use pith_sandbox::policy::Places;
use pith_sandbox::watch::{CommandWatch, Watch};
use pith_sandbox::{Policy, SandboxSettings, Support};
use pith_testkit::{eventually, has};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::{Value, json};

/// A user without rights, where the suite runs as root.
const NOBODY: u32 = 65_534;

/// Who makes an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    User,
    Root,
}

/// What an attempt needs to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    Any,
    /// Only root could do it without the sandbox.
    OfRoot,
    /// Root could do it with the sandbox as well, by rights that are its own.
    OfUser,
}

/// A way out, and how one sees that it was taken.
pub struct Attempt {
    pub name: &'static str,
    /// Run by a shell in the project. `$ROOT` is the ground, `$TRY` the helper, `$VICTIM` a process
    /// outside, `$PORT`, `$PORT6` and `$ABSTRACT` are listened on.
    pub script: &'static str,
    /// A shell command, run outside afterwards, that succeeds if the attempt had its effect. Empty: the script succeeded.
    pub effect: &'static str,
    pub rights: Rights,
}

pub const fn attempt(name: &'static str, script: &'static str, effect: &'static str) -> Attempt {
    Attempt { name, script, effect, rights: Rights::Any }
}

/// An attempt whose effect is that a call succeeds.
pub const fn call(name: &'static str, script: &'static str) -> Attempt {
    attempt(name, script, "")
}

impl Attempt {
    pub const fn by(self, rights: Rights) -> Attempt {
        Attempt { rights, ..self }
    }
}

/// What must come of an attempt with the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Closed,
    /// A gap that is known, reported to hosts and documented.
    KnownGap,
    /// No way out: the sandbox must not be in the way of it.
    Allowed,
}

/// A home with a key, a project in it, and something outside to attack.
pub struct Ground {
    _dir: tempfile::TempDir,
    pub root: PathBuf,
    who: Who,
    victim: Option<Child>,
    listeners: Listeners,
}

/// What can be connected to; nobody needs to be accepted for that.
struct Listeners {
    four: TcpListener,
    /// Not everywhere is there an IPv6.
    six: Option<TcpListener>,
    _named: UnixListener,
    abstract_name: String,
    _unnamed: UnixListener,
}

impl Listeners {
    fn new(path: &Path) -> Listeners {
        let abstract_name = format!("pith-escape-{}", path.display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        Listeners {
            four: TcpListener::bind("127.0.0.1:0").unwrap(),
            six: TcpListener::bind("[::1]:0").ok(),
            _named: UnixListener::bind(path).unwrap(),
            abstract_name,
            _unnamed: UnixListener::bind_addr(&address).unwrap(),
        }
    }
}

fn port(listener: &TcpListener) -> String {
    listener.local_addr().unwrap().port().to_string()
}

impl Ground {
    pub fn new(who: Who) -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        for path in
            ["home/.ssh", "home/work/.git/hooks", "home/work/sub", "home/agent/sessions", "outside/empty", "temp"]
        {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for (path, text) in [
            ("home/.ssh/id", "key"),
            ("home/.unknown", "key"),
            ("home/notes", "notes"),
            ("home/agent/auth.json", "key"),
            ("home/agent/sessions/one.jsonl", "key"),
            ("outside/file", "before"),
            ("home/work/a", "a"),
            ("home/work/server.pem", "key"),
            ("home/work/.git/hooks/sample", "as it was"),
            ("home/work/.git/config", "as it was"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        let listeners = Listeners::new(&root.join("outside/socket"));
        if who == Who::User && is_root() {
            give_away(&root);
            // A program that runs as root whoever starts it.
            let program = root.join("outside/of-root");
            fs::copy("/usr/bin/id", &program).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        Ground { _dir: dir, root, who, victim: None, listeners }
    }

    pub fn policy(&self, settings: &Value) -> Policy {
        let places = Places {
            cwd: self.root.join("home/work"),
            home: Some(self.root.join("home")),
            agent_dir: self.root.join("home/agent"),
            temp: self.root.join("temp"),
        };
        Policy::resolve(&SandboxSettings::read(settings).expect("settings"), &places, Support::of_this_kernel())
            .expect("resolved")
            .expect("a policy")
    }

    /// Runs a script in the project, held to a policy if there is one, and returns whether it succeeded.
    pub fn run(&mut self, script: &str, policy: Option<&Policy>) -> bool {
        if script.contains("$VICTIM") {
            self.start_victim();
        }
        let mut command = self.shell(script);
        let policy = policy.cloned();
        // Protected paths are put back by a watch, as with the tools. One of everything would also put back what other
        // tests and the user of this machine do at that moment.
        let watched = policy.as_ref().filter(|policy| !policy.writable.iter().any(|root| root == Path::new("/")));
        let watch = watched.map(|policy| {
            let watch = Watch::of_policy(policy, &policy.protected, Box::new(|_| {})).unwrap();
            CommandWatch::new(Arc::new(watch)).unwrap()
        });
        let succeeded = on_thread_of(self.who, move || {
            if let Some(policy) = &policy {
                Restrictions::new(policy).and_then(|made| made.confine_this_thread(Scope::Command)).expect("confined");
            }
            command.status().expect("sh").success()
        });
        drop(watch);
        succeeded
    }

    /// Returns whether an attempt that was made has had its effect.
    fn has_effect(&self, attempt: &Attempt, succeeded: bool) -> bool {
        if attempt.effect.is_empty() { succeeded } else { self.shell(attempt.effect).status().expect("sh").success() }
    }

    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .current_dir(self.root.join("home/work"))
            .env("ROOT", &self.root)
            .env("TMPDIR", self.root.join("temp"))
            .env("TRY", helper().unwrap_or(Path::new("false")))
            .env("PORT", port(&self.listeners.four))
            .env("PORT6", self.listeners.six.as_ref().map_or("0".to_owned(), port))
            .env("ABSTRACT", &self.listeners.abstract_name)
            .env("VICTIM", self.victim.as_ref().map(|victim| victim.id().to_string()).unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts a process of the same user that is not confined. It is over when the ground is left.
    fn start_victim(&mut self) {
        let address = self.root.join("temp/address");
        let mut command = Command::new(helper().expect("a compiler"));
        command.arg("victim").arg(self.root.join("outside/file")).arg(&address).env("SECRET", "secret of the victim");
        command.current_dir(self.root.join("outside")).stdin(Stdio::null());
        self.victim = Some(on_thread_of(self.who, move || command.spawn().unwrap()));
        eventually("the victim waits", || address.exists());
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(victim) = &mut self.victim {
            let _ = victim.kill();
            let _ = victim.wait();
        }
    }
}

/// Makes attempts with these settings, and fails if one of them does not end as expected.
pub fn make(settings: &Value, expected: Expected, attempts: &[Attempt]) {
    if !is_ready() {
        return;
    }
    let profile = settings["profile"].as_str().unwrap();
    let mut failures = Vec::new();
    for attempt in attempts {
        for who in everybody(attempt.rights) {
            let result = outcome(settings, attempt, who);
            let is_right = match (expected, result) {
                (_, None) | (Expected::Closed, Some(false)) => true,
                (Expected::KnownGap | Expected::Allowed, Some(true)) => true,
                (Expected::Closed, Some(true)) | (Expected::KnownGap | Expected::Allowed, Some(false)) => false,
            };
            let shown = match (result, expected) {
                (None, _) => "skipped: has no effect here without the sandbox either",
                (Some(false), _) => "closed",
                (Some(true), Expected::KnownGap) => "open, a known gap",
                (Some(true), _) => "open",
            };
            let (name, by) = (attempt.name, if who == Who::Root { "root" } else { "user" });
            println!("{name:<56} {profile:<16} {by:<5} {shown}");
            if result.is_none() {
                pith_testkit::skip(&format!("{name} ({by}): has no effect here without the sandbox either"));
            }
            if !is_right {
                failures.push(format!("{name} ({by}): {shown}"));
            }
        }
    }
    assert!(failures.is_empty(), "not as expected: {failures:#?}");
}

/// Whether an attempt has its effect in the sandbox; `None` if it has none without.
fn outcome(settings: &Value, attempt: &Attempt, who: Who) -> Option<bool> {
    let mut free = Ground::new(who);
    let succeeded = free.run(attempt.script, None);
    if !free.has_effect(attempt, succeeded) {
        return None;
    }
    let mut ground = Ground::new(who);
    let policy = ground.policy(settings);
    let succeeded = ground.run(attempt.script, Some(&policy));
    Some(ground.has_effect(attempt, succeeded))
}

/// Returns whether attempts can be made; says so if not.
pub fn is_ready() -> bool {
    let needed = Support::check_this_kernel().and_then(|()| helper().map(|_| ()));
    let is_required = std::env::var_os("PITH_TEST_SANDBOX").is_some_and(|value| value == "require");
    assert!(!is_required || needed.is_ok(), "PITH_TEST_SANDBOX=require: {needed:?}");
    has(needed)
}

pub fn write() -> Value {
    json!({"profile": "workspace-write"})
}

pub fn everybody(rights: Rights) -> Vec<Who> {
    let mut all = Vec::new();
    if rights != Rights::OfRoot {
        all.push(Who::User);
    }
    if rights != Rights::OfUser && is_root() {
        all.push(Who::Root);
    }
    all
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs something on a thread of its own that belongs to a user.
pub fn on_thread_of<T: Send + 'static>(who: Who, work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        if who == Who::User && is_root() {
            let (user, group) = (rustix::process::Uid::from_raw(NOBODY), rustix::process::Gid::from_raw(NOBODY));
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(group, group, group).unwrap();
            set_thread_res_uid(user, user, user).unwrap();
        }
        work()
    });
    thread.join().unwrap()
}

/// Makes everything below a path that user's.
fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

/// The program that makes system calls, compiled once; the error says why there is none.
pub fn helper() -> Result<&'static Path, String> {
    static HELPER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let compile = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escape/try.c");
        // One for all runs of the suite: whoever compiles it again puts the same in its place.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
        let made = directory.join(format!("try-{}", std::process::id()));
        let output = Command::new("cc").arg("-o").arg(&made).arg(&source).output();
        let output = output.map_err(|error| format!("no C compiler: {error}"))?;
        if !output.status.success() {
            return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let program = directory.join("escape-try");
        fs::rename(made, &program).map_err(|error| error.to_string())?;
        Ok(program)
    };
    HELPER.get_or_init(compile).as_deref().map_err(Clone::clone)
}
