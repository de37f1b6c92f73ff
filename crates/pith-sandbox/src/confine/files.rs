//! The files a policy grants, as Landlock rules.
//!
//! Rights of Landlock add up along a path, so nothing can be taken out of a granted directory. What must not be read is
//! left out instead: its siblings are granted one by one, all the way down from the root. Devices are left out like
//! that too, because root could read a disk, and with it every file, past their names.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use rustix::fs::{FileType, fstat};

use super::open::open;
use super::{ConfineError, Step};
use crate::policy::{NetworkRule, Policy};
use crate::settings::NetworkMode;

/// The newest level whose rights pith knows how to grant.
pub(super) const LEVEL: ABI = ABI::V6;

const DEVICES: &str = "/dev";

/// Devices that programs write to as a matter of course.
const ALWAYS_WRITABLE: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/proc/self/fd"];

/// The rules of a policy as the kernel has them, and what they were made from.
#[derive(Debug)]
pub(super) struct Rules {
    ruleset: OwnedFd,
    /// Directories whose entries were granted one by one. Entries that come later are not granted.
    listed: Vec<(PathBuf, Option<Listing>)>,
    /// What can be written. Rights belong to the directory that had the name, not to the name.
    writable: Vec<(PathBuf, Option<Identity>)>,
}

/// Which file a path stands for: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

/// A directory and when its entries last changed, in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing(Identity, i64, i64);

impl Rules {
    /// Hands the rules of a policy to the kernel.
    pub fn new(policy: &Policy) -> Result<Rules, ConfineError> {
        let Readable { granted, listed } = Readable::beside(&policy.unreadable);
        // Taken before the rules are made: what is replaced meanwhile makes them outdated.
        let writable = policy.writable.iter().map(|path| (path.clone(), identity(path))).collect();
        let created = rules(policy, &granted).map_err(|error| ConfineError::new(Step::Landlock, &error))?;
        let ruleset = Option::<OwnedFd>::from(created).ok_or_else(|| ConfineError {
            step: Step::Landlock,
            cause: io::Error::other("this kernel offers no Landlock"),
        })?;
        Ok(Rules { ruleset, listed, writable })
    }

    /// Whether rules made now would be the same.
    pub fn are_current(&self) -> bool {
        self.listed.iter().all(|(path, before)| listing(path) == *before)
            && self.writable.iter().all(|(path, before)| identity(path) == *before)
    }
}

impl AsFd for Rules {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ruleset.as_fd()
    }
}

/// Restricts the calling thread to rules that were made here or by another process. Needs `no_new_privs`.
#[allow(unsafe_code)]
pub(super) fn restrict(rules: BorrowedFd<'_>) -> Result<(), ConfineError> {
    const NO_FLAGS: libc::c_uint = 0;
    // SAFETY: the call takes two numbers and touches no memory of this process. The landlock crate can apply only
    // rules that the calling process has made.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), NO_FLAGS) };
    if result == 0 { Ok(()) } else { Err(ConfineError { step: Step::Landlock, cause: io::Error::last_os_error() }) }
}

/// Keeps every open file but the standard streams from the programs that this process starts: rules are asked when a
/// file is opened, not when it is used, and whoever started pith may have left one open.
#[allow(unsafe_code)]
pub(super) fn close_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: the call takes three numbers, closes nothing and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts the calling thread to nothing, to see what the kernel answers.
pub(crate) fn probe() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LEVEL))?
        .scope(Scope::from_all(LEVEL))?
        .create()?
        .restrict_self()
}

fn rules(policy: &Policy, readable: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LEVEL))?
        .scope(Scope::from_all(LEVEL))?;
    let refused = refused_network(policy.network);
    if !refused.is_empty() {
        ruleset = ruleset.handle_access(refused)?;
    }
    let mut created = ruleset.create()?;
    let reading = AccessFs::from_read(LEVEL);
    let writing = AccessFs::from_write(LEVEL);
    created = grant(created, open(Path::new("/")), AccessFs::ReadDir.into())?;
    for path in readable {
        created = grant(created, open(path), reading)?;
    }
    for path in ALWAYS_WRITABLE.iter().map(Path::new) {
        // Some of these are links of the system.
        let descriptor = PathFd::new(path).ok();
        created = grant(created, descriptor, writing | AccessFs::ReadFile | AccessFs::IoctlDev)?;
    }
    for path in &policy.writable {
        // Whoever lists a device wants to use it; whoever lists the root does not mean disks.
        let device = if path.starts_with(DEVICES) { AccessFs::ReadFile | AccessFs::IoctlDev } else { BitFlags::EMPTY };
        let all = if path == Path::new("/") { Readable::beside(&[]).granted } else { vec![path.clone()] };
        for path in all {
            created = grant(created, open(&path), writing | device)?;
        }
    }
    Ok(created)
}

/// What is refused of TCP; where there are no sockets, nothing of it could be used.
fn refused_network(network: NetworkRule) -> BitFlags<AccessNet> {
    match network.mode {
        _ if network.local => BitFlags::EMPTY,
        NetworkMode::On => BitFlags::EMPTY,
        NetworkMode::Domains => AccessNet::BindTcp.into(),
        NetworkMode::Off => AccessNet::from_all(LEVEL),
    }
}

/// Grants rights to a path and what is below it; a path that does not exist grants nothing.
fn grant(
    created: RulesetCreated,
    descriptor: Option<impl AsFd>,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Some(descriptor) = descriptor else { return Ok(created) };
    let rights = rights_to(&descriptor, rights);
    created.add_rule(PathBeneath::new(descriptor, rights))
}

/// Returns those of the rights that there are to a file of this kind.
pub(super) fn rights_to(file: impl AsFd, rights: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    let is_directory = fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
    if is_directory { rights } else { rights & AccessFs::from_file(LEVEL) }
}

/// Everything that can be read: the siblings of what cannot, at each step from the root down to it.
struct Readable {
    granted: Vec<PathBuf>,
    listed: Vec<(PathBuf, Option<Listing>)>,
}

impl Readable {
    fn beside(unreadable: &[PathBuf]) -> Readable {
        let (mut granted, mut listed) = (Vec::new(), Vec::new());
        let mut open = vec![PathBuf::from("/")];
        while let Some(directory) = open.pop() {
            // Taken before the entries are: what comes while they are listed makes the list outdated.
            let before = listing(&directory);
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
            listed.push((directory, before));
        }
        Readable { granted, listed }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fstat(open(path)?).ok().map(|stat| Identity(stat.st_dev, stat.st_ino))
}

fn listing(directory: &Path) -> Option<Listing> {
    let metadata = fs::metadata(directory).ok()?;
    Some(Listing(Identity(metadata.dev(), metadata.ino()), metadata.mtime(), metadata.mtime_nsec()))
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
        let Readable { granted, .. } = Readable::beside(&[home.join(".ssh"), home.join("work/key.pem")]);
        let inside: Vec<&PathBuf> = granted.iter().filter(|path| path.starts_with(&home)).collect();
        assert_eq!(inside, [&home.join("work/deep")]);
        assert!(!granted.iter().any(|path| home.starts_with(path)), "no ancestor is granted whole");
        assert!(granted.contains(&PathBuf::from("/usr")));
        assert!(!granted.iter().any(|path| path.starts_with(DEVICES)), "devices are granted by name");
    }
}
