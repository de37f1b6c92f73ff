//! Commands that use more than they may: they end, say which limit it was, and leave nothing behind. The programs here
//! are bounded themselves, so that a defect does not take the machine along.

#![cfg(target_os = "linux")]

mod common;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, enforced_with, eventually_async, is_alive, pids, run, supervisor, text};
use pith_agent::ToolOutput;
use pith_agent::control::limit_of;
use pith_protocol::LimitName;
use pith_testkit::has;
use pith_tools::CommandLimits;
use pith_tools::process::{ProcessLimits, probe_namespaces};
use pith_tools::sandbox::Sandbox;
use serde_json::json;

/// Far more than any of it takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn limited(limits: CommandLimits) -> Bench {
    let bench = Bench::new();
    bench.workbench.update_call_options(|options| options.limits = limits);
    bench
}

fn processes(processes: u64) -> CommandLimits {
    CommandLimits { processes: ProcessLimits { processes: Some(processes), ..Default::default() }, output_mb: None }
}

/// Fails unless the command was ended by a limit and nothing of it is left.
async fn assert_ended(bench: &Bench, output: &ToolOutput, name: LimitName) {
    assert!(output.is_error && text(output).contains(&format!("Command ended: limits.{name} (")), "{output:?}");
    assert_eq!(limit_of(output).map(|reached| reached.name), Some(name), "{output:?}");
    eventually_async(LONG, "nothing is left", || bench.workbench.jobs.count() == 0).await;
}

#[test]
fn a_command_that_multiplies_is_ended() {
    run(async {
        let bench = limited(processes(10));
        // Thirty at most, each in a session of its own, deaf to SIGTERM, and none of them for long.
        let command = "
            trap '' TERM
            for n in $(seq 30); do setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 50' & done
            wait
        ";
        let output = bench.start("bash", json!({"command": command})).await;
        assert_ended(&bench, &output, LimitName::Processes).await;
        assert!(limit_of(&output).is_some_and(|reached| reached.used > reached.max));
        let left = std::fs::read_to_string(bench.path("pids")).unwrap_or_default();
        assert!(left.lines().filter_map(|pid| pid.parse().ok()).all(|pid| !is_alive(pid)), "{left}");
    });
}

#[test]
fn a_daemon_that_multiplies_is_ended_too() {
    run(async {
        let bench = limited(processes(8));
        let command = "
            (setsid sh -c 'sleep 0.2; for n in $(seq 20); do sh -c \"echo \\$\\$ >> pids; exec sleep 50\" & done; wait' \
             > /dev/null 2>&1 &)
            echo started
        ";
        let output = bench.start("bash", json!({"command": command})).await;
        assert!(!output.is_error, "{output:?}");
        eventually_async(LONG, "nothing is left", || bench.workbench.jobs.count() == 0).await;
        let left = std::fs::read_to_string(bench.path("pids")).unwrap_or_default();
        assert!(left.lines().filter_map(|pid| pid.parse().ok()).all(|pid| !is_alive(pid)), "{left}");
    });
}

#[test]
fn commands_that_use_too_much_memory_together_are_ended() {
    run(async {
        let memory = ProcessLimits { memory_mb: Some(120), ..Default::default() };
        let bench = limited(CommandLimits { processes: memory, output_mb: None });
        // Each holds 60 MiB: none of them passes what one process may have.
        let hog = "(head -c 62914560 /dev/zero; sleep 50) | tail -c 62914560 > /dev/null";
        let output = bench.start("bash", json!({"command": format!("{hog} & {hog} & {hog} & wait")})).await;
        assert_ended(&bench, &output, LimitName::MemoryMb).await;
    });
}

#[test]
fn a_process_gets_no_more_memory_than_it_may() {
    run(async {
        let memory = ProcessLimits { memory_mb: Some(64), ..Default::default() };
        let bench = limited(CommandLimits { processes: memory, output_mb: None });
        let output = bench.start("bash", json!({"command": "head -c 400000000 /dev/zero | tail"})).await;
        assert!(limit_of(&output).is_some_and(|reached| reached.name == LimitName::MemoryMb), "{output:?}");
    });
}

/// Runs a Python program under a limit of 100 MiB: in namespaces, if it is to be confined to them.
async fn run_python(program: &str, is_confined: bool) -> (Bench, ToolOutput) {
    let bench = Bench::with(|options| {
        let root = options.temp.canonicalize().expect("it exists");
        for name in ["home", "agent", "tmp"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        let settings = json!({"profile": "workspace-write"});
        let sandbox = is_confined.then(|| Sandbox::Enforced(enforced_with(&root, &settings, true)));
        options.sandbox = sandbox.map(Arc::new);
    });
    let memory = ProcessLimits { memory_mb: Some(100), ..Default::default() };
    let limits = CommandLimits { processes: memory, output_mb: None };
    bench.workbench.update_call_options(|options| options.limits = limits);
    bench.file("program.py", program);
    let output = bench.start("bash", json!({"command": "exec python3 program.py", "timeout": 60})).await;
    (bench, output)
}

fn has_python_and(namespaces: bool) -> bool {
    let python = std::process::Command::new("python3").arg("--version").output();
    let needed = python.map(drop).map_err(|_| "no python3".to_owned());
    has(needed.and_then(|()| if namespaces { probe_namespaces(&supervisor()) } else { Ok(()) }))
}

/// What of memory is a page of no process: a file in memory, one in `/dev/shm`, and memory of System V.
const MEMORY_FILE: &str = "f = os.memfd_create('x')";
const SHARED_FILE: &str = "n = f'/dev/shm/pith-{os.getpid()}'; f = os.open(n, os.O_CREAT | os.O_RDWR); os.unlink(n)";
const WRITE: &str = "[os.write(f, bytes(1 << 20)) for _ in range(160)]; time.sleep(50)";
const SEGMENT: &str = "
import ctypes
c = ctypes.CDLL(None)
c.shmat.restype = ctypes.c_void_p
n = 160 << 20
a = c.shmat(c.shmget(0, ctypes.c_size_t(n), 0o1600), None, 0)
ctypes.memset(a, 1, n)
c.shmdt(ctypes.c_void_p(a))
time.sleep(50)";

#[test]
fn memory_that_no_process_has_mapped_is_counted() {
    run(async {
        for (hoard, is_confined) in [
            (format!("{MEMORY_FILE}; {WRITE}"), false),
            (format!("{MEMORY_FILE}; {WRITE}"), true),
            (format!("{SHARED_FILE}; {WRITE}"), false),
            (SEGMENT.to_owned(), true),
        ] {
            if !has_python_and(is_confined) {
                continue;
            }
            let (bench, output) = run_python(&format!("import os, time\n{hoard}"), is_confined).await;
            assert_ended(&bench, &output, LimitName::MemoryMb).await;
        }
    });
}

#[test]
fn files_in_shared_memory_grow_no_further_than_the_limit_and_are_counted_from_when_the_command_began() {
    if !has_python_and(true) {
        return;
    }
    run(async {
        // One that is closed has no process at all.
        let fill = "
import os, time
try:
    with open('/dev/shm/a', 'wb', 0) as f: [f.write(bytes(1 << 20)) for _ in range(160)]
finally:
    time.sleep(50)";
        let (bench, output) = run_python(fill, true).await;
        assert_ended(&bench, &output, LimitName::MemoryMb).await;
        let size = "stat -c %s /dev/shm/a; stat -fc '%b * %S' /dev/shm";
        let after = text(&bench.start("bash", json!({"command": size})).await);
        let left: u64 = after.lines().next().expect("a size").parse().expect("a number");
        assert!(left > 0 && left <= 100 << 20, "{after}");
        // What was left is not the next command's, which may use as much again.
        let next = "head -c 50000000 /dev/zero > /dev/shm/b && sleep 0.5 && stat -c %s /dev/shm/b";
        assert_eq!(text(&bench.start("bash", json!({"command": next})).await), "50000000\n");
        bench.workbench.update_call_options(|options| options.limits = CommandLimits::default());
        let whole = "head -c 150000000 /dev/zero > /dev/shm/c && stat -c %s /dev/shm/c";
        assert_eq!(text(&bench.start("bash", json!({"command": whole})).await), "150000000\n");
    });
}

#[test]
fn memory_that_is_mapped_is_counted_once() {
    if !has_python_and(false) {
        return;
    }
    run(async {
        let map = "
import mmap, os, time
f = os.memfd_create('x')
os.truncate(f, 60 << 20)
m = mmap.mmap(f, 60 << 20)
for at in range(0, 60 << 20, 4096): m[at] = 1
time.sleep(0.5)
print('fine')";
        let (_, output) = run_python(map, false).await;
        assert_eq!(text(&output), "fine\n");
    });
}

#[test]
fn endless_output_is_ended() {
    run(async {
        let bench = limited(CommandLimits { output_mb: Some(2), ..Default::default() });
        let output = bench.start("bash", json!({"command": "yes"})).await;
        assert_ended(&bench, &output, LimitName::OutputMb).await;
        let output = bench.start("bash", json!({"command": "head -c 1000000 /dev/zero | tr '\\0' x"})).await;
        assert!(!output.is_error, "a megabyte may be written: {output:?}");
    });
}

#[test]
fn a_file_grows_no_further_than_it_may() {
    run(async {
        let file = ProcessLimits { file_mb: Some(1), ..Default::default() };
        let bench = limited(CommandLimits { processes: file, output_mb: None });
        let output = bench.start("bash", json!({"command": "head -c 5000000 /dev/zero > large"})).await;
        assert_ended(&bench, &output, LimitName::FileMb).await;
        assert_eq!(std::fs::metadata(bench.path("large")).expect("it exists").len(), 1 << 20);
    });
}

#[test]
fn a_command_within_its_limits_is_not_touched() {
    run(async {
        let all = ProcessLimits { processes: Some(50), memory_mb: Some(500), file_mb: Some(5) };
        let bench = limited(CommandLimits { processes: all, output_mb: Some(5) });
        let output = bench.start("bash", json!({"command": "echo fine | cat > small; cat small"})).await;
        assert_eq!((text(&output).as_str(), output.details.clone()), ("fine\n", None));
    });
}

#[test]
fn a_limited_command_that_is_aborted_leaves_nothing() {
    run(async {
        let bench = limited(processes(50));
        // Deaf to SIGTERM, and a process that keeps the pipe open.
        let command = "trap '' TERM; setsid sleep 50 & echo $! >> pids; echo $$ >> pids; while :; do sleep 1; done";
        let call = tokio::spawn(bench.start("bash", json!({"command": command})));
        eventually_async(LONG, "both run", || pids(&bench.path("pids"), 2).is_some()).await;
        let pids = pids(&bench.path("pids"), 2).expect("both");
        bench.cancel.cancel();
        let output = call.await.expect("no panic");
        assert!(text(&output).ends_with("Command aborted"), "{output:?}");
        assert!(pids.iter().all(|pid| !is_alive(*pid)));
    });
}

#[test]
fn a_frozen_command_stands_still_and_goes_on() {
    run(async {
        let bench = Bench::new();
        let command = "echo $$ > pids; while [ ! -e go ]; do sleep 0.01; done; echo gone on";
        let call = tokio::spawn(bench.start("bash", json!({"command": command, "timeout": 60})));
        eventually_async(LONG, "it runs", || pids(&bench.path("pids"), 1).is_some()).await;
        let shell = pids(&bench.path("pids"), 1).expect("it runs")[0];
        bench.workbench.jobs.freeze();
        eventually_async(LONG, "it is stopped", || is_frozen(shell)).await;
        bench.file("go", "");
        assert!(is_frozen(shell));
        bench.workbench.jobs.thaw();
        let output = call.await.expect("no panic");
        assert_eq!(text(&output), "gone on\n");
    });
}

#[test]
fn a_frozen_command_can_be_aborted() {
    run(async {
        let bench = Bench::new();
        let command = "trap 'echo tidied; exit' TERM; echo $$ > pids; while :; do sleep 0.01; done";
        let call = tokio::spawn(bench.start("bash", json!({ "command": command })));
        eventually_async(LONG, "it runs", || pids(&bench.path("pids"), 1).is_some()).await;
        let shell = pids(&bench.path("pids"), 1).expect("it runs")[0];
        bench.workbench.jobs.freeze();
        eventually_async(LONG, "it is stopped", || is_frozen(shell)).await;
        bench.cancel.cancel();
        let output = call.await.expect("no panic");
        assert!(output.is_error && !is_alive(shell), "{output:?}");
    });
}

#[test]
fn a_command_that_is_started_while_others_are_frozen_begins_when_they_go_on() {
    run(async {
        let bench = Bench::new();
        bench.workbench.jobs.freeze();
        let aborted = tokio::spawn(bench.start("bash", json!({"command": "touch ran"})));
        eventually_async(LONG, "it is waiting", || bench.workbench.jobs.count() == 1).await;
        bench.cancel.cancel();
        assert!(text(&aborted.await.expect("no panic")).ends_with("Command aborted"));
        assert!(!bench.path("ran").exists(), "it ran while others were frozen");

        let bench = Bench::new();
        bench.workbench.jobs.freeze();
        let command = json!({"command": "touch ran; echo done", "timeout": 60});
        let call = tokio::spawn(bench.start("bash", command));
        eventually_async(LONG, "it is waiting", || bench.workbench.jobs.count() == 1).await;
        bench.workbench.jobs.thaw();
        assert_eq!(text(&call.await.expect("no panic")), "done\n");
        assert!(bench.path("ran").exists());
    });
}

/// Whether a process stands still: stopped by a signal, or in a cgroup that is frozen.
fn is_frozen(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_stopped = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
    is_stopped || cgroup_of(pid).is_some_and(|cgroup| read(&cgroup.join("cgroup.events")).contains("frozen 1"))
}

/// The cgroup that pith has made for a process.
fn cgroup_of(pid: u32) -> Option<PathBuf> {
    let groups = read(Path::new(&format!("/proc/{pid}/cgroup")));
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| Path::new(root).join(&path));
    roots.into_iter().find(|cgroup| path.contains("pith-") && cgroup.join("cgroup.events").exists())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_cgroup_of_a_frozen_command_is_gone_with_it() {
    run(async {
        let bench = Bench::new();
        let command = "trap '' TERM; sleep 60 & echo $$ $! > pids; while :; do sleep 0.01; done";
        let call = tokio::spawn(bench.start("bash", json!({ "command": command })));
        eventually_async(LONG, "it runs", || read(&bench.path("pids")).split_whitespace().count() == 2).await;
        let pids: Vec<u32> =
            read(&bench.path("pids")).split_whitespace().map(|pid| pid.parse().expect("an id")).collect();
        bench.workbench.jobs.freeze();
        eventually_async(LONG, "it is stopped", || pids.iter().all(|pid| is_frozen(*pid))).await;
        let Some(cgroup) = cgroup_of(pids[0]) else {
            // This system lets nobody make a cgroup.
            bench.cancel.cancel();
            return drop(call.await);
        };
        assert_eq!(cgroup_of(pids[1]).as_ref(), Some(&cgroup));
        bench.cancel.cancel();
        call.await.expect("no panic");
        assert!(pids.iter().all(|pid| !is_alive(*pid)));
        eventually_async(LONG, "its cgroup is gone", || !cgroup.exists()).await;
    });
}

/// Where cgroups can be made, if anywhere.
fn cgroup_base() -> Option<PathBuf> {
    let groups = read(Path::new("/proc/self/cgroup"));
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| Path::new(root).join(&path));
    let base = roots.into_iter().find(|root| root.join("cgroup.procs").exists())?;
    let probe = base.join(format!("pith-test-{}", std::process::id()));
    std::fs::create_dir(&probe).ok()?;
    std::fs::remove_dir(&probe).expect("removed");
    Some(base)
}

/// No limits are set here, because few systems have controllers to offer.
#[test]
fn a_command_begins_in_its_cgroup_which_is_gone_when_pith_is() {
    let Some(base) = cgroup_base() else { return eprintln!("skipped: this system lets nobody make a cgroup") };
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let supervisor = common::supervisor();
    let mut child = std::process::Command::new(supervisor.program)
        .arg(supervisor.argument)
        .args(["end", "free", "empty", "start", "0,0,0"])
        .arg(&base)
        .args(["sh", "-c", "trap '' TERM; cat /proc/self/cgroup; echo; exec sleep 60"])
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a supervisor");
    let output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let lines: Vec<String> = output.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let name = format!("pith-{}-{}", std::process::id(), child.id());
    assert!(lines.iter().any(|line| line.starts_with("0::") && line.ends_with(&name)), "{lines:?}");
    assert!(base.join(&name).exists());
    drop(ours);
    child.wait().expect("its end");
    assert!(!base.join(&name).exists());
}
