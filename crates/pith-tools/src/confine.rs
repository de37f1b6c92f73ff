//! Which files the file tools may use at all: those in some directories (`tools.root`), if that is set, and never those of
//! pith's own process.
//!
//! The check resolves the real path, with every symbolic link followed, and is repeated on the opened file, so that the
//! file that was checked is the one that is read or written. File tools run in pith's process, so `/proc/self` has its
//! environment and memory, with every key.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pith_sandbox::Policy;

use crate::denied;
use crate::sandbox::Sandbox;

/// The directories that file tools may use; all of them if there is no list.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    roots: Option<Vec<PathBuf>>,
    /// Holds paths that must not be changed wherever they are.
    policy: Option<Arc<Policy>>,
}

impl Confinement {
    /// Confines to `roots`, and to what the sandbox lets file tools change.
    pub(crate) fn new(roots: Option<Vec<PathBuf>>, sandbox: Option<&Sandbox>) -> Self {
        Confinement { policy: sandbox.and_then(Sandbox::policy).cloned(), ..Confinement::to(roots) }
    }

    /// Confines to `roots`, which are resolved now.
    pub fn to(roots: Option<Vec<PathBuf>>) -> Self {
        Confinement { roots: roots.map(|roots| roots.iter().map(|root| real_path(root)).collect()), policy: None }
    }

    /// Refuses a path that leads outside. `call` names the operation in the message.
    pub fn admit(&self, path: &Path, call: &str) -> Result<(), String> {
        self.admitted(path, call).map(drop)
    }

    /// Refuses to change a path that leads outside, or that is protected.
    pub fn admit_change(&self, path: &Path, call: &str) -> Result<(), String> {
        let real = self.admitted(path, call)?;
        if let Some(reason) = self.policy.as_ref().and_then(|policy| policy.protection(&real)) {
            return Err(denied::protected(call, path, &reason));
        }
        Ok(())
    }

    /// Returns where a path leads, if that may be used.
    fn admitted(&self, path: &Path, call: &str) -> Result<PathBuf, String> {
        let (real, leads_into_pith) = resolve(path);
        if leads_into_pith {
            return Err(of_pith(path, call));
        }
        self.check(&real, path, call)?;
        Ok(real)
    }

    /// Whether a search leaves out an entry of a directory, given by its real path.
    pub fn leaves_out(&self, entry: &Path) -> bool {
        is_of_pith(entry)
    }

    /// Refuses a directory that turned out to be outside or protected after it was opened as `path`.
    pub fn admit_open_for_change(&self, directory: impl AsFd, path: &Path, name: &OsStr) -> Result<(), String> {
        self.admit_open(&directory, path, "open")?;
        let Some(policy) = &self.policy else { return Ok(()) };
        let real = path_of(&directory).unwrap_or_else(|| real_path(path)).join(name);
        if let Some(reason) = policy.protection(&real) {
            return Err(denied::protected("open", &path.join(name), &reason));
        }
        Ok(())
    }

    /// Refuses a file that turned out to be outside after it was opened as `path`.
    pub fn admit_open(&self, file: impl AsFd, path: &Path, call: &str) -> Result<(), String> {
        let real = path_of(file).unwrap_or_else(|| real_path(path));
        if real.ancestors().any(is_of_pith) {
            return Err(of_pith(path, call));
        }
        self.check(&real, path, call)
    }

    fn check(&self, real: &Path, path: &Path, call: &str) -> Result<(), String> {
        match &self.roots {
            Some(roots) if !roots.iter().any(|root| real.starts_with(root)) => {
                Err(format!("EACCES: outside the directories allowed by tools.root, {call} '{}'", path.display()))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn of_pith(path: &Path, call: &str) -> String {
    format!("EACCES: tools cannot look into pith's own process, {call} '{}'", path.display())
}

/// Whether a path, with links resolved, is the directory of pith's process or of one of its threads, in whichever `/proc`.
#[cfg(target_os = "linux")]
fn is_of_pith(real: &Path) -> bool {
    let Some(name) = real.file_name().filter(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)) else {
        return false;
    };
    real.parent().is_some_and(|parent| parent.join("self/task").join(name).exists())
}

#[cfg(not(target_os = "linux"))]
fn is_of_pith(_real: &Path) -> bool {
    false
}

/// Follows all symbolic links of a path, even if its last components do not exist yet.
pub fn real_path(path: &Path) -> PathBuf {
    resolve(path).0
}

/// Follows links, and says whether the way leads through the directory of pith's process: from there links lead to
/// what pith has open, wherever that is.
fn resolve(path: &Path) -> (PathBuf, bool) {
    const MAX_LINKS: usize = 40;
    let mut links = 0;
    let mut real = PathBuf::from("/");
    let mut leads_into_pith = false;
    let mut pending: VecDeque<OsString> = names(path).collect();
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        match std::fs::read_link(&next) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                    pending.push_front(name);
                }
            }
            // Not a link, missing, or a loop that the later open will report.
            Ok(_) | Err(_) => {
                leads_into_pith |= is_of_pith(&next);
                real = next;
            }
        }
    }
    (real, leads_into_pith)
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// The path by which the kernel knows an open file, if it tells.
#[cfg(target_os = "linux")]
fn path_of(file: impl AsFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn path_of(_file: impl AsFd) -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_lead_outside_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (inside, outside) = (dir.join("in"), dir.join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        symlink(&outside, inside.join("door")).unwrap();
        symlink("../out/new", inside.join("dangling")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        let confinement = Confinement::to(Some(vec![inside.clone()]));
        for (name, allowed) in [
            ("a", true),
            ("deep/b", true),
            ("door/secret", false),
            ("dangling", false),
            ("../out/secret", false),
            ("loop", true),
        ] {
            assert_eq!(confinement.admit(&inside.join(name), "access").is_ok(), allowed, "{name}");
        }
        let refusal = confinement.admit(&inside.join("door/secret"), "open").unwrap_err();
        assert!(refusal.starts_with("EACCES: outside the directories allowed by tools.root, open '"), "{refusal}");
    }

    #[test]
    fn the_opened_file_is_what_counts() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir(dir.join("in")).unwrap();
        fs::write(dir.join("in/a"), "").unwrap();
        fs::write(dir.join("b"), "").unwrap();
        let confinement = Confinement::to(Some(vec![dir.join("in")]));
        let swapped = fs::File::open(dir.join("b")).unwrap();
        assert!(confinement.admit_open(&swapped, &dir.join("in/a"), "open").is_err() || !cfg!(target_os = "linux"));
        assert!(confinement.admit_open(fs::File::open(dir.join("in/a")).unwrap(), &dir.join("in/a"), "open").is_ok());
    }

    #[test]
    fn no_roots_means_no_confinement() {
        assert!(Confinement::default().admit(Path::new("/etc/passwd"), "access").is_ok());
    }
}
