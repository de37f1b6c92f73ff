//! Opens a path of a policy so that rules can be made for it.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

/// Opens a path of a policy, in which there was no link when the policy was made. A link that was put there since, by a
/// command that can write above, must not lead anywhere else.
pub(super) fn open(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // As in a sandbox of pith.
        Err(Errno::NOSYS | Errno::PERM) => open_by_steps(path, flags),
        opened => opened.ok(),
    }
}

/// Opens an absolute path step by step. A link on the way is opened itself, and nothing is below it.
fn open_by_steps(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    let root = openat(CWD, "/", flags, Mode::empty()).ok()?;
    let mut names = path.strip_prefix("/").ok()?.components();
    let opened = names
        .try_fold(root, |above, name| openat(&above, name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty()).ok())?;
    let is_link = fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
    (!is_link).then_some(opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_are_not_followed_step_by_step_either() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let file_of = |path: &str, open: &dyn Fn(&Path) -> Option<OwnedFd>| {
            open(&root.join(path)).map(|file| fstat(file).unwrap().st_ino)
        };
        for (path, is_opened) in
            [("", true), ("real", true), ("real/deep", true), ("link", false), ("link/deep", false), ("none", false)]
        {
            let found = file_of(path, &|path| open_by_steps(path, OFlags::PATH | OFlags::CLOEXEC));
            assert_eq!((found.is_some(), found), (is_opened, file_of(path, &open)), "{path}");
        }
    }
}
