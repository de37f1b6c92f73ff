//! Attempts to get out of the sandbox through the tools and the supervisor that sessions use. Each one is made without
//! a sandbox, where it must have its effect, and with it, where the effect must stay away.
//!
//! `cargo test --test escape -- --nocapture` prints a line for each, here and in `pith-sandbox`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints a table")]

mod common;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Bench, enforced, run, text};
use pith_sandbox::Support;
use pith_testkit::{eventually, has};
use pith_tools::sandbox::Sandbox;
use serde_json::{Value, json};

/// How often a name is swapped under a tool at most.
const N_SWAPS: usize = 3000;

fn workspace() -> Value {
    json!({"profile": "workspace-write"})
}

/// Returns whether attempts can be made; says so if not.
fn is_ready() -> bool {
    let needed = Support::check_this_kernel();
    let is_required = std::env::var_os("PITH_TEST_SANDBOX").is_some_and(|value| value == "require");
    assert!(!is_required || needed.is_ok(), "PITH_TEST_SANDBOX=require: {needed:?}");
    has(needed)
}

/// A project, a directory beside it, and a key that cannot be read; confined if there are settings.
fn ground(settings: Option<&Value>) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        for name in ["outside", "home/.ssh", "agent", "tmp", "work/inside"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (path, text) in [("outside/file", "before"), ("work/inside/file", "before"), ("home/.ssh/file", "key")] {
            fs::write(root.join(path), text).unwrap();
        }
        options.sandbox = settings.map(|settings| Arc::new(Sandbox::Enforced(enforced(&root, settings))));
    })
}

fn beside(bench: &Bench, path: &str) -> PathBuf {
    bench.dir.path().canonicalize().unwrap().join(path)
}

/// Holds an attempt against both: with an effect without a sandbox, without one with it.
fn show(name: &str, free: bool, confined: bool) {
    println!("{name:<56} {:<16} {:<5} {}", "workspace-write", "any", if confined { "open" } else { "closed" });
    assert!(free, "{name} has no effect without the sandbox, so it proves nothing");
    assert!(!confined, "{name}: open");
}

/// Calls a tool on `door/file`, while `door` is swapped between a directory inside and another one, until the tool had
/// the wrong one. Returns whether it ever had.
async fn is_ever_misled(
    bench: &Bench,
    target: &str,
    tool: &str,
    arguments: Value,
    is_misled: fn(&str, &Path) -> bool,
) -> bool {
    let (door, target) = (bench.path("door"), beside(bench, target));
    let spare = bench.path("spare");
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let (inside, outside) = (bench.path("inside"), target.clone());
    symlink(&inside, &door).unwrap();
    let swapping = std::thread::spawn(move || {
        for target in [&outside, &inside].into_iter().cycle() {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let _ = fs::remove_file(&spare);
            symlink(target, &spare).unwrap();
            fs::rename(&spare, &door).unwrap();
        }
    });
    let mut is_ever = false;
    for _ in 0..N_SWAPS {
        let output = bench.call(tool, arguments.clone()).await;
        if is_misled(&text(&output), &target) {
            is_ever = true;
            break;
        }
    }
    over.store(true, Ordering::SeqCst);
    swapping.join().unwrap();
    is_ever
}

#[test]
fn file_tools_are_not_misled_by_links_that_are_swapped() {
    if !is_ready() {
        return;
    }
    type IsMisled = fn(&str, &Path) -> bool;
    let changed: IsMisled = |_, target| fs::read(target.join("file")).unwrap() == b"after";
    let read: IsMisled = |text, _| text.contains("key");
    let attempts: [(&str, &str, &str, Value, IsMisled); 4] = [
        (
            "write",
            "write, a link that is swapped",
            "outside",
            json!({"path": "door/file", "content": "after"}),
            changed,
        ),
        (
            "edit",
            "edit, a link that is swapped",
            "outside",
            json!({"path": "door/file", "edits": [{"oldText": "before", "newText": "after"}]}),
            changed,
        ),
        ("read", "read, a link that is swapped", "home/.ssh", json!({"path": "door/file"}), read),
        ("grep", "grep, a link that is swapped", "home/.ssh", json!({"pattern": ".", "path": "door/file"}), read),
    ];
    run(async {
        for (tool, name, target, arguments, is_misled) in attempts {
            let free = is_ever_misled(&ground(None), target, tool, arguments.clone(), is_misled).await;
            let confined = is_ever_misled(&ground(Some(&workspace())), target, tool, arguments, is_misled).await;
            show(name, free, confined);
        }
    });
}

#[test]
fn a_file_that_was_left_open_is_not_handed_on() {
    if !is_ready() {
        return;
    }
    run(async {
        let mut results = Vec::new();
        for settings in [None, Some(workspace())] {
            let bench = ground(settings.as_ref());
            let file = fs::File::options().append(true).open(beside(&bench, "outside/file")).unwrap();
            // As a program does that starts pith and has forgotten to close it.
            rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
            let number = file.as_raw_fd();
            bench.call("bash", json!({"command": format!("echo x >&{number}")})).await;
            results.push(fs::read_to_string(beside(&bench, "outside/file")).unwrap() != "before");
            drop(file);
            let listed = bench.ok("bash", json!({"command": "ls /proc/self/fd | sort -n | tail -n +4 | wc -l"})).await;
            // `ls` itself has the directory open.
            assert!(settings.is_none() || listed.trim() == "1", "{listed}");
        }
        show("a descriptor that pith was started with", results[0], results[1]);
    });
}

#[test]
fn a_writable_directory_that_becomes_a_link_leads_nowhere() {
    if !is_ready() {
        return;
    }
    run(async {
        // The directory above the project can be written, so a command can put something else in its place.
        let settings = json!({"profile": "workspace-write", "filesystem": {"allowWrite": ["../.."]}});
        let mut results = Vec::new();
        for settings in [None, Some(settings)] {
            let far = tempfile::tempdir().unwrap();
            let bench = Bench::with(|options| {
                let root = options.temp.canonicalize().unwrap();
                for name in ["above/work", "home", "agent", "tmp"] {
                    fs::create_dir_all(root.join(name)).unwrap();
                }
                let _ = fs::remove_dir(root.join("work"));
                symlink(root.join("above/work"), root.join("work")).unwrap();
                let settings = settings.clone().map(|mut settings| {
                    settings["filesystem"]["allowWrite"] = json!([root.join("above")]);
                    settings
                });
                options.sandbox = settings.map(|settings| Arc::new(Sandbox::Enforced(enforced(&root, &settings))));
            });
            let (above, target) = (beside(&bench, "above"), far.path().canonicalize().unwrap());
            let (above, target) = (above.display(), target.display());
            bench
                .ok("bash", json!({"command": format!("mv {above}/work {above}/w && ln -s {target} {above}/work")}))
                .await;
            bench.call("bash", json!({"command": format!("echo x > {above}/work/new")})).await;
            bench.call("write", json!({"path": format!("{above}/work/new"), "content": "x"})).await;
            results.push(far.path().join("new").exists());
        }
        show("the project replaced by a link, then written", results[0], results[1]);
    });
}

#[test]
fn a_project_that_is_reached_by_a_link_is_the_directory_itself() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = Bench::with(|options| {
            let root = options.temp.canonicalize().unwrap();
            for name in ["real", "outside", "home", "agent", "tmp"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            fs::remove_dir(root.join("work")).unwrap();
            symlink(root.join("real"), root.join("work")).unwrap();
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root, &workspace()))));
        });
        bench.ok("bash", json!({"command": "echo x > a"})).await;
        bench.ok("write", json!({"path": "b", "content": "x"})).await;
        bench.fails("bash", json!({"command": "echo x > ../outside/a"})).await;
        // Somebody outside moves the directory: rights stay with it, and what takes its place has none by its name alone.
        fs::rename(beside(&bench, "real"), beside(&bench, "moved")).unwrap();
        symlink(beside(&bench, "outside"), beside(&bench, "real")).unwrap();
        bench.call("bash", json!({"command": format!("echo x > {}", beside(&bench, "real/new").display())})).await;
        assert!(!beside(&bench, "outside/new").exists());
    });
}

#[test]
fn pith_and_the_supervisor_of_a_command_get_no_signals_from_it() {
    if !is_ready() {
        return;
    }
    run(async {
        // The signal that does nothing needs the same right as the others.
        let pith = format!("kill -0 {}", std::process::id());
        for (name, command) in [("a signal to the supervisor", "kill -0 $PPID"), ("a signal to pith", &pith)] {
            let mut results = Vec::new();
            for settings in [None, Some(workspace())] {
                let output = ground(settings.as_ref()).call("bash", json!({ "command": command })).await;
                results.push(!output.is_error);
            }
            show(name, results[0], results[1]);
        }
    });
}

#[test]
fn nobody_is_left_after_an_abort_whatever_a_command_does_to_stay() {
    if !is_ready() {
        return;
    }
    // A second subreaper takes orphans away from the supervisor; `setsid` and two forks leave every group.
    const STAY: &str = r#"
import os, sys, time, ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
def tell(): open("pids", "a").write(f"{os.getpid()}\n")
tell()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid(); tell()
        open("ready", "w").write("x")
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"#;
    if !has(std::process::Command::new("python3")
        .arg("--version")
        .output()
        .map(drop)
        .map_err(|_| "no python3".to_owned()))
    {
        return;
    }
    run(async {
        let bench = ground(Some(&workspace()));
        bench.file("stay.py", STAY);
        let ready = bench.path("ready");
        let task = tokio::spawn(
            bench.start("bash", json!({"command": "python3 stay.py & python3 -c 'import time; time.sleep(1000)'"})),
        );
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let pids: Vec<String> = fs::read_to_string(bench.path("pids")).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(pids.len(), 2);
        bench.cancel.cancel();
        assert!(text(&task.await.unwrap()).contains("Command aborted"));
        let is_alive = |pid: &String| {
            fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
        };
        eventually("nobody is left", || !pids.iter().any(is_alive));
        println!("{:<56} {:<16} {:<5} closed", "a process that stays after an abort", "workspace-write", "any");
    });
}
