//! Terminals and shared memory that commands have for themselves, in the place of those of the machine.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_remount};

use super::mounts::{by_descriptor, clone_tree, open, put};
use super::plan::Plan;
use super::{NamespaceError, failed};

const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";

/// Returns where commands have something of their own, which they may write to whatever a policy says.
pub(super) fn own(plan: &Plan) -> Vec<PathBuf> {
    let there = [TERMINALS, SHARED_MEMORY].iter().filter_map(|path| fs::canonicalize(path).ok());
    // Whoever lists one of them wants that of the machine.
    there.filter(|path| path.is_dir() && !plan.writable.contains(path)).collect()
}

/// Covers terminals and shared memory of the machine by others.
pub(super) fn cover(plan: &Plan) -> Result<(), NamespaceError> {
    for path in own(plan) {
        let why = |error: rustix::io::Errno| failed(path.display(), error);
        let Some(covered) = open(&path)? else { continue };
        // A project may lie in the memory that is covered.
        let kept: Vec<(&PathBuf, OwnedFd)> = below(plan, &path)
            .map(|root| {
                Ok(open(root)?.map(|file| clone_tree(&file).map_err(why)).transpose()?.map(|tree| (root, tree)))
            })
            .filter_map(Result::transpose)
            .collect::<Result<_, NamespaceError>>()?;
        let (kind, flags, options) = if path == Path::new(TERMINALS) {
            (c"devpts", MountFlags::NOSUID | MountFlags::NOEXEC, c"newinstance,ptmxmode=0666,mode=620")
        } else {
            (c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
        };
        mount(kind, by_descriptor(&covered), kind, flags, Some(options)).map_err(why)?;
        for (root, tree) in kept {
            fs::create_dir_all(root).map_err(|error| failed(root.display(), error))?;
            if let Some(at) = open(root)? {
                put(&tree, &at).map_err(why)?;
            }
        }
    }
    Ok(())
}

/// The directories of a plan that lie below one that is covered, the outer of two first.
fn below<'a>(plan: &'a Plan, covered: &Path) -> impl Iterator<Item = &'a PathBuf> {
    let covered = covered.to_owned();
    plan.writable.iter().filter(move |root| root.starts_with(&covered) && **root != covered)
}

/// Limits what can be put into the shared memory of the calling process' namespaces: so many bytes more than there are,
/// or half of the machine's memory. Where it cannot be limited it is still counted.
pub fn limit_shared_memory(more: Option<u64>) {
    let Ok(now) = rustix::fs::statvfs(SHARED_MEMORY) else { return };
    let whole = rustix::system::sysinfo();
    let half = whole.totalram as u64 * u64::from(whole.mem_unit) / now.f_frsize / 2;
    let used = now.f_blocks.saturating_sub(now.f_bfree);
    let size = more.map_or(half, |more| half.min(used + more / now.f_frsize));
    if size != now.f_blocks {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let size = CString::new(format!("size={}", size * now.f_frsize)).unwrap_or_default();
        let _ = mount_remount(SHARED_MEMORY, flags, size.as_c_str());
    }
}

/// Returns how many bytes are shared in the calling process' namespaces: files of `/dev/shm`, and memory of System V.
pub fn shared_memory() -> u64 {
    let files = rustix::fs::statvfs(SHARED_MEMORY);
    let files = files.map_or(0, |now| now.f_blocks.saturating_sub(now.f_bfree) * now.f_frsize);
    files + system_v(&fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default())
}

/// Adds up what segments take: in memory, and what of them was swapped out.
fn system_v(table: &str) -> u64 {
    let column = |line: &str, name: usize| line.split_ascii_whitespace().nth(name)?.parse::<u64>().ok();
    table.lines().skip(1).flat_map(|line| [column(line, 14), column(line, 15)]).flatten().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_added_up() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                     \x20        1          0   600              41943040     7     7      0     0     0     0     0          0          0          0              41943040                  4096\n\
                     \x20        2          1   600                  4096     7     7      0     0     0     0     0          0          0          0                  4096                     0\n";
        assert_eq!(system_v(table), 41_943_040 + 4096 + 4096);
        assert_eq!(system_v(""), 0);
    }
}
