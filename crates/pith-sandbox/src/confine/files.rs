//! The files a policy grants, as Landlock rules.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use rustix::fs::{FileType, fstat};

use super::open::open;
use super::readable::Readable;
use super::{ConfineError, Step};
use crate::policy::{NetworkRule, Policy};
use crate::reading::Reading;
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
    for_commands: OwnedFd,
    /// There if file tools, which know what they list, get other rights than commands.
    for_file_tools: Option<OwnedFd>,
    readable: Readable,
    /// What can be written. Rights belong to the directory that had the name, not to the name.
    writable: Vec<(PathBuf, Option<Identity>)>,
}

/// Which file a path stands for: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

/// Which directories can be listed that are not open as a whole. A right to list counts for all that is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// All of them: something else covers what is closed in a home.
    All,
    /// Those that hold no home.
    WithoutHomes,
}

impl Rules {
    /// Hands the rules of a policy to the kernel.
    pub fn new(policy: &Policy) -> Result<Rules, ConfineError> {
        let readable = Readable::of(&policy.reading);
        // Taken before the rules are made: what is replaced meanwhile makes them outdated.
        let writable = policy.writable.iter().map(|path| (path.clone(), identity(path))).collect();
        let make = |lists| {
            let created = rules(policy, &readable, lists).map_err(|error| ConfineError::new(Step::Landlock, &error))?;
            Option::<OwnedFd>::from(created).ok_or_else(|| ConfineError {
                step: Step::Landlock,
                cause: io::Error::other("this kernel offers no Landlock"),
            })
        };
        let hides_by_mounts = policy.namespaces || policy.reading.homes().is_empty();
        let for_commands = make(if hides_by_mounts { Lists::All } else { Lists::WithoutHomes })?;
        let for_file_tools = if hides_by_mounts { None } else { Some(make(Lists::All)?) };
        Ok(Rules { for_commands, for_file_tools, readable, writable })
    }

    /// Whether rules made now would be the same.
    pub fn are_current(&self) -> bool {
        self.readable.is_current() && self.writable.iter().all(|(path, before)| identity(path) == *before)
    }

    pub fn for_commands(&self) -> BorrowedFd<'_> {
        self.for_commands.as_fd()
    }

    pub fn for_file_tools(&self) -> BorrowedFd<'_> {
        self.for_file_tools.as_ref().unwrap_or(&self.for_commands).as_fd()
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

fn rules(policy: &Policy, readable: &Readable, lists: Lists) -> Result<RulesetCreated, RulesetError> {
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
    let listed = match lists {
        Lists::All => vec![Path::new("/")],
        Lists::WithoutHomes => readable.listed.iter().map(PathBuf::as_path).chain([Path::new(DEVICES)]).collect(),
    };
    for path in listed {
        created = grant(created, open(path), AccessFs::ReadDir.into())?;
    }
    for path in &readable.granted {
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
        let all = if path == Path::new("/") { Readable::of(&Reading::default()).granted } else { vec![path.clone()] };
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

fn identity(path: &Path) -> Option<Identity> {
    fstat(open(path)?).ok().map(|stat| Identity(stat.st_dev, stat.st_ino))
}
