//! Walks a directory by the ignore rules, in path order.

use std::path::Path;
use std::sync::Arc;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{Walk, WalkBuilder};

use crate::confine::{Confinement, real_path};

/// Which ignore files are applied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignoring {
    /// `.gitignore` inside repositories only.
    LikeGrep,
    /// `.gitignore` also outside repositories.
    LikeFind,
}

/// Returns the entries below `root`, hidden ones included, without `.git` unless `root` is in it, and without what file
/// tools must not look into.
pub(super) fn walk(root: &Path, ignoring: Ignoring, glob: Option<Arc<Glob>>, confinement: &Confinement) -> Walk {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).sort_by_file_path(Path::cmp).add_custom_ignore_filename(".rgignore");
    if ignoring == Ignoring::LikeFind {
        let in_repository = root.ancestors().any(|directory| directory.join(".git").exists());
        builder.require_git(in_repository).add_custom_ignore_filename(".fdignore");
    }
    let (confinement, named, real) = (confinement.clone(), root.to_owned(), real_path(root));
    builder.filter_entry(move |entry| {
        let leaves_out = || {
            let below = entry.path().strip_prefix(&named).unwrap_or(entry.path());
            confinement.leaves_out(&real.join(below))
        };
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let excluded = || is_dir && glob.as_ref().is_some_and(|glob| !glob.enters(entry.path()));
        entry.depth() == 0 || (entry.file_name() != ".git" && !excluded() && !leaves_out())
    });
    builder.build()
}

/// Returns a pattern without `./` at its beginning: the paths that it is compared with have none.
pub(super) fn from_here(pattern: &str) -> &str {
    pattern.trim_start_matches("./")
}

/// A `glob` argument: applied in addition to the ignore rules, so it never includes an ignored file.
pub(super) struct Glob {
    /// Relative to the searched directory, and to the session's if that is another one.
    patterns: Vec<Override>,
    excludes: bool,
}

impl Glob {
    /// Compiles a glob; fails with the parser's message. `None` if it names nothing.
    pub fn new(glob: &str, bases: &[&Path]) -> Result<Option<Self>, String> {
        let excludes = glob.starts_with('!');
        let (mark, pattern) = glob.split_at(usize::from(excludes));
        let pattern = from_here(pattern);
        if pattern.is_empty() {
            return Ok(None);
        }
        let compile = |base: &&Path| {
            let mut builder = OverrideBuilder::new(base);
            builder.add(&format!("{mark}{pattern}"))?;
            builder.build()
        };
        let patterns = bases.iter().map(compile).collect::<Result<_, ignore::Error>>();
        Ok(Some(Glob { patterns: patterns.map_err(|error| error.to_string())?, excludes }))
    }

    /// Returns whether a file is to be searched.
    pub fn takes(&self, file: &Path) -> bool {
        let mut answers = self.patterns.iter().map(|pattern| !pattern.matched(file, false).is_ignore());
        if self.excludes { answers.all(|yes| yes) } else { answers.any(|yes| yes) }
    }

    fn enters(&self, directory: &Path) -> bool {
        !self.excludes || self.patterns.iter().all(|pattern| !pattern.matched(directory, true).is_ignore())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(root: &Path, ignoring: Ignoring, glob: Option<&str>) -> Vec<String> {
        let glob = glob.and_then(|glob| Glob::new(glob, &[root]).unwrap()).map(Arc::new);
        let walk = walk(root, ignoring, glob.clone(), &Confinement::default()).flatten();
        walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter(|entry| glob.as_ref().is_none_or(|glob| glob.takes(entry.path())))
            .map(|entry| crate::paths::relative(entry.path(), root))
            .collect()
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn ignore_rules_and_order() {
        let dir = tree(&[
            (".gitignore", "*.log\n"),
            (".hidden/h", ""),
            ("a.log", ""),
            ("sub/b", ""),
            ("sub/.ignore", "c\n"),
            ("sub/c", ""),
            ("sub.txt", ""),
        ]);
        let outside = [".gitignore", ".hidden/h", "a.log", "sub/.ignore", "sub/b", "sub.txt"];
        assert_eq!(found(dir.path(), Ignoring::LikeGrep, None), outside);
        let without_log = [".gitignore", ".hidden/h", "sub/.ignore", "sub/b", "sub.txt"];
        assert_eq!(found(dir.path(), Ignoring::LikeFind, None), without_log);
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join(".git/config"), "").unwrap();
        assert_eq!(found(dir.path(), Ignoring::LikeGrep, None), without_log);
        assert_eq!(found(&dir.path().join(".git"), Ignoring::LikeGrep, None), ["config"]);
    }

    #[test]
    fn nested_repositories_have_their_own_rules() {
        let dir = tree(&[(".git/HEAD", ""), (".gitignore", "x\n"), ("x", ""), ("in/.git/HEAD", ""), ("in/x", "")]);
        assert_eq!(found(dir.path(), Ignoring::LikeFind, None), [".gitignore", "in/x"]);
    }

    #[test]
    fn a_glob_narrows_and_never_widens() {
        let dir = tree(&[(".ignore", "*.log\n"), ("a.log", ""), ("a.md", ""), ("node/b.md", ""), ("src/x/c.rs", "")]);
        let check =
            |glob, expected: &[&str]| assert_eq!(found(dir.path(), Ignoring::LikeGrep, Some(glob)), expected, "{glob}");
        check("*.log", &[]);
        check("*.md", &["a.md", "node/b.md"]);
        check("!node", &[".ignore", "a.md", "src/x/c.rs"]);
        check("src/**", &["src/x/c.rs"]);
        check("./src/**", &["src/x/c.rs"]);
        check("././*.md", &["a.md", "node/b.md"]);
        check("!./node/**", &[".ignore", "a.md", "src/x/c.rs"]);
        for nothing in ["", "!", "./", "!././"] {
            check(nothing, &[".ignore", "a.md", "node/b.md", "src/x/c.rs"]);
        }
        assert!(Glob::new("{a", &[dir.path()]).err().unwrap().contains("error parsing glob '{a'"));
    }
}
