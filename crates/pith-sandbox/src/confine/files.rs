//! The files a policy grants, as Landlock rules.
//!
//! Rights of Landlock add up along a path, so nothing can be taken out of a granted directory. What must not be read is
//! left out instead: its siblings are granted one by one, all the way down from the root. Devices are left out like
//! that too, because root could read a disk, and with it every file, past their names.

use std::path::{Path, PathBuf};
use std::{fs, io};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::{ConfineError, Step};
use crate::policy::Policy;

/// The newest level whose rights pith knows how to grant.
const LEVEL: ABI = ABI::V6;

const DEVICES: &str = "/dev";

/// Devices and shared memory that programs write to as a matter of course.
const ALWAYS_WRITABLE: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/proc/self/fd",
];

/// Restricts the calling thread to the files of a policy.
pub(super) fn restrict(policy: &Policy) -> Result<(), ConfineError> {
    let restricted = rules(policy).and_then(RulesetCreated::restrict_self);
    let status = restricted.map_err(|error| ConfineError::new(Step::Landlock, &error))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        let cause = io::Error::other("this kernel offers no Landlock");
        return Err(ConfineError { step: Step::Landlock, cause });
    }
    Ok(())
}

/// Restricts the calling thread to nothing, to see what the kernel answers.
pub(crate) fn probe() -> Result<RestrictionStatus, RulesetError> {
    empty()?.restrict_self()
}

fn empty() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LEVEL))?
        .scope(Scope::from_all(LEVEL))?
        .create()
}

fn rules(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LEVEL))?
        .scope(Scope::from_all(LEVEL))?;
    if !policy.network.internet {
        ruleset = ruleset.handle_access(AccessNet::from_all(LEVEL))?;
    }
    let mut created = ruleset.create()?;
    let reading = AccessFs::from_read(LEVEL);
    let writing = AccessFs::from_write(LEVEL);
    created = grant(created, Path::new("/"), AccessFs::ReadDir.into())?;
    for path in readable(&policy.unreadable) {
        created = grant(created, &path, reading)?;
    }
    for path in ALWAYS_WRITABLE.iter().map(Path::new) {
        created = grant(created, path, writing | AccessFs::ReadFile | AccessFs::IoctlDev)?;
    }
    for path in &policy.writable {
        // Whoever lists a device wants to use it.
        let device = if path.starts_with(DEVICES) { AccessFs::ReadFile | AccessFs::IoctlDev } else { BitFlags::EMPTY };
        created = grant(created, path, writing | device)?;
    }
    Ok(created)
}

/// Grants rights to a path and what is below it; a path that does not exist grants nothing.
fn grant(created: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Ok(descriptor) = PathFd::new(path) else { return Ok(created) };
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(LEVEL) };
    created.add_rule(PathBeneath::new(descriptor, rights))
}

/// Everything that can be read: the siblings of what cannot, at each step from the root down to it.
fn readable(unreadable: &[PathBuf]) -> Vec<PathBuf> {
    let mut granted = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            // Rights belong to what a link leads to, and are decided there.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link || path == Path::new(DEVICES) || unreadable.contains(&path) {
                continue;
            }
            if unreadable.iter().any(|denied| denied.starts_with(&path)) {
                open.push(path);
            } else {
                granted.push(path);
            }
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_granted_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::create_dir_all(home.join("work/deep")).unwrap();
        fs::write(home.join("work/key.pem"), "").unwrap();
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("door")).unwrap();
        let granted = readable(&[home.join(".ssh"), home.join("work/key.pem")]);
        let inside: Vec<&PathBuf> = granted.iter().filter(|path| path.starts_with(&home)).collect();
        assert_eq!(inside, [&home.join("work/deep")]);
        assert!(!granted.iter().any(|path| home.starts_with(path)), "no ancestor is granted whole");
        assert!(granted.contains(&PathBuf::from("/usr")));
        assert!(!granted.iter().any(|path| path.starts_with(DEVICES)), "devices are granted by name");
    }
}
