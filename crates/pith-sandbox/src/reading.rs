//! What can be read: paths that are open or closed, of which the innermost decides, and homes, whose dot names are
//! closed where nothing else is said.
//!
//! What the user says about a path comes before everything that is usual for it or for what lies below.

#[cfg(target_os = "linux")]
mod visit;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::home::is_dot;
#[cfg(target_os = "linux")]
pub(crate) use visit::Visitor;

/// Which files a policy lets be read. Paths have their links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is enforced there"))]
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
        let is_named = |home: &&PathBuf| {
            let Some(home) = home.to_str() else { return false };
            let dot = format!("{home}/.");
            output.lines().any(|line| {
                line.contains("Permission denied") && line.contains(home)
                    || line.contains("No such file or directory") && line.contains(&dot)
            })
        };
        self.homes.iter().find(is_named).map(PathBuf::as_path)
    }

    /// Returns what is closed below these directories, as far as it exists.
    pub(crate) fn closed_below(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let by_name = self.marks.iter().filter(|(_, is_open)| !**is_open).map(|(path, _)| path);
        let mut found = Vec::new();
        for path in by_name.filter(|path| is_below(path) && path.exists()) {
            if self.leads_to_open(path) {
                self.add_closed_in(path, &mut found);
            } else {
                found.push(path.clone());
            }
        }
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

    fn is_above_home(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| home.starts_with(path))
    }
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
        for (output, is_refused) in [
            ("x\ncat: /home/u/.netrc: No such file or directory", true),
            ("ls: cannot open directory '/home/u': Permission denied", true),
            ("cat: /home/u/work/a: No such file or directory", false),
            ("/home/u/.netrc\nPermission denied", false),
        ] {
            assert_eq!(reading.refused_in(output).is_some(), is_refused, "{output}");
        }
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
