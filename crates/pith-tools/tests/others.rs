//! What belongs to others, where commands have namespaces of their own: attempts on it, and work with what is theirs.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints a table")]

mod common;
#[path = "../../pith-sandbox/tests/others/mod.rs"]
mod rows;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Bench, enforced_with, run, supervisor, text};
use pith_sandbox::Support;
use pith_testkit::{has, skip};
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::Sandbox;
use rows::{Gap, ROWS, Row, Victim, WORK, WORK_OF_NAMESPACES, filled_in, program};
use serde_json::{Value, json};

/// Returns whether there are namespaces and what makes attempts; says so if not.
fn is_ready() -> bool {
    let needed =
        Support::check_this_kernel().and_then(|()| probe_namespaces(&supervisor())).and_then(|()| program().map(drop));
    let is_required = std::env::var_os("PITH_TEST_SANDBOX").is_some_and(|value| value == "require");
    assert!(!is_required || needed.is_ok(), "PITH_TEST_SANDBOX=require: {needed:?}");
    has(needed)
}

fn by() -> &'static str {
    if rustix::process::geteuid().is_root() { "root" } else { "user" }
}

/// A project, and a directory beside it; in namespaces if there are settings.
fn ground(settings: Option<&Value>) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        for name in ["outside", "home", "agent", "temp", "tmp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("outside/file"), "before").unwrap();
        options.sandbox = settings.map(|settings| Arc::new(Sandbox::Enforced(enforced_with(&root, settings, true))));
    })
}

fn root(bench: &Bench) -> PathBuf {
    bench.dir.path().canonicalize().unwrap()
}

/// A file in shared memory that nobody else has.
fn shared_file() -> String {
    static N_FILES: AtomicU32 = AtomicU32::new(0);
    let n = N_FILES.fetch_add(1, Ordering::Relaxed);
    format!("/dev/shm/pith-{}-{n}", std::process::id())
}

/// Whether a script has its effect, held to settings if there are some.
async fn has_effect(script: &str, effect: &str, settings: Option<&Value>) -> bool {
    let bench = ground(settings);
    let victim = Victim::start(&root(&bench));
    let variables = victim.variables(&root(&bench));
    let output = bench.call("bash", json!({ "command": filled_in(script, &variables) })).await;
    if effect.is_empty() {
        return !output.is_error;
    }
    let effect = filled_in(effect, &variables);
    let seen = Command::new("sh").args(["-c", &effect]).current_dir(bench.path("")).stderr(Stdio::null()).status();
    seen.unwrap().success()
}

#[test]
fn what_belongs_to_others_is_out_of_reach() {
    if !is_ready() {
        return;
    }
    run(async {
        let mut wrong = Vec::new();
        for Row { name, script, effect, gap } in ROWS {
            if !has_effect(script, effect, None).await {
                skip(&format!("{name} ({}): has no effect here without the sandbox either", by()));
                continue;
            }
            for profile in ["workspace-write", "read-only"] {
                let is_open = has_effect(script, effect, Some(&json!({ "profile": profile }))).await;
                println!("{name:<56} {profile:<16} {:<5} {}", by(), if is_open { "open" } else { "closed" });
                if is_open != (*gap == Gap::Everywhere) {
                    wrong.push(format!("{name} ({profile})"));
                }
            }
        }
        assert!(wrong.is_empty(), "not as expected: {wrong:#?}");
    });
}

#[test]
fn work_with_what_is_ones_own_goes_on() {
    if !is_ready() {
        return;
    }
    run(async {
        for (name, script) in WORK.iter().chain(WORK_OF_NAMESPACES) {
            if !has_effect(script, "", None).await {
                skip(&format!("{name} ({}): does not work here without the sandbox either", by()));
                continue;
            }
            assert!(has_effect(script, "", Some(&json!({"profile": "workspace-write"}))).await, "{name}");
        }
    });
}

#[test]
fn commands_of_a_session_share_memory_and_it_goes_with_the_session() {
    if !is_ready() {
        return;
    }
    run(async {
        let settings = json!({"profile": "workspace-write"});
        let (bench, other) = (ground(Some(&settings)), ground(Some(&settings)));
        let shared = shared_file();
        bench.ok("bash", json!({"command": format!("echo mine > {shared}; ipcmk -Q")})).await;
        let read = json!({"command": format!("cat {shared}; tail -n +2 /proc/sysvipc/msg | wc -l")});
        assert_eq!(bench.ok("bash", read.clone()).await, "mine\n1\n");
        let others = text(&other.call("bash", read).await);
        assert!(others.contains("No such file") && others.ends_with("0\n"), "{others}");
        assert!(!Path::new(&shared).exists());
        // File tools, which run outside, have neither that memory nor terminals.
        for path in [&shared, "/dev/tty", "/dev/ptmx"] {
            bench.fails("write", json!({"path": path, "content": "x"})).await;
        }
        assert!(!Path::new(&shared).exists());
    });
}

#[test]
fn a_project_in_shared_memory_stays_where_it_is() {
    if !is_ready() {
        return;
    }
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return skip("no shared memory") };
    run(async {
        let root = dir.path().canonicalize().unwrap();
        let above = root.parent().unwrap().join(format!("{}-beside", root.file_name().unwrap().display()));
        fs::write(&above, "theirs").unwrap();
        for name in ["work/.git", "home", "agent", "tmp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let bench = Bench::with(|options| {
            let enforced = enforced_with(&root, &json!({"profile": "workspace-write"}), true);
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced)));
        });
        let work = root.join("work").display().to_string();
        let beside = above.display();
        let command = format!("cd {work} && echo x > a && cat a && mkdir .pi/x; echo x > .git/config; cat {beside}");
        let told = text(&bench.call("bash", json!({ "command": command })).await);
        fs::remove_file(&above).unwrap();
        assert!(told.starts_with("x\n") && !told.contains("theirs"), "{told}");
        assert_eq!(fs::read_to_string(root.join("work/a")).unwrap(), "x\n");
        assert!(!root.join("work/.pi/x").exists() && !root.join("work/.git/config").is_file(), "{told}");
    });
}

#[test]
fn commands_run_whatever_devices_there_are() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = ground(Some(&json!({"profile": "workspace-write"})));
        let shared = shared_file();
        let command = format!("echo works > a; (echo x > {shared}) 2>/dev/null; cat a");
        assert_eq!(bench.ok("bash", json!({ "command": command })).await, "works\n");
        assert!(!Path::new(&shared).exists());
    });
}

#[test]
fn commands_run_with_odd_devices() {
    if !is_ready() || !rustix::process::geteuid().is_root() {
        return;
    }
    const DEVICES: &str =
        "for n in null zero full random urandom tty; do touch $DIR/$n && mount --bind /dev/$n $DIR/$n || exit 99; done";
    for layout in [
        "true",
        "mkdir /dev/real /dev/pts && ln -s real /dev/shm",
        "ln -s nowhere /dev/shm && touch /dev/pts",
        "mkdir /dev/shm && mount -t tmpfs -o ro,noexec none /dev/shm",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs none $DIR || exit 99; {DEVICES}; mount --rbind $DIR /dev || exit 99; {layout} || exit 99; \
             exec \"$0\" --exact commands_run_whatever_devices_there_are"
        );
        let mut again = Command::new("unshare");
        again.args(["-m", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
        again.env("DIR", dir.path()).env("PITH_TEST_SANDBOX", "require").env(rows::PROGRAM, program().unwrap());
        match again.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) if output.status.code() != Some(99) => {
                panic!(
                    "{layout}: {}{}",
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                )
            }
            Ok(_) | Err(_) => skip("no mounts can be made for odd devices"),
        }
    }
}

#[test]
fn the_same_holds_for_a_user_without_rights() {
    const NOBODY: u32 = 65_534;
    if !is_ready() || !rustix::process::geteuid().is_root() {
        return;
    }
    let tests = std::env::current_exe().unwrap();
    let mut again = Command::new(&tests);
    again.args(["--skip", "the_same_holds", "--nocapture"]).uid(NOBODY).gid(NOBODY).env_remove("PITH_SKIPPED");
    again.env(rows::PROGRAM, program().unwrap());
    let is_reachable = |program: &Path| Command::new(program).arg("--help").uid(NOBODY).gid(NOBODY).output().is_ok();
    if !is_reachable(&tests) || !is_reachable(&supervisor().program) {
        return skip("the programs of the tests are out of reach for other users");
    }
    let output = again.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    print!("{shown}");
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
}
