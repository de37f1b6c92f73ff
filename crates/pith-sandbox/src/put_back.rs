//! Puts back what was at a path. pith does it with all its rights in directories that commands can write, so nothing
//! here follows a link: every step is taken from a directory that is open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat, openat2, renameat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::record::{Recorded, now};

/// What a file is called after it was moved out of the way.
pub(crate) const ASIDE: &str = ".put-aside";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes a path, which had no links in it, what it was.
pub(crate) fn restore(path: &Path, before: &Recorded) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    match parent(path, *before != Recorded::Nothing)? {
        Some(parent) => restore_at(&parent, name, before),
        None => Ok(()),
    }
}

/// Gives a file or directory another name beside it, in the place of what was moved aside before.
pub(crate) fn move_aside(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let Some(parent) = parent(path, false)? else { return Ok(()) };
    let mut aside = OsString::from(name);
    aside.push(ASIDE);
    remove_at(&parent, &aside)?;
    match renameat(&parent, name, &parent, &aside) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens the directory that a path is in. A link on the way was put there since, and goes; what is missing is made if
/// that is wanted.
fn parent(path: &Path, is_made: bool) -> io::Result<Option<OwnedFd>> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let opened = openat2(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), no_links());
    match opened {
        Ok(parent) => return Ok(Some(parent)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
        Err(error) => return Err(error.into()),
    }
    let mut open = openat(CWD, "/", DIRECTORY, Mode::empty())?;
    for part in parent.components().filter(|part| matches!(part, Component::Normal(_))) {
        let name = part.as_os_str();
        let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open = match openat(&open, name, path_only, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) if !is_made => return Ok(None),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                let is_link = statat(&open, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
                if is_link || is_made {
                    remove_at(&open, name)?;
                }
                if !is_made {
                    return Ok(None);
                }
                mkdirat(&open, name, Mode::from_raw_mode(0o777))?;
                openat(&open, name, path_only, Mode::empty())?
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(Some(open))
}

fn no_links() -> ResolveFlags {
    ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn restore_at(parent: &OwnedFd, name: &OsStr, before: &Recorded) -> io::Result<()> {
    match before {
        Recorded::Nothing => remove_at(parent, name),
        Recorded::Link { target } => {
            remove_at(parent, name)?;
            Ok(symlinkat(target, parent, name)?)
        }
        Recorded::File { contents, mode } => {
            remove_at(parent, name)?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(parent, name, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(contents)?;
            Ok(fchmod(&file, Mode::from_raw_mode(mode & 0o7777))?)
        }
        Recorded::Directory { mode, entries } => {
            let directory = match open_directory(parent, name) {
                Ok(directory) => directory,
                Err(_) => {
                    remove_at(parent, name)?;
                    mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
                    openat(parent, name, DIRECTORY, Mode::empty())?
                }
            };
            fchmod(&directory, Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
            for name in names_in(&directory)?.iter().filter(|name| !entries.contains_key(*name)) {
                remove_at(&directory, name)?;
            }
            for (name, entry) in entries {
                if !now(&by_descriptor(&directory).join(name)).is_ok_and(|now| now == *entry) {
                    restore_at(&directory, name, entry)?;
                }
            }
            Ok(fchmod(&directory, Mode::from_raw_mode(mode & 0o7777))?)
        }
    }
}

fn remove_at(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_directory(parent, name)?;
    for name in names_in(&directory)? {
        remove_at(&directory, &name)?;
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory to look into and change it, even if its mode does not allow that.
fn open_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&handle)?.st_mode;
    if mode & 0o700 != 0o700 {
        let open = std::os::unix::fs::PermissionsExt::from_mode(mode & 0o7777 | 0o700);
        std::fs::set_permissions(by_descriptor(&handle), open)?;
    }
    Ok(openat(&handle, ".", DIRECTORY, Mode::empty())?)
}

fn names_in(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// A name for what was opened.
fn by_descriptor(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}
