//! Something to mount onto, where a protected path does not exist.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::mount::{UnmountFlags, unmount};

use super::plan::Plan;

/// Empty directories in the place of protected paths that do not exist, for as long as commands run. Directories
/// whatever the path is for: git does not see an empty one.
#[derive(Debug, Default)]
pub struct Placeholders {
    /// Parents before what is in them.
    made: Vec<PathBuf>,
}

impl Placeholders {
    /// Returns what has to be made, parents before what is in them.
    pub fn missing(plan: &Plan) -> Vec<PathBuf> {
        let paths = plan.held().map(|held| &held.path);
        paths.filter(|path| fs::symlink_metadata(path).is_err()).cloned().collect()
    }

    /// Whether nothing was missing.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Makes what is missing.
    pub fn make(&mut self, missing: Vec<PathBuf>) -> io::Result<()> {
        for path in missing {
            match fs::create_dir(&path) {
                Ok(()) => self.made.push(path),
                Err(error) if cannot_be_made(error.kind()) => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            }
        }
        Ok(())
    }
}

/// Whether a path is missing for a reason that keeps commands from making it too.
fn cannot_be_made(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, AlreadyExists | NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        // The mounts on them, which are in another namespace, go with them. What somebody has put into one stays.
        self.made.iter().rev().for_each(|path| drop(fs::remove_dir(path)));
    }
}

/// Removes placeholders from within the namespace that has mounts on them.
pub fn remove_placeholders<P: AsRef<Path>>(made: &[P]) {
    for path in made.iter().rev().map(AsRef::as_ref) {
        while unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {}
        let _ = fs::remove_dir(path);
    }
}
