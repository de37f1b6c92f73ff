//! The mounts of a plan: everything read-only but what can be written, protected paths held, sockets covered.
//!
//! A path of a plan is opened once, without following links, and mounts are made on what was opened: a command that can
//! write above must not be able to lead a mount elsewhere.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, fstat,
    fstatvfs, openat2, statx,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, mount_remount, move_mount,
    open_tree,
};

use super::plan::Plan;
use super::view::{self, View};
use super::{NamespaceError, failed};

/// `ST_NOSYMFOLLOW`, which the library has no name for.
const NO_LINKS: StatVfsMountFlags = StatVfsMountFlags::from_bits_retain(0x2000);

/// Arranges the mounts of a namespace that was just made.
pub(super) fn arrange(plan: &Plan, view: &View) -> Result<(), NamespaceError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| failed("private mounts", error))?;
    for root in plan.writable.iter().filter(|root| *root != Path::new("/")) {
        // What does not exist cannot be written either.
        if let Some(root_fd) = open(root)? {
            bind(&root_fd).map_err(|error| failed(root.display(), error))?;
        }
    }
    hold(plan)?;
    for path in &plan.masked {
        if let Some(masked) = open(path)? {
            mask(&masked).map_err(|error| failed(path.display(), error))?;
        }
    }
    view::arrange(view)?;
    make_read_only(plan)
}

/// Makes every protected path a mount, if it is none yet, and every directory on the way to it.
pub(super) fn hold(plan: &Plan) -> Result<(), NamespaceError> {
    for held in plan.held() {
        let why = |error: Errno| failed(held.path.display(), error);
        let Some(file) = open(&held.path)? else { continue };
        if is_mount(&file).map_err(why)? && (!held.is_read_only || is_read_only(&file).map_err(why)?) {
            continue;
        }
        let mounted = bind(&file).map_err(why)?;
        if held.is_read_only {
            set_read_only(&mounted).map_err(why)?;
        }
    }
    Ok(())
}

/// Makes every mount read-only that is neither below a writable root nor held.
fn make_read_only(plan: &Plan) -> Result<(), NamespaceError> {
    let table = fs::read("/proc/self/mountinfo").map_err(|error| failed("mountinfo", error))?;
    for point in table.split(|byte| *byte == b'\n').filter_map(mount_point) {
        let is_writable = plan.writable.iter().any(|root| point.starts_with(root));
        let is_protected = plan.held().any(|held| held.is_read_only && point.starts_with(&held.path));
        if is_writable && !is_protected {
            continue;
        }
        // What the user cannot reach, commands cannot reach either.
        if let Some(mounted) = open(&point)? {
            set_read_only(&mounted).map_err(|error| failed(point.display(), error))?;
        }
    }
    Ok(())
}

/// Opens a path without following links; `None` if there is nothing to reach.
pub(super) fn open(path: &Path) -> Result<Option<OwnedFd>, NamespaceError> {
    match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(error) => Err(failed(path.display(), error)),
    }
}

/// Mounts a file or directory onto itself.
fn bind(file: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let tree = clone_tree(file)?;
    put(&tree, file)?;
    Ok(tree)
}

/// Returns a file or directory, with what is mounted below, as it can be mounted elsewhere.
pub(super) fn clone_tree(file: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let whole = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(file, c"", whole | OpenTreeFlags::AT_EMPTY_PATH)
}

pub(super) fn put(tree: &OwnedFd, at: &OwnedFd) -> rustix::io::Result<()> {
    move_mount(tree, c"", at, c"", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH)
}

/// Covers a directory by an empty one, and a file by a device that is empty.
fn mask(file: &OwnedFd) -> rustix::io::Result<()> {
    if FileType::from_raw_mode(fstat(file)?.st_mode).is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
        return mount(c"tmpfs", by_descriptor(file), c"tmpfs", flags, Some(c"size=4k,mode=700"));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    put(&open_tree(CWD, c"/dev/null", flags)?, file)
}

fn set_read_only(mounted: &OwnedFd) -> rustix::io::Result<()> {
    let set = fstatvfs(mounted)?.f_flag;
    if set.contains(StatVfsMountFlags::RDONLY) {
        return Ok(());
    }
    // Flags that the owner of the machine has set must be named again, or the kernel takes them for taken away.
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (NO_LINKS, MountFlags::NOSYMFOLLOW),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| set.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY, |flags, flag| flags | flag);
    mount_remount(by_descriptor(mounted), flags, c"")
}

fn is_mount(file: &OwnedFd) -> rustix::io::Result<bool> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn is_read_only(file: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// A name for what was opened.
pub(super) fn by_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The mount point in a line of `mountinfo`, where odd characters are written as a backslash and three octal digits.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let written = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.split_at_checked(3).filter(|_| *first == b'\\');
        let escaped = escaped.and_then(|(digits, after)| Some((octal(digits)?, after)));
        let (byte, after) = escaped.unwrap_or((*first, after));
        path.push(byte);
        rest = after;
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are_called() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(mount_point(line.as_bytes()), expected.map(PathBuf::from), "{line}");
        };
        check("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw", Some("/"));
        check(r"31 22 0:27 /a /mnt/with\040space\134 rw - tmpfs none rw", Some("/mnt/with space\\"));
        check(r"31 22 0:27 /a /odd\9 rw - tmpfs none rw", Some(r"/odd\9"));
        check("", None);
    }
}
