//! Walking a directory for skills or templates. Links are followed, loops end,
//! and no directory tree is too large or too deep to come back from.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;

use crate::ignore_files::{self, Ignores};
use crate::notes::Notes;

/// The file that makes a directory a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// Far beyond what people have, and still reached quickly.
const LIMITS: Limits = Limits { n_directories: 10_000, n_entries: 20_000, depth: 32 };

/// A file that may be a resource.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// As reached from the scanned directory.
    pub path: PathBuf,
    /// With all links resolved.
    pub real: PathBuf,
    pub found: How,
}

/// How a candidate was found, which decides how strictly it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By its place: a `SKILL.md`, or a template in a template directory.
    Conventional,
    /// A Markdown file among skills; it may be something else altogether.
    Loose,
    /// The user named this very file.
    Named,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// `SKILL.md` anywhere, and loose Markdown files in the root.
    Skills,
    /// `SKILL.md` anywhere, and loose Markdown files everywhere but in the root.
    AgentSkills,
    /// Markdown files in the directory itself.
    Templates,
    /// Markdown files in the whole tree.
    TemplateTree,
}

/// How much of a tree is looked at.
#[derive(Clone, Copy)]
struct Limits {
    n_directories: usize,
    /// In one directory.
    n_entries: usize,
    depth: usize,
}

/// Finds candidates below a directory, in the order of their names. A directory that is not there has none.
pub(crate) fn scan(root: &Path, rule: Rule, notes: &mut Notes) -> Vec<Candidate> {
    scan_within(LIMITS, root, rule, notes)
}

fn scan_within(limits: Limits, root: &Path, rule: Rule, notes: &mut Notes) -> Vec<Candidate> {
    let Ok(real) = fs::canonicalize(root) else {
        match notes.look(root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => notes.diagnostics.push(unreadable(root, &error)),
            _ => {}
        }
        return Vec::new();
    };
    let mut walk = Walk {
        rule,
        limits,
        notes,
        ignores: Ignores::default(),
        visited: HashSet::new(),
        found: Vec::new(),
        is_over_limit: false,
    };
    walk.directory(root, real, 0);
    walk.found
}

struct Walk<'a> {
    rule: Rule,
    limits: Limits,
    notes: &'a mut Notes,
    ignores: Ignores,
    /// Real paths of directories, so that a loop of links ends.
    visited: HashSet<PathBuf>,
    found: Vec<Candidate>,
    /// A limit was met and reported.
    is_over_limit: bool,
}

struct Entry {
    name: OsString,
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl Kind {
    fn of(file_type: FileType) -> Kind {
        if file_type.is_file() {
            Kind::File
        } else if file_type.is_dir() {
            Kind::Directory
        } else if file_type.is_symlink() {
            Kind::Link
        } else {
            Kind::Other
        }
    }
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path, real: PathBuf, depth: usize) {
        if !self.visited.insert(real.clone()) || self.is_too_much(path, depth) {
            return;
        }
        let entries = match self.entries(path) {
            Ok(entries) => entries,
            Err(error) => return self.notes.diagnostics.push(unreadable(path, &error)),
        };
        let ignore_files: Vec<&str> =
            ignore_files::NAMES.into_iter().filter(|name| entries.iter().any(|entry| entry.name == *name)).collect();
        self.ignores.enter(path, &ignore_files, self.notes);
        if !self.is_skill(&entries, &real) {
            for entry in &entries {
                self.entry(entry, &real, depth);
            }
        }
        self.ignores.leave();
    }

    /// Takes a directory with a `SKILL.md`; such a directory is one skill, whatever else it contains.
    fn is_skill(&mut self, entries: &[Entry], real: &Path) -> bool {
        if !matches!(self.rule, Rule::Skills | Rule::AgentSkills) {
            return false;
        }
        let Some(entry) = entries.iter().find(|entry| entry.name == SKILL_FILE) else { return false };
        let Some((Kind::File, real)) = resolved(entry, real) else { return false };
        if self.ignores.exclude_file(&entry.path) {
            return false;
        }
        self.found.push(Candidate { path: entry.path.clone(), real, found: How::Conventional });
        true
    }

    fn entry(&mut self, entry: &Entry, real: &Path, depth: usize) {
        let is_hidden = entry.name.as_encoded_bytes().starts_with(b".");
        if is_hidden || entry.name == "node_modules" || entry.kind == Kind::Other {
            return;
        }
        let Some((kind, real)) = resolved(entry, real) else { return };
        match kind {
            Kind::Directory if self.rule != Rule::Templates && !self.ignores.exclude_directory(&entry.path) => {
                self.directory(&entry.path, real, depth + 1);
            }
            Kind::File if self.wants_markdown(entry, depth) && !self.ignores.exclude_file(&entry.path) => {
                let found = match self.rule {
                    Rule::Skills | Rule::AgentSkills => How::Loose,
                    Rule::Templates | Rule::TemplateTree => How::Conventional,
                };
                self.found.push(Candidate { path: entry.path.clone(), real, found });
            }
            Kind::Directory | Kind::File | Kind::Link | Kind::Other => {}
        }
    }

    fn wants_markdown(&self, entry: &Entry, depth: usize) -> bool {
        let is_here = match self.rule {
            Rule::Skills => depth == 0,
            Rule::AgentSkills => depth > 0,
            Rule::Templates | Rule::TemplateTree => true,
        };
        is_here && is_markdown(&entry.path)
    }

    fn entries(&mut self, path: &Path) -> io::Result<Vec<Entry>> {
        self.notes.look(path)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entries.len() == self.limits.n_entries {
                self.report(path, format!("more than {} entries; the rest is not looked at", entries.len()));
                break;
            }
            let kind = Kind::of(entry.file_type()?);
            entries.push(Entry { name: entry.file_name(), path: entry.path(), kind });
        }
        // The order of a directory is an accident; the prompt must not depend on it.
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn is_too_much(&mut self, path: &Path, depth: usize) -> bool {
        let Limits { n_directories, depth: deepest, .. } = self.limits;
        if depth > deepest {
            self.report(path, format!("nested deeper than {deepest} directories; not searched"));
        } else if self.visited.len() > n_directories {
            self.report(path, format!("more than {n_directories} directories; the rest is not searched"));
        } else {
            return false;
        }
        true
    }

    /// Reports a problem, only the first of a tree: one this large has many of them.
    fn report(&mut self, path: &Path, message: String) {
        if !std::mem::replace(&mut self.is_over_limit, true) {
            self.notes.diagnostics.push(Diagnostic::warning("directory_too_large", path, message));
        }
    }
}

/// Returns the kind of the entry that links lead to; nothing for a broken link.
fn resolved(entry: &Entry, real_directory: &Path) -> Option<(Kind, PathBuf)> {
    if entry.kind != Kind::Link {
        return Some((entry.kind, real_directory.join(&entry.name)));
    }
    let real = fs::canonicalize(&entry.path).ok()?;
    let kind = Kind::of(fs::metadata(&real).ok()?.file_type());
    Some((kind, real))
}

/// Whether a path has the file name of a skill or template.
pub(crate) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::warning("directory_unreadable", path, format!("cannot read directory: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the templates found in a tree of nine files with the given limits, and what was said about it.
    fn scan_tree(limits: Limits) -> (Vec<String>, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        for directory in ["", "a", "a/b"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
            for n in 1..=3 {
                fs::write(root.path().join(directory).join(format!("{n}.md")), "").unwrap();
            }
        }
        let mut notes = Notes::default();
        let found = scan_within(limits, root.path(), Rule::TemplateTree, &mut notes);
        let name =
            |candidate: &Candidate| candidate.path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned();
        let messages = notes.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
        (found.iter().map(name).collect(), messages)
    }

    #[test]
    fn limits() {
        let check = |limits: Limits, n_found: usize, expected: &[&str]| {
            let (found, messages) = scan_tree(limits);
            assert_eq!(
                (found.len(), &messages[..]),
                (n_found, &expected.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..])
            );
        };
        let enough = Limits { n_directories: 3, n_entries: 4, depth: 2 };
        check(enough, 9, &[]);
        check(Limits { depth: 1, ..enough }, 6, &["nested deeper than 1 directories; not searched"]);
        check(Limits { n_directories: 2, ..enough }, 6, &["more than 2 directories; the rest is not searched"]);
        let (found, messages) = scan_tree(Limits { n_entries: 3, ..enough });
        assert!(found.len() < 9);
        assert_eq!(messages, ["more than 3 entries; the rest is not looked at"]);
    }

    #[test]
    fn candidates_come_in_the_order_of_their_names() {
        let expected = ["1.md", "2.md", "3.md", "a/1.md", "a/2.md", "a/3.md", "a/b/1.md", "a/b/2.md", "a/b/3.md"];
        assert_eq!(scan_tree(LIMITS).0, expected);
    }
}
