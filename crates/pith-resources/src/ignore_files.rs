//! Ignore files met on the way down a directory tree.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use pith_config::Diagnostic;

use crate::notes::Notes;
use crate::text;

/// Files whose lines exclude what lies beside and below them.
pub(crate) const NAMES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];
/// Rules beyond this are not read.
const LIMIT: usize = 256 * 1024;

/// The rules that apply at some depth, innermost last.
#[derive(Default)]
pub(crate) struct Ignores {
    levels: Vec<Option<Gitignore>>,
}

impl Ignores {
    /// Enters a directory that contains the given ignore files.
    pub fn enter(&mut self, directory: &Path, files: &[&str], notes: &mut Notes) {
        self.levels.push(rules(directory, files, notes));
    }

    /// Leaves the directory entered last.
    pub fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a file below all entered directories is excluded; the nearest rule decides.
    pub fn exclude_file(&self, path: &Path) -> bool {
        self.exclude(|rules| rules.matched(path, false))
    }

    /// Whether the rules exclude a directory; some rules are about directories only.
    pub fn exclude_directory(&self, path: &Path) -> bool {
        self.exclude(|rules| rules.matched(path, true))
    }

    fn exclude<'a, T>(&'a self, matched: impl Fn(&'a Gitignore) -> Match<T>) -> bool {
        for rules in self.levels.iter().rev().flatten() {
            match matched(rules) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn rules(directory: &Path, files: &[&str], notes: &mut Notes) -> Option<Gitignore> {
    if files.is_empty() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(directory);
    for path in files.iter().map(|name| directory.join(name)) {
        _ = notes.look(&path);
        match text::read(&path, LIMIT, &notes.followed) {
            // A line that is no pattern excludes nothing; git does not complain about it either.
            Ok(text) => text.text.lines().for_each(|line| drop(builder.add_line(None, line))),
            Err(error) => {
                let message = format!("cannot read ignore file: {error}");
                notes.diagnostics.push(Diagnostic::warning("ignore_file_unreadable", &path, message));
            }
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
