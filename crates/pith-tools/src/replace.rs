//! Replaces the contents of a file so that a crash leaves the old or the new version, never a mixture.
//!
//! The new contents are written to an unnamed file in the same directory, which then replaces the old one in a single
//! step. Pipes, devices, files with several hard links, and files in directories that are not writable cannot be
//! replaced that way and are written in place.
//!
//! `pith_config::replace` does the same for pith's own files, by their paths. Files of the model need more: everything
//! happens in an open directory, so that a confined path cannot be swapped for a link on the way, and owner and mode
//! are kept.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::command::spill::random_hex;
use crate::confine::{Confinement, real_path};
use crate::os_error;

const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

/// Gives `path` new contents, following links. The error is the text for the model.
pub(crate) fn replace(path: &Path, contents: &[u8], confinement: &Confinement) -> Result<Metadata, String> {
    let target = real_path(path);
    let fail = |error: io::Error| os_error::on_path(&error, "open", path);
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(fail(Errno::ISDIR.into()));
    };
    let directory = open_directory(parent).map_err(fail)?;
    // From here on everything happens in this directory, even if its name leads elsewhere by now.
    confinement.admit_open_for_change(&directory, parent, name)?;
    replace_in(&directory, name, contents).map_err(fail)
}

fn replace_in(directory: &OwnedFd, name: &OsStr, contents: &[u8]) -> io::Result<Metadata> {
    let old = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    match old.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Some(FileType::Directory) => return Err(Errno::ISDIR.into()),
        Some(FileType::RegularFile) if old.is_some_and(|stat| stat.st_nlink == 1) => {
            // Renaming over a read-only file would succeed, but must not.
            rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::empty())?;
        }
        None => {}
        Some(_) => return write_in_place(directory, name, contents),
    }
    match swap(directory, name, contents, old.as_ref()) {
        Err(error) if cannot_swap(&error) => write_in_place(directory, name, contents),
        outcome => outcome,
    }
}

/// Whether the directory or the mount does not allow it, which says nothing about the file itself.
fn cannot_swap(error: &io::Error) -> bool {
    let reasons = [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::BUSY, Errno::XDEV, Errno::NOTSUP];
    Errno::from_io_error(error).is_some_and(|errno| reasons.contains(&errno))
}

fn swap(directory: &OwnedFd, name: &OsStr, contents: &[u8], old: Option<&Stat>) -> io::Result<Metadata> {
    let temporary = format!(".pith-{}", random_hex());
    let (mut file, has_name) = match unnamed(directory) {
        Some(file) => (file, false),
        None => (named(directory, &temporary)?, true),
    };
    let published = (|| {
        file.write_all(contents)?;
        if let Some(old) = old {
            copy_ownership(&file, old)?;
        }
        file.sync_all()?;
        if !has_name {
            link(&file, directory, &temporary)?;
        }
        rustix::fs::renameat(directory, temporary.as_str(), directory, name)?;
        file.metadata()
    })();
    if published.is_err() {
        // It may not exist yet, which is fine.
        let _ = rustix::fs::unlinkat(directory, temporary.as_str(), AtFlags::empty());
    }
    published
}

/// Creates a file that disappears by itself if pith is killed before it is complete.
#[cfg(target_os = "linux")]
fn unnamed(directory: &OwnedFd) -> Option<File> {
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, ".", flags, NEW_FILE).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_directory: &OwnedFd) -> Option<File> {
    None
}

fn named(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, NEW_FILE)?))
}

/// Gives an unnamed file its name.
fn link(file: &File, directory: &OwnedFd, name: &str) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(rustix::fs::CWD, open_file, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Copies the owner where allowed, then the mode, because changing the owner clears some bits of the mode.
fn copy_ownership(file: &File, old: &Stat) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.st_uid, old.st_gid) {
        let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            // A member of the group can at least keep the group.
            let _ = rustix::fs::fchown(file, None, Some(group));
        }
    }
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o7777))?)
}

fn write_in_place(directory: impl AsFd, name: &OsStr, contents: &[u8]) -> io::Result<Metadata> {
    // Non-blocking, so that a pipe without a reader is an error instead of a hang.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(directory, name, flags, NEW_FILE)?);
    file.write_all(contents)?;
    file.metadata()
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    Ok(rustix::fs::open(path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn put(path: &Path, contents: &str) -> Result<(), String> {
        replace(path, contents.as_bytes(), &Confinement::default()).map(drop)
    }

    #[test]
    fn files_are_swapped_and_keep_their_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let before = path.metadata().unwrap().ino();
        let held = File::open(&path).unwrap();
        put(&path, "new contents").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new contents");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o750);
        assert_ne!(path.metadata().unwrap().ino(), before);
        assert_eq!(io::read_to_string(held).unwrap(), "old", "readers of the old version are not disturbed");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn new_files_get_the_default_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, usual) = (dir.path().join("ours"), dir.path().join("usual"));
        put(&ours, "x").unwrap();
        fs::write(&usual, "x").unwrap();
        assert_eq!(ours.metadata().unwrap().mode(), usual.metadata().unwrap().mode());
    }

    #[test]
    fn links_are_followed_and_stay_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real"), "old").unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        symlink("later", dir.path().join("dangling")).unwrap();
        put(&dir.path().join("link"), "new").unwrap();
        put(&dir.path().join("dangling"), "made").unwrap();
        assert!(dir.path().join("link").is_symlink() && dir.path().join("dangling").is_symlink());
        assert_eq!(fs::read_to_string(dir.path().join("real")).unwrap(), "new");
        assert_eq!(fs::read_to_string(dir.path().join("later")).unwrap(), "made");
    }

    #[test]
    fn files_with_several_names_are_written_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, "old and longer").unwrap();
        fs::hard_link(&one, &two).unwrap();
        put(&one, "new").unwrap();
        assert_eq!(fs::read_to_string(&two).unwrap(), "new");
        assert_eq!(one.metadata().unwrap().nlink(), 2);
    }

    #[test]
    fn devices_are_written_pipes_and_directories_refused() {
        let dir = tempfile::tempdir().unwrap();
        put(Path::new("/dev/null"), "gone").unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(put(&pipe, "x").unwrap_err().starts_with("ENXIO: "), "must not block");
        let error = put(dir.path(), "x").unwrap_err();
        assert_eq!(error, format!("EISDIR: illegal operation on a directory, open '{}'", dir.path().display()));
        let error = put(&dir.path().join("no/file"), "x").unwrap_err();
        assert!(error.starts_with("ENOENT: no such file or directory, open '"), "{error}");
    }

    #[test]
    fn confinement_holds_at_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        symlink(dir.path(), root.join("out")).unwrap();
        let confinement = Confinement::to(Some(vec![root.clone()]));
        assert!(replace(&root.join("a"), b"x", &confinement).is_ok());
        assert!(replace(&root.join("out/b"), b"x", &confinement).unwrap_err().starts_with("EACCES: outside"));
        assert!(!dir.path().join("b").exists());
    }
}
