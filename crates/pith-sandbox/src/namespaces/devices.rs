//! Terminals and shared memory that commands have for themselves, in the place of those of the machine.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mounts::{by_descriptor, clone_tree, open, put};
use super::plan::Plan;
use super::{NamespaceError, failed};

const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";

/// Returns where commands have something of their own, which they may write to whatever a policy says.
pub(super) fn own(plan: &Plan) -> Vec<PathBuf> {
    let there = [TERMINALS, SHARED_MEMORY].iter().filter_map(|path| fs::canonicalize(path).ok());
    // Whoever lists one of them wants that of the machine.
    there.filter(|path| !plan.writable.contains(path)).collect()
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
