//! What can be read as of now, path by path, for rules that can only grant.
//!
//! Rights of Landlock add up along a path, so nothing can be taken out of a granted directory. What must not be read is
//! left out instead: its siblings are granted one by one, all the way down from the root. So what appears later where
//! something is closed is closed too. Devices are left out like that as well, because root could read a disk, and with
//! it every file, past their names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::reading::{Reading, Visitor};

const DEVICES: &str = "/dev";

/// What is granted, and what that was found from.
#[derive(Debug, Default)]
pub(super) struct Readable {
    /// Whole directories and files.
    pub granted: Vec<PathBuf>,
    /// Directories that can be listed with all that is below, though not all of it can be read.
    pub listed: Vec<PathBuf>,
    /// Directories whose entries were granted one by one.
    seen: Vec<(PathBuf, Option<Listing>)>,
}

/// A directory: device, inode, and when its entries last changed, in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing(u64, u64, i64, i64);

impl Readable {
    pub fn of(reading: &Reading) -> Readable {
        let mut readable = Readable::default();
        reading.with_links().visit(&mut readable);
        readable
    }

    /// Whether the same would be granted now.
    pub fn is_current(&self) -> bool {
        self.seen.iter().all(|(path, before)| listing(path) == *before)
    }
}

impl Visitor for Readable {
    fn open(&mut self, path: &Path) {
        if path == Path::new("/") {
            self.passage(path, true, false);
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            entries.for_each(|entry| self.open(&entry.path()));
        } else if path != Path::new(DEVICES) {
            self.granted.push(path.to_owned());
        }
    }

    fn passage(&mut self, directory: &Path, is_open: bool, holds_home: bool) {
        if is_open && !holds_home {
            self.listed.push(directory.to_owned());
        }
        // Taken before the entries are: what comes while they are listed makes the list outdated.
        self.seen.push((directory.to_owned(), listing(directory)));
    }
}

fn listing(directory: &Path) -> Option<Listing> {
    let metadata = fs::metadata(directory).ok()?;
    Some(Listing(metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Said;

    #[test]
    fn siblings_are_granted_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::create_dir_all(home.join("work/deep")).unwrap();
        fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        fs::write(home.join("work/key.pem"), "").unwrap();
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("door")).unwrap();
        let said = Said {
            homes: vec![home.clone()],
            closed: vec![home.join("work/key.pem")],
            usually_opened: vec![home.join(".cargo/bin"), home.join(".cargo/later")],
            ..Said::default()
        };
        let readable = Readable::of(&Reading::new(said));
        let mut inside: Vec<&PathBuf> = readable.granted.iter().filter(|path| path.starts_with(&home)).collect();
        inside.sort();
        assert_eq!(inside, [&home.join(".cargo/bin"), &home.join(".cargo/later"), &home.join("work/deep")]);
        assert_eq!(readable.listed, [home.join("work")]);
        assert!(!readable.granted.iter().any(|path| home.starts_with(path)), "no ancestor is granted whole");
        assert!(readable.granted.contains(&PathBuf::from("/usr")));
        assert!(!readable.granted.iter().any(|path| path.starts_with(DEVICES)), "devices are granted by name");
        assert!(readable.is_current());
        fs::write(home.join("notes"), "").unwrap();
        assert!(!readable.is_current(), "what comes beside something closed is to be granted");
    }

    #[test]
    fn what_a_closed_name_leads_to_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["home/work", "home/files", "keys", "open"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let home = root.join("home");
        for (link, target) in [(".ssh", root.join("keys")), (".work", home.join("work/deep")), (".all", root.clone())] {
            std::os::unix::fs::symlink(target, home.join(link)).unwrap();
        }
        fs::create_dir(home.join("work/deep")).unwrap();
        let said = Said { homes: vec![home.clone()], usually_opened: vec![home.join("work/deep")], ..Said::default() };
        let granted = Readable::of(&Reading::new(said)).granted;
        assert!(!granted.contains(&root.join("keys")));
        for open in [root.join("open"), home.join("files"), home.join("work/deep")] {
            assert!(granted.iter().any(|path| open.starts_with(path)), "{open:?}");
        }
    }
}
