//! What can be read: paths that are open or closed, of which the innermost decides, and homes, whose dot names are
//! closed where nothing else is said.
//!
//! What the user says about a path comes before everything that is usual for it or for what lies below.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{self, is_dot};

/// Which files a policy lets be read. Paths have their links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether a path and what is below it is open, unless something further in says otherwise.
    marks: HashMap<PathBuf, bool>,
    homes: Vec<PathBuf>,
    /// Closed paths whose siblings are told apart only once they exist.
    awaited: Vec<PathBuf>,
    /// What is opened in homes, as it is called: links on the way are not resolved.
    written: Vec<PathBuf>,
}

/// What a policy says, before it is known what counts.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What the user closes and opens.
    pub closed: Vec<PathBuf>,
    pub opened: Vec<PathBuf>,
    /// What is usual where the user says nothing.
    pub usually_closed: Vec<PathBuf>,
    pub usually_opened: Vec<PathBuf>,
    pub homes: Vec<PathBuf>,
    /// Closed paths among files that commands make all the time.
    pub awaited: Vec<PathBuf>,
    /// What is opened, as it is called.
    pub written: Vec<PathBuf>,
}

impl Reading {
    pub(crate) fn new(said: Said) -> Reading {
        let Said { closed, opened, usually_closed, usually_opened, mut homes, awaited, written } = said;
        let mut marks = HashMap::new();
        // The first word about a path counts: what is closed before what is opened, but what a session needs before
        // what is usually closed.
        let mut add = |path: PathBuf, is_open: bool| {
            marks.entry(path).or_insert(is_open);
        };
        let by_user: Vec<PathBuf> = closed.iter().chain(&opened).cloned().collect();
        closed.into_iter().for_each(|path| add(path, false));
        opened.into_iter().for_each(|path| add(path, true));
        let is_decided = |path: &PathBuf| by_user.iter().any(|above| path.starts_with(above));
        usually_opened.into_iter().filter(|path| !is_decided(path)).for_each(|path| add(path, true));
        usually_closed.into_iter().filter(|path| !is_decided(path)).for_each(|path| add(path, false));
        homes.retain(|home| !is_decided(home));
        Reading { marks, homes, awaited, written }
    }

    /// Whether a path, with its links resolved, can be read.
    pub fn is_open(&self, path: &Path) -> bool {
        let decided = path.ancestors().find_map(|above| match self.marks.get(above) {
            Some(is_open) => Some(*is_open),
            None => self.is_dot_of_home(above).then_some(false),
        });
        decided.unwrap_or(true)
    }

    fn is_dot_of_home(&self, path: &Path) -> bool {
        let is_home = |parent: &Path| self.homes.iter().any(|home| home == parent);
        path.file_name().is_some_and(is_dot) && path.parent().is_some_and(is_home)
    }

    /// Whether something below a path, with its links resolved, can be read though the path itself cannot.
    pub fn leads_to_open(&self, path: &Path) -> bool {
        self.marks.iter().any(|(mark, is_open)| *is_open && mark.starts_with(path) && mark != path)
            || self.homes.iter().any(|home| home.starts_with(path) && home != path)
    }

    /// The homes whose dot names are closed.
    pub fn homes(&self) -> &[PathBuf] {
        &self.homes
    }

    /// Whether a path was closed because it begins with a dot in a home, so that the user may open it.
    pub fn is_closed_in_home(&self, path: &Path) -> bool {
        !self.is_open(path) && self.homes.iter().any(|home| path.starts_with(home))
    }

    /// The home about which a command seems to say that something in it, or the list of its names, is closed.
    pub fn refused_in(&self, output: &str) -> Option<&Path> {
        const SIGNS: [&str; 2] = ["Permission denied", "No such file or directory"];
        let refusals = || output.lines().filter(|line| SIGNS.iter().any(|sign| line.contains(sign)));
        let is_named = |home: &&PathBuf| home.to_str().is_some_and(|home| refusals().any(|line| line.contains(home)));
        self.homes.iter().find(is_named).map(PathBuf::as_path)
    }

    /// What is opened below a home, as it is called.
    pub(crate) fn written_below<'a>(&'a self, home: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = self.written.iter().filter(move |path| path.starts_with(home) && *path != home);
        let is_open = |path: &&PathBuf| path.canonicalize().is_ok_and(|real| self.is_open(&real));
        below.filter(is_open).map(PathBuf::as_path)
    }

    /// Returns what is closed below these directories, as far as it exists.
    pub(crate) fn closed_below(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let by_name = self.marks.iter().filter(|(_, is_open)| !**is_open).map(|(path, _)| path.clone());
        let mut found: Vec<PathBuf> = by_name.filter(|path| is_below(path) && path.exists()).collect();
        self.homes.iter().filter(|home| is_below(home)).for_each(|home| self.add_closed_in(home, &mut found));
        found
    }

    /// Adds what is closed in a directory, but for what leads to something open.
    fn add_closed_in(&self, directory: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.canonicalize() {
                Ok(real) if real != path || self.is_open(&path) => {}
                Ok(_) if self.leads_to_open(&path) => self.add_closed_in(&path, found),
                Ok(_) => found.push(path),
                Err(_) => {}
            }
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

    fn is_above_home(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| home.starts_with(path))
    }

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
        let names: HashSet<OsString> = if is_open {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            // Rights belong to what a link leads to, and are decided there.
            let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            entries.map(|entry| entry.file_name()).collect()
        } else {
            marks.keys().cloned().chain(self.homes.iter().filter_map(|home| next(home))).collect()
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
}

/// Is told what is found on the way.
pub(crate) trait Visitor {
    /// Everything below can be read.
    fn open(&mut self, path: &Path);

    /// A directory in which some can be read and some not, or something whose coming changes what can be read. Of an open one the entries are asked for next; of a closed
    /// one what is open in it, whether it exists or not.
    fn passage(&mut self, directory: &Path, is_open: bool, holds_home: bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    fn check(reading: &Reading, open: &[&str], closed: &[&str]) {
        for path in open {
            assert!(reading.is_open(Path::new(path)), "{path} is closed");
        }
        for path in closed {
            assert!(!reading.is_open(Path::new(path)), "{path} is open");
        }
    }

    fn usual() -> Said {
        Said {
            homes: paths(&["/home/u"]),
            usually_opened: paths(&["/home/u/.cargo/bin", "/home/u/.local/share/app/project"]),
            usually_closed: paths(&["/etc/shadow"]),
            ..Said::default()
        }
    }

    #[test]
    fn dot_names_are_closed_unless_they_are_opened() {
        let reading = Reading::new(usual());
        check(
            &reading,
            &[
                "/",
                "/home/u",
                "/home/u/work/.env",
                "/home/u/.cargo/bin/x",
                "/home/u/.local/share/app/project/a",
                "/etc",
            ],
            &["/home/u/.ssh", "/home/u/.x/y", "/home/u/.cargo", "/home/u/.cargo/credentials", "/etc/shadow"],
        );
        assert!(reading.leads_to_open(Path::new("/home/u/.cargo")));
        assert!(!reading.leads_to_open(Path::new("/home/u/.ssh")));
        assert!(reading.is_closed_in_home(Path::new("/home/u/.ssh/id")));
        assert!(!reading.is_closed_in_home(Path::new("/etc/shadow")));
    }

    #[test]
    fn what_the_user_says_comes_first() {
        let said = Said {
            opened: paths(&["/home/u/.aws"]),
            closed: paths(&["/home/u/.aws/keys", "/home/u/.cargo"]),
            ..usual()
        };
        check(
            &Reading::new(said),
            &["/home/u/.aws/config", "/home/u/work"],
            &["/home/u/.aws/keys", "/home/u/.cargo/bin/x", "/home/u/.ssh"],
        );
        let said = Said { opened: paths(&["/home/u"]), closed: paths(&["/home/u/a"]), ..usual() };
        check(&Reading::new(said), &["/home/u/.ssh", "/home/u/.cargo/credentials"], &["/home/u/a/b", "/etc/shadow"]);
        let said = Said { opened: paths(&["/x"]), closed: paths(&["/x"]), ..usual() };
        check(&Reading::new(said), &["/home/u/b"], &["/x", "/x/y"]);
    }
}
