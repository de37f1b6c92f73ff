//! Finds living processes in `/proc`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often `/proc` is read while waiting.
const TICK: Duration = Duration::from_millis(5);

/// A live process.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: i32,
    /// Arguments joined by spaces.
    pub command: String,
}

/// Returns the processes whose environment or arguments contain `marker`. Zombies do not count.
pub fn with_marker(marker: &str) -> Vec<Process> {
    let own = std::process::id().cast_signed();
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != own).filter_map(|pid| find(pid, marker)).collect()
}

fn find(pid: i32, marker: &str) -> Option<Process> {
    // Both files are empty for zombies.
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has_marker = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
    let command_text = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
    (has_marker(&command) || has_marker(&environment)).then_some(Process { pid, command: command_text })
}

/// Waits until a process with `marker` exists, and returns it.
#[track_caller]
pub fn wait_for(marker: &str, timeout: Duration) -> Process {
    let deadline = Instant::now() + timeout;
    loop {
        match with_marker(marker).into_iter().next() {
            Some(process) => return process,
            None if Instant::now() < deadline => thread::sleep(TICK),
            None => panic!("no process with {marker:?} appeared within {timeout:?}"),
        }
    }
}

/// Fails unless every process with `marker` ends within a second of this process's own time: that many sleeps take a
/// second on an idle machine. A busy one stretches them as much as the work that is waited for.
#[track_caller]
pub fn no_process_after_a_second(marker: &str) {
    let began = Instant::now();
    for _ in 0..Duration::from_secs(1).as_millis() / TICK.as_millis() {
        if with_marker(marker).is_empty() {
            return;
        }
        thread::sleep(TICK);
    }
    let left = with_marker(marker);
    assert!(left.is_empty(), "still alive after a second, which took {:?} here: {left:#?}", began.elapsed());
}

/// Fails unless every process with `marker` ends within the given time.
#[track_caller]
pub fn no_process_with(marker: &str, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    loop {
        match with_marker(marker) {
            processes if processes.is_empty() => return,
            _ if Instant::now() < deadline => thread::sleep(TICK),
            processes => panic!("still alive after {timeout:?}: {processes:#?}"),
        }
    }
}

/// Kills what is left, so that a failed test leaves no process.
pub(crate) fn kill_with_marker(marker: &str) {
    for process in with_marker(marker) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// A line of `/proc/<pid>/status` in KiB, such as `VmRSS` or `VmHWM`.
pub(crate) fn memory_kib(pid: i32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
