//! What can be read as of now, found by going down from the root as far as not all is open or all closed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::Reading;
use crate::home;

/// Is told what is found on the way.
pub(crate) trait Visitor {
    /// Everything below can be read.
    fn open(&mut self, path: &Path);

    /// A directory in which some can be read and some not, or something whose coming changes what can be read. Of an
    /// open one the entries are asked for next; of a closed one what is open in it, whether it exists or not.
    fn passage(&mut self, directory: &Path, is_open: bool, holds_home: bool);
}

/// What systems have in the root directory, where it cannot be listed. Homes are known by themselves.
const OF_SYSTEM: [&str; 18] = [
    "bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "nix", "opt", "proc", "run", "sbin", "srv", "sys",
    "tmp", "usr", "var",
];

impl Reading {
    /// Goes through everything from the root as far as it is not all open or all closed.
    pub(crate) fn visit(&self, visitor: &mut impl Visitor) {
        let root = Path::new("/");
        let marks = self.marks.iter().map(|(path, is_open)| (path.as_path(), *is_open));
        // What is as it would be anyway needs no siblings told apart.
        let inherited =
            |path: &Path| path.parent().is_some_and(|above| self.is_open(above) && !self.is_dot_of_home(path));
        let (missing, marks): (Vec<_>, Vec<_>) = marks.partition(|(path, _)| self.is_missing(path));
        missing.into_iter().for_each(|(path, _)| visitor.passage(path, false, false));
        let below: Vec<(&Path, bool)> =
            marks.into_iter().filter(|(path, is_open)| *path != root && *is_open != inherited(path)).collect();
        self.visit_from(root, self.marks.get(root).copied().unwrap_or(true), &below, visitor);
    }

    fn is_missing(&self, path: &Path) -> bool {
        self.awaited.iter().any(|awaited| awaited == path) && !path.exists()
    }

    /// `below` is what is said of paths below the directory.
    fn visit_from(&self, directory: &Path, is_open: bool, below: &[(&Path, bool)], visitor: &mut impl Visitor) {
        let holds_home = self.is_above_home(directory);
        if below.is_empty() && !holds_home {
            if is_open {
                visitor.open(directory);
            }
            return;
        }
        let next = |path: &Path| {
            let name = path.strip_prefix(directory).ok()?.components().next()?;
            Some(name.as_os_str().to_owned())
        };
        let mut marks: HashMap<OsString, Vec<(&Path, bool)>> = HashMap::new();
        for (path, is_open) in below {
            marks.entry(next(path).unwrap_or_default()).or_default().push((path, *is_open));
        }
        visitor.passage(directory, is_open, holds_home);
        let named = marks.keys().cloned().chain(self.homes.iter().filter_map(|home| next(home)));
        let names: HashSet<OsString> = match fs::read_dir(directory) {
            _ if !is_open => named.collect(),
            // Rights belong to what a link leads to, and are decided there.
            Ok(entries) => entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
                .map(|entry| entry.file_name())
                .collect(),
            // A sandbox around this one does not let homes be listed, nor the directories they are in.
            Err(_) => named
                .chain(self.marks.keys().filter_map(|path| next(path)))
                .chain(OF_SYSTEM.iter().filter(|_| directory == Path::new("/")).map(OsString::from))
                .filter(|name| directory.join(name).symlink_metadata().is_ok_and(|found| !found.is_symlink()))
                .collect(),
        };
        for name in names {
            let path = directory.join(&name);
            let marks = marks.get(&name).map_or(&[][..], Vec::as_slice);
            let own = marks.iter().find(|(marked, _)| *marked == path);
            let is_open = own.map_or(is_open && !self.is_dot_of_home(&path), |(_, is_open)| *is_open);
            let below: Vec<(&Path, bool)> = marks.iter().copied().filter(|(marked, _)| *marked != path).collect();
            self.visit_from(&path, is_open, &below, visitor);
        }
    }

    /// What is closed as of now: also what closed names of homes lead to, if they are links.
    pub(crate) fn with_links(&self) -> Reading {
        let mut all = self.clone();
        for path in self.homes.iter().flat_map(|home| home::led_to_from(home)) {
            // What a session works on stays open though a dot name leads to it.
            let is_within = |mark: &PathBuf| path.starts_with(mark) && !self.is_above_home(mark);
            if !self.marks.iter().any(|(mark, is_open)| *is_open && is_within(mark)) {
                all.marks.entry(path).or_insert(false);
            }
        }
        all
    }

    /// What is opened below a home, as it is called.
    pub(crate) fn written_below<'a>(&'a self, home: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = self.written.iter().filter(move |path| path.starts_with(home) && *path != home);
        let is_open = |path: &&PathBuf| path.canonicalize().is_ok_and(|real| self.is_open(&real));
        below.filter(is_open).map(PathBuf::as_path)
    }
}
