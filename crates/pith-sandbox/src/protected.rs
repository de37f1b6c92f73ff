//! Paths below a writable root that must not change, because something outside runs or trusts what they say.

use std::fs;
use std::path::{Path, PathBuf};

use crate::policy::Places;

/// In every writable directory.
const IN_ROOT: [&str; 8] = [".pi", ".xcsh", ".agents", ".claude", ".mcp.json", ".vscode", ".idea", ".envrc"];

/// In the home directory, if it is below a writable root.
const IN_HOME: [&str; 12] = [
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".config/fish",
    ".gitconfig",
    ".config/git",
    ".config/systemd",
    ".config/autostart",
    ".local/bin",
];

/// How many directories a submodule lies below `modules` at most.
const MODULE_DEPTH: usize = 8;

/// The protected paths below these roots, whether they exist or not.
pub fn below(roots: &[PathBuf], places: &Places, allow_git_config: bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for root in roots {
        all.extend(IN_ROOT.iter().map(|name| root.join(name)));
        all.extend(of_git(&git_dir(root), allow_git_config));
        if let Some(home) = places.home.as_ref().filter(|home| home.starts_with(root)) {
            all.extend(IN_HOME.iter().map(|name| home.join(name)));
        }
    }
    all
}

/// What git runs or reads in a git directory.
fn of_git(git: &Path, allow_config: bool) -> Vec<PathBuf> {
    let mut all = vec![git.join("hooks")];
    if !allow_config {
        all.push(git.join("config"));
    }
    all.extend(hooks_of_modules(&git.join("modules"), MODULE_DEPTH));
    all
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

/// The repository that a linked worktree belongs to, if it says so too: whoever can write the worktree's `.git` could
/// name anything there.
pub(crate) fn git_dir_of_worktree(root: &Path) -> Option<PathBuf> {
    let root = root.ancestors().find(|directory| directory.join(".git").exists())?;
    let text = fs::read_to_string(Some(root.join(".git")).filter(|path| path.is_file())?).ok()?;
    let git = root.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = fs::read_to_string(git.join("gitdir")).ok()?;
    let leads_back = git.join(back.trim()).canonicalize().ok()? == root.join(".git").canonicalize().ok()?;
    let common = fs::read_to_string(git.join("commondir")).ok().filter(|_| leads_back)?;
    let common = git.join(common.trim()).canonicalize().ok()?;
    git.parent().is_some_and(|worktrees| *worktrees == common.join("worktrees")).then_some(common)
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
