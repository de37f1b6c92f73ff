//! Limits of one command: what the kernel holds each process to, and what its supervisor watches in all of them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use super::cgroup::{self, Cgroup};
use super::channel::Report;
use super::memory::{self, Shared};
use super::processes::Processes;
use super::tree;

/// How often the processes of a limited command are counted.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

const MIB: u64 = 1024 * 1024;

/// What the processes of one command may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// How many at the same time.
    pub processes: Option<u64>,
    /// Together, in MiB.
    pub memory_mb: Option<u64>,
    /// In one file, in MiB.
    pub file_mb: Option<u64>,
}

/// What a supervisor has ended a command for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// So many ran.
    Processes(u32),
    /// They used so many MiB.
    Memory(u32),
}

impl ProcessLimits {
    pub fn is_empty(&self) -> bool {
        *self == ProcessLimits::default()
    }

    /// The argument of a supervisor: three numbers, 0 for none.
    pub(super) fn as_argument(&self) -> String {
        let [processes, memory, file] = [self.processes, self.memory_mb, self.file_mb].map(Option::unwrap_or_default);
        format!("{processes},{memory},{file}")
    }

    pub(super) fn from_argument(text: &str) -> Option<ProcessLimits> {
        let mut numbers = text.split(',').map(|number| number.parse().ok());
        let mut next = || Some(numbers.next()??).map(|number: u64| Some(number).filter(|number| *number > 0));
        Some(ProcessLimits { processes: next()?, memory_mb: next()?, file_mb: next()? })
    }

    /// Where a cgroup is made for a command with these limits, if there is to be one.
    pub(super) fn cgroup_directory(&self) -> Option<PathBuf> {
        if self.is_of_all() { cgroup::directory_for(self) } else { None }
    }

    /// Whether all processes of a command are limited together.
    fn is_of_all(&self) -> bool {
        self.processes.is_some() || self.memory_mb.is_some()
    }

    /// The limits of each process of a command whose cgroup holds all of them to theirs.
    pub(super) fn of_each(self) -> ProcessLimits {
        ProcessLimits { file_mb: self.file_mb, ..ProcessLimits::default() }
    }

    /// Limits the calling process and what it starts. Called between fork and exec: makes system calls only.
    pub(super) fn apply(&self) -> io::Result<()> {
        if let Some(file) = self.file_mb {
            lower(Resource::Fsize, file.saturating_mul(MIB))?;
            // Whoever passes that limit is ended by a signal that would leave a core file.
            lower(Resource::Core, 0)?;
        }
        if let Some(memory) = self.memory_mb {
            // What one process may allocate before the next look at all of them.
            lower(Resource::Data, memory.saturating_mul(MIB))?;
        }
        Ok(())
    }

    /// Watches all processes below the supervisor, if that is asked for. Ends the command when it passes a limit.
    pub(super) fn watch(self, processes: Processes, shared: Shared, reports: UnixStream) -> io::Result<()> {
        if !self.is_of_all() {
            return Ok(());
        }
        // One that is made later, to freeze the command, knows no limits.
        let is_held = processes.cgroup.get().is_some();
        thread::Builder::new().stack_size(256 * 1024).spawn(move || {
            loop {
                let held = processes.cgroup.get().filter(|_| is_held);
                if let Some(exceeded) = held.map_or_else(|| self.exceeded(shared), Cgroup::exceeded) {
                    Report::Limited(exceeded).send(&reports);
                    processes.stop_and_kill();
                }
                thread::sleep(WATCH_INTERVAL);
            }
        })?;
        Ok(())
    }

    fn exceeded(&self, shared: Shared) -> Option<Exceeded> {
        let own = rustix::process::getpid();
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let processes = self.processes.map(|max| (tree::descendants(own).len() as u64, max));
        if let Some((processes, _)) = processes.filter(|(processes, max)| processes > max) {
            return Some(Exceeded::Processes(number(processes)));
        }
        let memory = self.memory_mb.map(|max| (memory::used(own, shared) / MIB, max));
        memory.filter(|(memory, max)| memory > max).map(|(memory, _)| Exceeded::Memory(number(memory)))
    }
}

/// Lowers a limit of the calling process; one that is lower stays.
fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(resource).maximum.map_or(to, |maximum| maximum.min(to));
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_reads_what_was_written() {
        let some = ProcessLimits { processes: Some(256), memory_mb: None, file_mb: Some(3) };
        for limits in [ProcessLimits::default(), some] {
            assert_eq!(ProcessLimits::from_argument(&limits.as_argument()), Some(limits));
        }
        assert_eq!(ProcessLimits::from_argument("1,2"), None);
    }
}
