//! Opens directories without following a single link, so that nothing on the way can lead elsewhere.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The directory of a path, opened, and the name in it.
pub(crate) struct Parent {
    pub directory: OwnedFd,
    pub name: OsString,
}

impl Parent {
    /// Opens the directory that an absolute path without links is in.
    pub fn of(path: &Path) -> io::Result<Parent> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        let mut directory = open_at(rustix::fs::CWD, OsStr::new("/"))?;
        for component in parent.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => directory = open_at(&directory, name)?,
                Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
            }
        }
        Ok(Parent { directory, name: name.to_owned() })
    }
}

fn open_at(directory: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}
