//! Finds processes by ancestry or session, and signals them.
//!
//! On Linux this reads `/proc`. Elsewhere only the process group is reached.

use rustix::process::{Pid, Signal, kill_process};

/// Kills every process of a session.
pub(super) fn kill_session(session: Pid) {
    for process in processes().filter(|process| process.session == session.as_raw_nonzero().get()) {
        signal(process.pid, Signal::KILL);
    }
}

/// Returns all living processes below `root`, parents before children.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut rest: Vec<Process> = processes().filter(|process| !process.is_zombie).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parent = root.as_raw_nonzero().get();
    let mut at = 0;
    loop {
        found.extend(rest.extract_if(.., |process| process.parent == parent));
        let Some(next) = found.get(at) else { break };
        parent = next.pid;
        at += 1;
    }
    found.iter().filter_map(|process| Pid::from_raw(process.pid)).collect()
}

/// Returns whether a process group has a living member; zombies do not count.
pub(super) fn group_is_alive(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return false;
    }
    !cfg!(target_os = "linux")
        || processes().any(|process| process.group == group.as_raw_nonzero().get() && !process.is_zombie)
}

/// Returns whether a process lives; a zombie does not.
pub(super) fn is_alive(pid: Pid) -> bool {
    if rustix::process::test_kill_process(pid).is_err() {
        return false;
    }
    let pid = pid.as_raw_nonzero().get();
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse(pid, &stat).is_some_and(|process| !process.is_zombie),
        Err(_) => !cfg!(target_os = "linux"),
    }
}

/// Sends a signal; a process that has ended already is no error.
pub(super) fn send(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        send(pid, signal);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    is_zombie: bool,
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = if cfg!(target_os = "linux") { std::fs::read_dir("/proc").ok() } else { None };
    entries.into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        parse(pid, &stat)
    })
}

/// Reads `pid (name) state parent group session …`. The name may contain anything, so the last `)` ends it.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let after_name = memchr::memrchr(b')', stat)? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, group, session, is_zombie: state == "Z" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_confuse_the_fields() {
        let expected = Process { pid: 7, parent: 3, group: 4, session: 5, is_zombie: false };
        assert_eq!(parse(7, b"7 (a) Z 1 (b) S 3 4 5 0 -1"), Some(expected));
        assert!(parse(7, b"7 (x) Z 3 4 5").unwrap().is_zombie);
        assert_eq!(parse(7, b"7 (x"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn children_are_found_below_us() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants(rustix::process::getpid()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(rustix::process::getpid()).contains(&pid));
    }
}
