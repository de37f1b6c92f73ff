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
    let modules = fs::read_dir(git.join("modules")).into_iter().flatten().flatten();
    all.extend(modules.map(|module| module.path().join("hooks")));
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
