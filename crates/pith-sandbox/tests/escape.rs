//! Attempts to get out of the sandbox. Each one runs twice: without it, where it must succeed (or it would prove
//! nothing), and with it, where it must fail.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pith_sandbox::confine::{Scope, confine_this_thread};
use pith_sandbox::policy::Places;
use pith_sandbox::{Policy, Profile, Require, SandboxSettings, Support, Worker};
use serde_json::{Value, json};

/// Says so and returns `false` where this kernel enforces nothing.
fn is_enforced() -> bool {
    let check = Support::of_this_kernel().check(Profile::WorkspaceWrite, Require::Full);
    if let Err(why) = &check {
        pith_testkit::skip(why);
    }
    check.is_ok()
}

/// A home with a key, a project in it, and something outside to attack.
struct Ground {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in ["home/.ssh", "home/work/.git/hooks", "home/agent", "outside", "temp"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for (path, text) in
            [("home/.ssh/id", "key"), ("home/notes", "notes"), ("outside/file", "before"), ("home/work/a", "a")]
        {
            fs::write(root.join(path), text).unwrap();
        }
        Ground { _dir: dir, root }
    }

    fn policy(&self, settings: &Value) -> Policy {
        let places = Places {
            cwd: self.root.join("home/work"),
            home: Some(self.root.join("home")),
            agent_dir: self.root.join("home/agent"),
            temp: self.root.join("temp"),
        };
        Policy::resolve(&SandboxSettings::read(settings).unwrap(), &places).unwrap().expect("a policy")
    }

    /// Runs a script in the project and returns whether it succeeded.
    fn run(&self, script: &str, policy: Option<&Policy>) -> bool {
        let (script, root, policy) = (script.to_owned(), self.root.clone(), policy.cloned());
        let thread = std::thread::spawn(move || {
            if let Some(policy) = &policy {
                confine_this_thread(policy, Scope::Command).expect("confined");
            }
            Command::new("/bin/sh")
                .args(["-c", &script])
                .current_dir(root.join("home/work"))
                .env("ROOT", &root)
                .env("TMPDIR", root.join("temp"))
                .env("PARENT", std::process::id().to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("sh")
                .success()
        });
        thread.join().unwrap()
    }
}

fn check(settings: &Value, script: &str, confined_succeeds: bool) {
    let free = Ground::new();
    assert!(free.run(script, None), "without the sandbox: {script}");
    let ground = Ground::new();
    let policy = ground.policy(settings);
    assert_eq!(ground.run(script, Some(&policy)), confined_succeeds, "in the sandbox: {script}");
}

fn write() -> Value {
    json!({"profile": "workspace-write"})
}

#[test]
fn work_in_the_project_goes_on() {
    if !is_enforced() {
        return;
    }
    for script in [
        "echo b > b && mv b c && ln c d && mkdir -p e/f && rm -r e && cat a c",
        "t=$(mktemp) && echo x > $t && cp $t there",
        "echo x > /dev/null && head -c 4 /dev/urandom | wc -c",
        "cat /etc/passwd && ls /usr/bin && ls $ROOT/home/.ssh",
        "cat $ROOT/home/notes",
        "(sleep 0.01 & wait) && kill -0 $$",
    ] {
        check(&write(), script, true);
    }
}

#[test]
fn files_outside_cannot_be_changed() {
    if !is_enforced() {
        return;
    }
    for script in [
        "echo x > $ROOT/outside/new",
        "echo x >> $ROOT/outside/file",
        ": > $ROOT/outside/file",
        "truncate -s 0 $ROOT/outside/file",
        "rm $ROOT/outside/file",
        "mkdir $ROOT/outside/dir",
        "mkfifo $ROOT/outside/pipe",
        "ln -s x $ROOT/outside/link",
        "mv a $ROOT/outside/a",
        "mv $ROOT/outside/file here",
        "ln a $ROOT/outside/hard",
        "ln $ROOT/outside/file hard && echo x > hard",
        "ln -s $ROOT/outside/file soft && echo x > soft",
        "ln -s $ROOT/outside dir && echo x > dir/new",
        "cd /proc/self/root/$ROOT/outside && echo x > new",
        "exec 3< $ROOT/outside/file && echo x > /proc/self/fd/3",
        "cp /bin/true $ROOT/outside/true",
    ] {
        check(&write(), script, false);
    }
}

#[test]
fn nothing_can_be_changed_in_the_profile_that_reads() {
    if !is_enforced() {
        return;
    }
    let read_only = json!({"profile": "read-only"});
    for script in ["echo x > a", "rm a", "mkdir b", "mv a b", "echo x > $ROOT/outside/file"] {
        check(&read_only, script, false);
    }
    check(&read_only, "cat a && echo x > $TMPDIR/x", true);
}

#[test]
fn what_is_denied_cannot_be_read() {
    if !is_enforced() {
        return;
    }
    for script in [
        "cat $ROOT/home/.ssh/id",
        "ln -s $ROOT/home/.ssh door && cat door/id",
        "cp -r $ROOT/home/.ssh copy",
        "cat /proc/self/root/$ROOT/home/.ssh/id",
        "cd $ROOT/home/.ssh && cat id",
        "mv $ROOT/home/.ssh $ROOT/home/work/ssh && cat ssh/id",
    ] {
        check(&write(), script, false);
    }
    check(&json!({"profile": "workspace-write", "filesystem": {"denyRead": ["*.pem"]}}), "echo x > n && cat a", true);
}

#[test]
fn other_processes_are_out_of_reach() {
    if !is_enforced() {
        return;
    }
    for script in ["kill -0 $PARENT", "cat /proc/$PARENT/environ", "head -c 1 /proc/$PARENT/maps"] {
        check(&write(), script, false);
    }
}

/// Each family fails at once; what stays is a pair of connected sockets.
#[test]
fn there_is_no_network() {
    if !is_enforced() {
        return;
    }
    let python = |code: &str| format!("python3 -c '{code}'");
    if !Command::new("python3").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: needs python3");
        return;
    }
    for code in [
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    ] {
        check(&write(), &python(code), false);
    }
    check(&write(), &python("import socket; a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1)"), true);
    let open = json!({"profile": "workspace-write", "network": {"mode": "on"}});
    check(&open, &python("import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)"), true);
    check(&open, &python("import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)"), false);
    check(&open, &python("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)"), false);
}

#[test]
fn file_tools_on_the_worker_are_held_by_the_kernel() {
    if !is_enforced() {
        return;
    }
    let ground = Ground::new();
    let worker = Worker::start(ground.policy(&write())).expect("confined");
    let on_worker = |work: Box<dyn FnOnce() -> std::io::Result<()> + Send>| {
        let (done, result) = std::sync::mpsc::channel();
        worker.run(work, move |outcome| done.send(outcome).unwrap()).unwrap();
        result.recv().unwrap()
    };
    let write_to = |path: PathBuf| on_worker(Box::new(move || fs::write(path, "x"))).unwrap();
    write_to(ground.root.join("home/work/new")).expect("inside");
    let refused = write_to(ground.root.join("outside/new")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    std::os::unix::fs::symlink(ground.root.join("outside"), ground.root.join("home/work/door")).unwrap();
    write_to(ground.root.join("home/work/door/new")).unwrap_err();
    assert!(on_worker(Box::new(|| panic!("a tool's bug"))).is_err(), "a panic is reported");
    write_to(ground.root.join("home/work/after")).expect("and the worker lives on");
    fs::write(ground.root.join("outside/new"), "x").expect("this thread is free");
    assert!(!Path::new("/nonexistent").exists());
}
