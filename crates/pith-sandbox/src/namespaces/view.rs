//! What commands see of homes: an empty directory in the place of each, with what is open in it.
//!
//! What is closed has no name there, so it cannot be listed either, and neither can what comes later.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mounts::{by_descriptor, clone_tree, open, put};
use super::{NamespaceError, failed};
use crate::home::is_dot;
use crate::policy::Policy;

/// A home with more names is not covered: each is a mount, and the system allows a number of them.
const MAX_NAMES: usize = 2000;

/// Homes, and what is shown in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// A home that lies in another one comes first, so that the other shows it as it is then.
    homes: Vec<PathBuf>,
    /// In order, so that a directory comes before what is in it.
    shown: Vec<PathBuf>,
}

/// Something that is shown where it was.
enum Shown {
    Directory(OwnedFd),
    File(OwnedFd),
    Link(PathBuf),
}

impl View {
    /// Looks what can be shown now. Homes in which commands write, and those with too many names, are as they are.
    pub fn of(policy: &Policy) -> View {
        let reading = &policy.reading;
        let is_written = |home: &PathBuf| policy.writable.iter().any(|root| home.starts_with(root));
        let is_covered = |home: &&PathBuf| home.is_dir() && home.parent().is_some() && !is_written(home);
        let mut homes: Vec<PathBuf> = reading.homes().iter().filter(is_covered).cloned().collect();
        homes.sort_by_key(|home| std::cmp::Reverse(home.components().count()));
        let mut shown = Vec::new();
        homes.retain(|home| {
            let entries = fs::read_dir(home).into_iter().flatten().flatten();
            let plain = entries.filter(|entry| !is_dot(&entry.file_name()));
            // Daemons wait at sockets.
            let plain = plain.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_socket()));
            let plain = plain.map(|entry| entry.path());
            let plain = plain.filter(|path| reading.is_open(path) || reading.leads_to_open(path));
            let plain: Vec<PathBuf> = plain.take(MAX_NAMES + 1).collect();
            if plain.len() > MAX_NAMES {
                return false;
            }
            shown.extend(plain);
            shown.extend(reading.written_below(home).filter_map(|path| as_far_as_no_link(home, path)));
            true
        });
        shown.sort();
        View { homes, shown }
    }

    /// The view for another process: texts that are ended by a zero, homes before an empty one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let empty = PathBuf::new();
        let paths = self.homes.iter().chain([&empty]).chain(&self.shown);
        paths.flat_map(|path| [path.as_os_str().as_bytes(), &[0]].concat()).collect()
    }

    /// Reads what [`View::to_bytes`] has written; `None` if it has not.
    pub fn from_bytes(bytes: &[u8]) -> Option<View> {
        let mut texts = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let path = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text));
        let homes = texts.by_ref().take_while(|text| !text.is_empty()).map(path).collect();
        Some(View { homes, shown: texts.map(path).collect() })
    }
}

/// Covers the homes and shows in them what is to be seen.
pub(super) fn arrange(view: &View) -> Result<(), NamespaceError> {
    for home in &view.homes {
        let Some(directory) = open(home)? else { continue };
        let mut below: Vec<&PathBuf> =
            view.shown.iter().filter(|path| path.starts_with(home) && *path != home).collect();
        // What is in a directory that is shown is there with it.
        below.dedup_by(|later, first| later.starts_with(first));
        // Opened before they are covered. What cannot be opened is not shown.
        let shown: Vec<(&PathBuf, Shown)> = below.into_iter().filter_map(|path| Some((path, look(path)?))).collect();
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"tmpfs", by_descriptor(&directory), c"tmpfs", flags, Some(c"size=1m,mode=755"))
            .map_err(|error| failed(home.display(), error))?;
        for (path, shown) in shown {
            show(path, &shown).map_err(|error| failed(path.display(), error))?;
        }
    }
    Ok(())
}

/// Returns a path that exists as far as the first link on its way; `None` if it leads nowhere.
fn as_far_as_no_link(home: &Path, path: &Path) -> Option<PathBuf> {
    let mut so_far = home.to_owned();
    for part in path.strip_prefix(home).ok()? {
        so_far.push(part);
        if fs::symlink_metadata(&so_far).ok()?.is_symlink() {
            break;
        }
    }
    Some(so_far)
}

fn look(path: &Path) -> Option<Shown> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_symlink() {
        return fs::read_link(path).ok().map(Shown::Link);
    }
    let tree = clone_tree(&open(path).ok()??).ok()?;
    Some(if kind.is_dir() { Shown::Directory(tree) } else { Shown::File(tree) })
}

fn show(path: &Path, shown: &Shown) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let tree = match shown {
        Shown::Link(target) => return symlink(target, path),
        Shown::Directory(tree) => {
            fs::create_dir(path)?;
            tree
        }
        Shown::File(tree) => {
            fs::File::create_new(path)?;
            tree
        }
    };
    let at = open(path).ok().flatten().ok_or(std::io::ErrorKind::NotFound)?;
    Ok(put(tree, &at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_arrives_as_it_was_sent() {
        for (homes, shown) in [(vec!["/home/u", "/root"], vec!["/home/u/a\nb", "/root/c"]), (vec![], vec![])] {
            let paths = |paths: Vec<&str>| paths.into_iter().map(PathBuf::from).collect();
            let view = View { homes: paths(homes), shown: paths(shown) };
            assert_eq!(View::from_bytes(&view.to_bytes()), Some(view));
        }
        assert_eq!(View::from_bytes(b"/home"), None);
    }
}
