//! Paths below a writable root that must not change, because something outside runs or trusts what they say.

use std::fs;
use std::path::{Path, PathBuf};

use crate::names::{IN_HOME, Names, TABLE};
use crate::policy::Places;

/// How many directories a submodule lies below `modules` at most.
const MODULE_DEPTH: usize = 8;

/// The protected paths below these roots, whether they exist or not.
pub fn below(roots: &[PathBuf], places: &Places, allow_git_config: bool) -> Vec<PathBuf> {
    of(&Names { trees: roots.to_vec(), ..Names::default() }, places, allow_git_config)
}

/// The protected paths at the top of each tree. What the table names in directories below is found when it is looked at.
pub(crate) fn of(names: &Names, places: &Places, allow_git_config: bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for root in &names.trees {
        let rows = TABLE.iter().filter(|row| !row.name.contains('*'));
        let rows = rows.map(|row| (root.join(row.name), row.is_reserved));
        all.extend(
            rows.filter(|(path, is_reserved)| names.find(path).is_some() && (*is_reserved || exists(path)))
                .map(|(path, _)| path),
        );
        all.extend(of_git(root, places, allow_git_config));
        if let Some(home) = places.home.as_ref().filter(|home| home.starts_with(root)) {
            all.extend(IN_HOME.iter().map(|name| home.join(name)));
        }
    }
    // Whoever writes what a link leads to has changed what the link's name says.
    let led_to: Vec<PathBuf> = all.iter().filter_map(|path| led_to(path, &names.trees)).collect();
    all.extend(led_to);
    all
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What a protected path leads to, if that is elsewhere below a tree and does not hold the tree itself.
fn led_to(path: &Path, trees: &[PathBuf]) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let is_free = trees.iter().any(|tree| real.starts_with(tree)) && !trees.iter().any(|tree| tree.starts_with(&real));
    (real != path && is_free).then_some(real)
}

/// What git runs or reads at the top of a tree, if there is a repository.
fn of_git(root: &Path, places: &Places, allow_config: bool) -> Vec<PathBuf> {
    let dot_git = root.join(".git");
    if !exists(&dot_git) {
        return Vec::new();
    }
    let git = git_dir(root);
    let mut all = vec![git.join("hooks")];
    if !allow_config {
        all.push(git.join("config"));
    }
    all.extend(hooks_of_modules(&git.join("modules"), MODULE_DEPTH));
    if !dot_git.is_dir() {
        all.push(dot_git);
    }
    all.extend(led_by_git(root, places, allow_config));
    all
}

/// The files that configuration includes, and the directories of hooks that it names.
#[cfg(target_os = "linux")]
fn led_by_git(root: &Path, places: &Places, allow_config: bool) -> Vec<PathBuf> {
    let oracle = crate::git::Oracle { home: places.home.clone(), writable: vec![root.to_owned()] };
    let found = oracle.look(&root.join(".git"));
    let sources = found.facts.iter().filter(|fact| fact.kind == crate::git::Kind::Key && !allow_config);
    let sources = sources.map(|fact| fact.source.clone());
    // A directory that holds more than hooks is not held as a whole.
    let hooks = found.hooks.into_iter().filter(|hooks| hooks.is_dir() && !root.starts_with(hooks));
    sources.chain(hooks).filter(|path| path.starts_with(root)).collect()
}

#[cfg(not(target_os = "linux"))]
fn led_by_git(_root: &Path, _places: &Places, _allow_config: bool) -> Vec<PathBuf> {
    Vec::new()
}

/// The hooks of submodules. Their git directories lie here by their names, which may have slashes.
fn hooks_of_modules(modules: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(modules).into_iter().flatten().flatten() {
        let module = entry.path();
        let is_repository = module.join("HEAD").exists() || module.join("objects").exists();
        if is_repository {
            all.push(module.join("hooks"));
            all.extend(hooks_of_modules(&module.join("modules"), depth.saturating_sub(1)));
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(hooks_of_modules(&module, depth - 1));
        }
    }
    all
}

/// The git directory of a root: `.git`, or what a worktree's file of that name points at.
fn git_dir(root: &Path) -> PathBuf {
    let dot_git = root.join(".git");
    let pointed = fs::read_to_string(&dot_git).ok().and_then(|text| {
        let target = root.join(text.strip_prefix("gitdir:")?.trim());
        // A worktree's hooks are those of the repository it belongs to.
        let common = fs::read_to_string(target.join("commondir")).ok();
        common.map(|common| target.join(common.trim())).unwrap_or(target).canonicalize().ok()
    });
    pointed.unwrap_or(dot_git)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks_below(root: &Path, paths: &[PathBuf]) -> Vec<String> {
        let below = paths.iter().filter_map(|path| path.strip_prefix(root).ok()).map(|path| path.display().to_string());
        let mut hooks: Vec<String> = below.filter(|path| path.ends_with("hooks") || path.ends_with("config")).collect();
        hooks.sort();
        hooks
    }

    #[test]
    fn hooks_are_protected_wherever_git_looks_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        // A repository with a submodule in a directory, which has one itself; and a worktree of it elsewhere.
        for path in [".git/modules/libs/one/modules/two", ".git/worktrees/tree", "tree"] {
            fs::create_dir_all(root.join("main").join(path)).unwrap();
        }
        for path in [".git/modules/libs/one/HEAD", ".git/modules/libs/one/modules/two/HEAD"] {
            fs::write(root.join("main").join(path), "ref: refs/heads/main").unwrap();
        }
        fs::write(root.join("main/tree/.git"), "gitdir: ../.git/worktrees/tree\n").unwrap();
        fs::write(root.join("main/.git/worktrees/tree/commondir"), "../..\n").unwrap();
        let places = Places { cwd: root.clone(), home: None, agent_dir: root.clone(), temp: root.clone() };
        let of = |root: PathBuf, allow| below(std::slice::from_ref(&root), &places, allow);
        let hooks =
            [".git/config", ".git/hooks", ".git/modules/libs/one/hooks", ".git/modules/libs/one/modules/two/hooks"];
        let main = root.join("main");
        assert_eq!(hooks_below(&main, &of(main.clone(), false)), hooks);
        assert_eq!(hooks_below(&main, &of(main.clone(), true)), hooks[1..], "configuration may be allowed");
        assert_eq!(hooks_below(&main, &of(main.join("tree"), false)), hooks, "a worktree has those of its repository");
    }
}
