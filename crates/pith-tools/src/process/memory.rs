//! How much memory a command uses: pages of its processes, and what is in memory without being a page of a process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pith_sandbox::namespaces::{limit_shared_memory, shared_memory};
use rustix::process::Pid;

use super::confinement::Confinement;
use super::limits::ProcessLimits;
use super::tree;

/// The unit of the sizes in which the system gives blocks of files.
const BLOCK: u64 = 512;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Whose memory is shared where a command runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shared {
    /// Everybody's. What the command leaves there in closed files cannot be told from the rest.
    OfTheMachine,
    /// The session's, and so much of it was used before the command began.
    OfTheSession { before: u64 },
}

impl Shared {
    /// Finds out what a command shares that the calling process, which has joined its namespaces, is about to start. In
    /// namespaces no more can be shared than the command may use.
    pub fn of_command(confinement: Confinement, limits: &ProcessLimits) -> Shared {
        if confinement != Confinement::Apart {
            return Shared::OfTheMachine;
        }
        limit_shared_memory(limits.memory_mb.map(|mib| mib.saturating_mul(MIB)));
        // Who is not limited is not asked.
        Shared::OfTheSession { before: limits.memory_mb.map_or(0, |_| shared_memory()) }
    }

    /// Bytes that are used since the command began.
    fn grown(self) -> u64 {
        match self {
            Shared::OfTheMachine => 0,
            Shared::OfTheSession { before } => shared_memory().saturating_sub(before),
        }
    }

    /// Whether an open file, by what the system calls it, is in memory and not counted otherwise.
    fn is_uncounted(self, name: &Path) -> bool {
        let is_shared = matches!(self, Shared::OfTheMachine) && name.starts_with("/dev/shm");
        is_shared || name.as_os_str().as_encoded_bytes().starts_with(b"/memfd:")
    }
}

/// Returns how many bytes all processes below `root` use together.
pub(super) fn used(root: Pid, shared: Shared) -> u64 {
    let (mut own, mut mapped, mut files) = (0, 0, BTreeMap::new());
    for process in tree::descendants(root) {
        let process = format!("/proc/{}", process.as_raw_nonzero());
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        own += field(&status, "RssAnon:") + field(&status, "RssFile:");
        mapped += field(&status, "RssShmem:");
        for file in fs::read_dir(format!("{process}/fd")).into_iter().flatten().flatten() {
            let is_uncounted = fs::read_link(file.path()).is_ok_and(|name| shared.is_uncounted(&name));
            if is_uncounted && let Ok(file) = fs::metadata(file.path()) {
                files.insert((file.dev(), file.ino()), file.blocks() * BLOCK);
            }
        }
    }
    // What is mapped is mostly part of the files and of what is shared, and must not be counted twice.
    own + mapped.max(files.values().sum::<u64>() + shared.grown())
}

/// Returns a field of a process' status in bytes; 0 if there is none.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    number.unwrap_or(0) * KIB
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_by_their_names() {
        let status = "Name:\tRssAnon: 7 kB\nRssAnon:\t     12 kB\nRssShmem:\t0 kB\n";
        assert_eq!(
            [field(status, "RssAnon:"), field(status, "RssFile:"), field(status, "RssShmem:")],
            [12 * KIB, 0, 0]
        );
    }
}
