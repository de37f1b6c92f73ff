//! The lists of a settings file: which paths to add, and which of the found
//! resources to keep.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use pith_config::Diagnostic;

use crate::notes::Notes;
use crate::paths;
use crate::scan::SKILL_FILE;

/// One list, sorted by what its entries mean.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Files and directories to add, absolute.
    pub added: Vec<PathBuf>,
    /// Plain globs: resources of added paths must match one, if there are any.
    wanted: Option<GlobSet>,
    /// `!glob`
    excluded: Option<GlobSet>,
    /// `+path`
    forced_in: Vec<String>,
    /// `-path`
    forced_out: Vec<String>,
}

impl Selection {
    /// Sorts the entries of a list whose relative paths start at `base`.
    pub fn parse(entries: &[String], base: &Path, home: Option<&Path>, notes: &mut Notes) -> Selection {
        let mut selection = Selection::default();
        let (mut wanted, mut excluded) = (Vec::new(), Vec::new());
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            // A home directory can be meant in every kind of entry.
            let text =
                |rest: &str| paths::slashed(&pith_config::expand_home(rest.strip_prefix("./").unwrap_or(rest), home));
            match entry.split_at_checked(1) {
                Some(("!", rest)) => excluded.push(text(rest)),
                Some(("+", rest)) => selection.forced_in.push(text(rest)),
                Some(("-", rest)) => selection.forced_out.push(text(rest)),
                _ if is_glob(entry, base, home) => wanted.push(text(entry)),
                _ => selection.added.push(pith_config::resolve(entry, base, home)),
            }
        }
        selection.wanted = globs(&wanted, base, notes);
        selection.excluded = globs(&excluded, base, notes);
        selection
    }

    /// Whether a resource of an added path is kept.
    pub fn keeps_added(&self, path: &Path, base: &Path) -> bool {
        if self.keeps_all() {
            return true;
        }
        let names = Names::of(path, base);
        let is_wanted = self.wanted.as_ref().is_none_or(|globs| names.match_any(globs));
        let is_in = (is_wanted && !self.excludes(&names)) || names.equal_any(&self.forced_in);
        is_in && !names.equal_any(&self.forced_out)
    }

    /// Whether a list that selects parts of a package selects this one: plain entries choose from it.
    pub fn chooses(&self, path: &Path, base: &Path) -> bool {
        let names = Names::of(path, base);
        // By its path, or by its name alone.
        let is_name = |added: &Path| names.last.iter().any(|last| added.strip_prefix(base) == Ok(Path::new(last)));
        let is_named = self.added.iter().any(|added| path.starts_with(added) || is_name(added));
        let is_wanted = self.wanted.as_ref().is_some_and(|globs| names.match_any(globs));
        let is_chosen = is_named || is_wanted || (self.added.is_empty() && self.wanted.is_none());
        let is_in = (is_chosen && !self.excludes(&names)) || names.equal_any(&self.forced_in);
        is_in && !names.equal_any(&self.forced_out)
    }

    /// Whether a resource found in a conventional directory is kept. Plain globs say nothing about these.
    pub fn keeps_found(&self, path: &Path, base: &Path) -> bool {
        if self.keeps_all() {
            return true;
        }
        let names = Names::of(path, base);
        let is_in = !self.excludes(&names) || names.equal_any(&self.forced_in);
        is_in && !names.equal_any(&self.forced_out)
    }

    /// Whether nothing has to be compared, which is the usual case.
    fn keeps_all(&self) -> bool {
        self.wanted.is_none() && self.excluded.is_none() && self.forced_out.is_empty()
    }

    fn excludes(&self, names: &Names) -> bool {
        self.excluded.as_ref().is_some_and(|globs| names.match_any(globs))
    }
}

/// The texts under which an entry may mean a resource.
struct Names {
    /// Relative and absolute path; for a `SKILL.md` also those of its directory.
    paths: Vec<String>,
    /// The last names of those.
    last: Vec<String>,
}

impl Names {
    fn of(path: &Path, base: &Path) -> Names {
        let directory = path.parent().filter(|_| path.file_name().is_some_and(|name| name == SKILL_FILE));
        let meant: Vec<&Path> = [Some(path), directory].into_iter().flatten().collect();
        let last = |path: &&Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        Names {
            paths: meant.iter().flat_map(|path| [paths::relative(path, base), paths::slashed(path)]).collect(),
            last: meant.iter().filter_map(last).collect(),
        }
    }

    fn match_any(&self, globs: &GlobSet) -> bool {
        self.paths.iter().chain(&self.last).any(|name| globs.is_match(name))
    }

    fn equal_any(&self, exact: &[String]) -> bool {
        exact.iter().any(|entry| self.paths.iter().any(|path| path == entry.trim_end_matches('/')))
    }
}

/// Brackets and braces are legal in directory names, so they only count where no such path exists.
fn is_glob(entry: &str, base: &Path, home: Option<&Path>) -> bool {
    entry.contains(['*', '?'])
        || (entry.contains(['[', '{']) && std::fs::symlink_metadata(pith_config::resolve(entry, base, home)).is_err())
}

fn globs(patterns: &[String], base: &Path, notes: &mut Notes) -> Option<GlobSet> {
    if patterns.is_empty() {
        return None;
    }
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        match GlobBuilder::new(pattern).literal_separator(true).build() {
            Ok(glob) => drop(builder.add(glob)),
            Err(error) => {
                let message = format!("pattern in a resource list is ignored: {error}");
                notes.diagnostics.push(Diagnostic::warning("pattern_invalid", base, message));
            }
        }
    }
    // Patterns that were all invalid select nothing rather than everything.
    Some(builder.build().unwrap_or_else(|_| GlobSet::empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> (Selection, Notes) {
        let mut notes = Notes::default();
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let selection = Selection::parse(&entries, Path::new("/a"), Some(Path::new("/home/u")), &mut notes);
        (selection, notes)
    }

    #[test]
    fn plain_entries_are_paths_from_the_base() {
        let (selection, _) = list(&["skills/x", " ~/s ", "/abs", "../up", "", "!no", "+in", "-out", "g*", "no[xy]"]);
        let expected = ["/a/skills/x", "/home/u/s", "/abs", "/up"].map(PathBuf::from);
        assert_eq!(selection.added, expected);
    }

    #[test]
    fn which_resources_are_kept() {
        let check = |entries: &[&str], path: &str, added: bool, found: bool| {
            let (selection, _) = list(entries);
            let (path, base) = (Path::new(path), Path::new("/a"));
            assert_eq!(selection.keeps_added(path, base), added, "added {path:?} with {entries:?}");
            assert_eq!(selection.keeps_found(path, base), found, "found {path:?} with {entries:?}");
        };
        let skill = "/a/skills/git/SKILL.md";
        check(&[], skill, true, true);
        // Plain globs filter only what plain entries brought.
        check(&["skills/g*"], skill, true, true);
        check(&["skills/x*"], skill, false, true);
        // Relative, last name, absolute; the file and, for SKILL.md, its directory.
        for glob in
            ["!skills/*/SKILL.md", "!SKILL.*", "!/a/skills/**", "!skills/g*", "!g?t", "!/a/skills/git", "!**/git"]
        {
            check(&[glob], skill, false, false);
        }
        check(&["!*/SKILL.md"], skill, true, true); // a star stops at a slash
        check(&["!./skills/*"], skill, false, false);
        check(&["!{git,hg}"], skill, false, false);
        // The directory of an ordinary file is not meant.
        check(&["!pro*"], "/a/prompts/x.md", true, true);
        check(&["!~/p/*"], "/home/u/p/x.md", false, false);
        // Exact paths beat globs, and exclusion beats inclusion.
        check(&["!**", "+skills/git"], skill, true, true);
        check(&["!**", "+skills/git/SKILL.md"], skill, true, true);
        check(&["!**", "+./skills/git/"], skill, true, true);
        check(&["!**", "+git"], skill, false, false); // a name alone is no path
        check(&["+skills/git", "-skills/git"], skill, false, false);
        check(&["-/a/skills/git/SKILL.md"], skill, false, false);
        check(&["-skills/g*"], skill, true, true); // no globs in exact entries
        check(&["x*", "+skills/git"], skill, true, true);
        check(&["!../up/**"], "/up/x.md", false, false);
    }

    #[test]
    fn an_invalid_pattern_is_reported_and_the_others_apply() {
        let (selection, notes) = list(&["![z", "!b*"]);
        assert_eq!(notes.diagnostics.len(), 1);
        assert_eq!(notes.diagnostics[0].code, "pattern_invalid");
        assert!(notes.diagnostics[0].message.contains("[z"), "{}", notes.diagnostics[0].message);
        assert!(!selection.keeps_found(Path::new("/a/b.md"), Path::new("/a")));
        assert!(selection.keeps_found(Path::new("/a/c.md"), Path::new("/a")));
    }
}
