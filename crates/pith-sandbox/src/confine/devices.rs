//! Terminals and shared memory, which commands may use and file tools may not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use landlock::{ABI, Access, AccessFs, BitFlags, PathFd};

use super::files::{LEVEL, rights_to};
use super::{ConfineError, Step};

const DEVICES: [&str; 4] = ["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Adds terminals and shared memory to rules: those that the calling process sees, which may be of its own namespaces.
pub(super) fn grant(rules: BorrowedFd<'_>) -> Result<(), ConfineError> {
    let all = AccessFs::from_write(LEVEL) | AccessFs::ReadFile | AccessFs::IoctlDev;
    // What an older kernel does not know, its rules do not ask for.
    let known = [all, all & !AccessFs::IoctlDev, all & AccessFs::from_all(ABI::V1)];
    for path in DEVICES {
        let Ok(descriptor) = PathFd::new(path) else { continue };
        let added = known.iter().map(|rights| add_rule(rules, &descriptor, rights_to(&descriptor, *rights)));
        let is_known = |result: &io::Result<()>| {
            result.as_ref().map_err(io::Error::raw_os_error).err().flatten() != Some(libc::EINVAL)
        };
        let first = added.into_iter().find(is_known).unwrap_or_else(|| Err(io::ErrorKind::Unsupported.into()));
        first.map_err(|cause| ConfineError { step: Step::Landlock, cause })?;
    }
    Ok(())
}

/// Adds a rule for a file or directory. The landlock crate can add only to rules that the calling process has made.
#[allow(unsafe_code)]
fn add_rule(rules: BorrowedFd<'_>, file: impl AsFd, rights: BitFlags<AccessFs>) -> io::Result<()> {
    const PATH_BENEATH: libc::c_uint = 1;
    const NO_FLAGS: libc::c_uint = 0;
    let (rights, file) = (rights.bits().to_ne_bytes(), file.as_fd().as_raw_fd().to_ne_bytes());
    let mut rule = [0; size_of::<u64>() + size_of::<libc::c_int>()];
    rule[..rights.len()].copy_from_slice(&rights);
    rule[rights.len()..].copy_from_slice(&file);
    let arguments = (rules.as_raw_fd(), PATH_BENEATH, rule.as_ptr(), NO_FLAGS);
    // SAFETY: the call reads the rule, which has the two members and the size that it expects, and writes nothing.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, arguments.0, arguments.1, arguments.2, arguments.3) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
